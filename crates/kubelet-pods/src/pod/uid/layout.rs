//! The members of upstream's internal types, in their order: `layout.txt`. A line without a space at its start names a type;
//! the lines below it are its members: the name, the Go type, and where the value is found in JSON.

use std::collections::BTreeMap;
use std::sync::LazyLock;

static TABLE: LazyLock<Layout> = LazyLock::new(|| Layout::parse(include_str!("layout.txt")));

/// A member of a struct.
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) go_type: &'static str,
    pub(super) found: Found,
}

/// Where the value of a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Nowhere: it is always zero.
    Nowhere,
    /// Among the members of the object that the struct is part of.
    Inline,
    /// In the object around the struct's own.
    Outside(&'static str),
    /// Under the first of these names that is there.
    Under(Vec<&'static str>),
}

/// Every struct that a pod is made of.
pub(super) struct Layout {
    structs: BTreeMap<&'static str, Vec<Member>>,
}

impl Layout {
    /// That of the release.
    pub(super) fn get() -> &'static Self {
        &TABLE
    }

    /// The members of a type, if it is a struct.
    pub(super) fn members(&self, go_type: &str) -> Option<&[Member]> {
        self.structs.get(go_type).map(Vec::as_slice)
    }

    #[cfg(test)]
    pub(super) fn structs(&self) -> impl Iterator<Item = (&'static str, &[Member])> {
        self.structs.iter().map(|(name, members)| (*name, members.as_slice()))
    }

    fn parse(text: &'static str) -> Self {
        let mut structs = BTreeMap::new();
        let mut current = "";
        for line in text.lines() {
            if let Some(member) = line.strip_prefix(' ').and_then(member) {
                structs.entry(current).or_insert_with(Vec::new).push(member);
            } else {
                current = line;
            }
        }
        Self { structs }
    }
}

fn member(line: &'static str) -> Option<Member> {
    let mut words = line.split(' ');
    let (name, go_type, found) = (words.next()?, words.next()?, words.next()?);
    let found = match found {
        "-" => Found::Nowhere,
        "." => Found::Inline,
        names => names.strip_prefix('^').map_or_else(|| Found::Under(names.split('|').collect()), Found::Outside),
    };
    Some(Member { name, go_type, found })
}
