//! Things that each have a place: a group, a version and a name.

use std::sync::Arc;

use base::ByHash;

/// What has a place of its own.
pub(crate) trait Placed {
    /// Group, version and name.
    fn place(&self) -> [&str; 3];
}

/// Things by their places. Requests look for dozens.
pub(crate) struct Places<T> {
    /// In the order of their places.
    sorted: Vec<Arc<T>>,
    by_hash: ByHash<Arc<T>>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { sorted: Vec::new(), by_hash: ByHash::default() }
    }
}

impl<T: Placed> Places<T> {
    /// Where it stands, or where it would.
    fn search(&self, place: [&str; 3]) -> Result<usize, usize> {
        self.sorted.binary_search_by(|own| own.place().cmp(&place))
    }

    /// What is at a place.
    pub(crate) fn get(&self, place: [&str; 3]) -> Option<&Arc<T>> {
        let hashed = self.by_hash.get(place, |own| own.place() == place);
        hashed.or_else(|| self.sorted.get(self.search(place).ok()?))
    }

    /// Puts a thing at its place, and gives what was there.
    pub(crate) fn put(&mut self, new: &Arc<T>) -> Option<Arc<T>> {
        let place = new.place();
        self.by_hash.put(place, Arc::clone(new));
        match self.search(place) {
            Ok(found) => self.sorted.get_mut(found).map(|former| std::mem::replace(former, Arc::clone(new))),
            Err(free) => {
                self.sorted.insert(free, Arc::clone(new));
                None
            }
        }
    }

    /// Takes away what is at a place.
    pub(crate) fn remove(&mut self, place: [&str; 3]) -> Option<Arc<T>> {
        self.by_hash.remove(place, |own| own.place() == place);
        Some(self.sorted.remove(self.search(place).ok()?))
    }

    /// All of them, in the order of their places.
    pub(crate) fn all(&self) -> &[Arc<T>] {
        &self.sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing([&'static str; 3], usize);

    impl Placed for Thing {
        fn place(&self) -> [&str; 3] {
            self.0
        }
    }

    #[test]
    fn each_is_found_at_its_place() {
        let mut places: Places<Thing> = Places::default();
        let at = ["", "v1", "pods"];
        let number = |places: &Places<Thing>, place| places.get(place).map(|own| own.1);
        for (number, place) in [["b", "v1", "x"], at, ["b", "v1beta1", "x"], ["b", "v1", "w"]].into_iter().enumerate() {
            assert!(places.put(&Arc::new(Thing(place, number))).is_none());
        }
        assert_eq!(places.all().iter().map(|own| own.1).collect::<Vec<_>>(), [1, 3, 0, 2]);
        assert_eq!(number(&places, ["b", "v1", "x"]), Some(0));
        assert_eq!(number(&places, ["b", "v1", "y"]), None);
        assert_eq!(places.put(&Arc::new(Thing(at, 9))).map(|former| former.1), Some(1));
        assert_eq!(number(&places, at), Some(9));
        assert_eq!(places.remove(at).map(|former| former.1), Some(9));
        assert!(places.remove(at).is_none());
        assert_eq!((number(&places, at), number(&places, ["b", "v1", "w"])), (None, Some(3)));
        assert_eq!(number(&places, ["b", "v1beta1", "x"]), Some(2));
    }
}
