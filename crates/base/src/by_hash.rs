//! Things that an ordered collection has, or where it has them, found by a hash of what they are called.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use rustc_hash::FxBuildHasher;

/// Finds things by the parts of their names, faster than any order of texts does. It is a help beside a collection that has
/// all of them: of those that have the same hash it knows one, so that what is not here may still be there, unless both have
/// as many.
#[derive(Debug)]
pub struct ByHash<V, S = FxBuildHasher> {
    known: HashMap<u64, V, FxBuildHasher>,
    hasher: S,
}

impl<V, S: Default> Default for ByHash<V, S> {
    fn default() -> Self {
        Self { known: HashMap::default(), hasher: S::default() }
    }
}

impl<V, S: BuildHasher> ByHash<V, S> {
    fn hash<const N: usize>(&self, name: [&str; N]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        for part in name {
            hasher.write(part.as_bytes());
        }
        hasher.finish()
    }

    /// What has this name, if it is known; `is_named` tells whether it really has.
    pub fn get<const N: usize>(&self, name: [&str; N], is_named: impl FnOnce(&V) -> bool) -> Option<&V> {
        self.known.get(&self.hash(name)).filter(|own| is_named(own))
    }

    /// Knows what has this name from now on.
    pub fn put<const N: usize>(&mut self, name: [&str; N], own: V) {
        self.known.insert(self.hash(name), own);
    }

    /// Forgets what has this name; `is_named` tells whether something really has.
    pub fn remove<const N: usize>(&mut self, name: [&str; N], is_named: impl FnOnce(&V) -> bool) {
        let hash = self.hash(name);
        if self.known.get(&hash).is_some_and(is_named) {
            self.known.remove(&hash);
        }
    }

    /// How many are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasherDefault;

    use super::*;

    /// All have the same hash.
    #[derive(Default)]
    struct Same;

    impl Hasher for Same {
        fn write(&mut self, _: &[u8]) {}
        fn finish(&self) -> u64 {
            7
        }
    }

    type Named = [&'static str; 2];

    fn found<S: BuildHasher>(things: &ByHash<Named, S>, name: Named) -> bool {
        things.get(name, |own| *own == name).is_some()
    }

    #[test]
    fn what_is_put_is_found_by_all_parts_of_its_name() {
        let mut things: ByHash<Named> = ByHash::default();
        for name in [["a", "b"], ["", "ab"], ["ab", ""]] {
            things.put(name, name);
        }
        assert!(found(&things, ["a", "b"]) && found(&things, ["", "ab"]) && found(&things, ["ab", ""]));
        assert!(!found(&things, ["b", "a"]));
        things.remove(["a", "b"], |own| *own == ["a", "b"]);
        assert!(!found(&things, ["a", "b"]) && found(&things, ["", "ab"]));
        assert_eq!(things.len(), 2);
        things.clear();
        assert!(!found(&things, ["", "ab"]) && things.is_empty());
    }

    #[test]
    fn of_those_with_one_hash_the_last_is_known() {
        let mut things: ByHash<Named, BuildHasherDefault<Same>> = ByHash::default();
        let (first, second) = (["a", "1"], ["a", "2"]);
        things.put(first, first);
        things.put(second, second);
        assert!(!found(&things, first) && found(&things, second));
        things.remove(first, |own| *own == first);
        assert!(found(&things, second), "another one is not taken away for it");
        assert_eq!(things.len(), 1);
    }
}
