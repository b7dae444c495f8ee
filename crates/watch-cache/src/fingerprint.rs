//! By what a value of the store is known again.

use std::hash::Hasher as _;

use rustc_hash::FxHasher;

/// The length and a short hash of a value: of two that differ in it the values differ. Where they agree, the values may
/// still differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fingerprint {
    length: u32,
    hash: u32,
}

impl Fingerprint {
    /// That of a value.
    #[must_use]
    pub fn of(value: &[u8]) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(value);
        let hash = hasher.finish();
        // Values are limited to megabytes.
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        Self { length, hash: (hash >> 32) as u32 }
    }

    /// How long the value is.
    pub(crate) fn length(self) -> usize {
        self.length as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;

    #[test]
    fn values_of_one_length_are_told_apart() {
        let value = vec![b'x'; 1000];
        let known = Fingerprint::of(&value);
        assert_eq!(Fingerprint::of(&value.clone()), known);
        assert_eq!(known.length(), 1000);
        for at in 0..value.len() {
            let mut other = value.clone();
            other[at] = b'y';
            assert_ne!(Fingerprint::of(&other), known, "{at}");
        }
    }
}
