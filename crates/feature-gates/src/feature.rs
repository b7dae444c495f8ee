//! A gate as code names it.

use crate::gate::Gate;
use crate::table::ALL;

/// A gate that code asks, declared as a constant next to that code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Feature(usize);

impl Feature {
    /// The gate of this name. For constants: a name that is in no table is an error of the compiler.
    ///
    /// # Panics
    /// Where no gate has the name.
    #[must_use]
    pub const fn named(name: &str) -> Self {
        let mut index = 0;
        while index < ALL.len() {
            if same(ALL[index].name.as_bytes(), name.as_bytes()) {
                return Self(index);
            }
            index += 1;
        }
        panic!("no feature gate has this name")
    }

    /// The gate of a name that comes from outside.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        ALL.binary_search_by(|gate| gate.name.cmp(name)).ok().map(Self)
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.gate().name
    }

    /// Its row of the table.
    #[must_use]
    pub const fn gate(self) -> &'static Gate {
        &ALL[self.0]
    }

    /// Every gate, by name.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..ALL.len()).map(Self)
    }

    pub(crate) const fn index(self) -> usize {
        self.0
    }
}

/// Comparing texts is not possible in constants.
const fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}
