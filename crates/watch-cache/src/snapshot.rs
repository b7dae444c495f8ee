//! The state of a resource at one revision, and how parts of it are named.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

use api_machinery::object::Object;
use equivalent::{Comparable, Equivalent};
use imbl::OrdMap;
use storage::Revision;

use crate::Stored;

/// Decides whether an object is selected.
pub type Matcher = Arc<dyn Fn(&dyn Object) -> bool + Send + Sync>;

/// A field by whose value objects are found without a scan, such as pods by `spec.nodeName`.
#[derive(Debug, Clone, Copy)]
pub struct Index {
    /// The name of the selectable field.
    pub field: &'static str,
    /// The field's value.
    pub value: fn(&dyn Object) -> Option<String>,
}

/// The part of a resource that a list or a watch can be about; only changes inside it wake a watcher.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Every object.
    All,
    /// The objects of a namespace.
    Namespace(Arc<str>),
    /// One object, by its key.
    Object(Arc<str>),
    /// The objects whose index of this position has this value.
    Indexed(usize, Arc<str>),
}

impl Scope {
    /// Whether the object at `key` is in the scope; an index looks at the object.
    pub(crate) fn contains(&self, stored: &Stored, indexes: &[Index]) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(namespace) => namespace_of(stored.key()) == Some(namespace),
            Self::Object(key) => stored.key() == key,
            Self::Indexed(at, value) => {
                indexes.get(*at).is_some_and(|index| stored.look(index.value).as_deref() == Some(value))
            }
        }
    }
}

pub(crate) fn namespace_of(key: &str) -> Option<&str> {
    key.split_once('/').map(|(namespace, _)| namespace)
}

/// A value of an index and the key of an object that has it.
type Place = (Arc<str>, Arc<str>);
type ByValue = OrdMap<Place, Arc<Stored>>;

/// Numbers for what changes lead to, in this process.
static EDITIONS: AtomicU64 = AtomicU64::new(1);

/// The objects of a resource at a revision. Clones share everything.
#[derive(Clone)]
pub struct Snapshot {
    revision: Revision,
    /// Snapshots of the same number have the same objects.
    edition: u64,
    objects: OrdMap<Arc<str>, Arc<Stored>>,
    indexes: Arc<[Index]>,
    by_value: Vec<ByValue>,
    size_bytes: usize,
}

impl Snapshot {
    pub(crate) fn empty(revision: Revision, indexes: Arc<[Index]>) -> Self {
        let by_value = indexes.iter().map(|_| ByValue::new()).collect();
        Self { revision, edition: 0, objects: OrdMap::new(), indexes, by_value, size_bytes: 0 }
    }

    /// The revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// About how many bytes the objects take, by their stored size.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Whether nothing was changed between the two, which is told without looking at any object.
    #[must_use]
    pub fn has_same_objects(&self, other: &Self) -> bool {
        self.edition == other.edition
    }

    /// One object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    /// The objects whose keys start with `prefix` (empty, or ending in `/`) and are not before `from`, in key order.
    pub fn range<'a>(&'a self, prefix: &str, from: &str) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
        let start = if from > prefix { from } else { prefix };
        // `0` follows `/`, so this is the first key past all keys with the prefix.
        let end = prefix.strip_suffix('/').map(|stem| format!("{stem}0"));
        let bounds: (Bound<&str>, Bound<&str>) =
            (Bound::Included(start), end.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
        // A start past the end would make the map panic.
        let empty = end.as_deref().is_some_and(|end| start >= end);
        (!empty).then(|| self.objects.range::<_, str>(bounds)).into_iter().flatten().map(|(_, stored)| stored)
    }

    /// The objects in a scope whose keys are not before `from`, in key order.
    pub fn scoped<'a>(&'a self, scope: &Scope, from: &str) -> Box<dyn Iterator<Item = &'a Arc<Stored>> + Send + 'a> {
        match scope {
            Scope::All => Box::new(self.range("", from)),
            Scope::Namespace(namespace) => Box::new(self.range(&format!("{namespace}/"), from)),
            Scope::Object(key) => Box::new(self.get(key).filter(|stored| **stored.key() >= *from).into_iter()),
            Scope::Indexed(at, value) => {
                let value = Arc::clone(value);
                let start = (Arc::clone(&value), Arc::from(from));
                let found = self.by_value.get(*at).into_iter().flat_map(move |map| map.range(start.clone()..));
                Box::new(found.take_while(move |((of, _), _)| *of == value).map(|(_, stored)| stored))
            }
        }
    }

    pub(crate) fn set_revision(&mut self, revision: Revision) {
        self.revision = revision;
    }

    /// Puts an object in or out, and gives what was there.
    pub(crate) fn replace(&mut self, key: &Arc<str>, stored: Option<Arc<Stored>>) -> Option<Arc<Stored>> {
        self.edition = EDITIONS.fetch_add(1, atomic::Ordering::Relaxed);
        let added = stored.as_ref().map_or(0, |stored| stored.size_bytes());
        let previous = match stored {
            Some(stored) => {
                let previous = self.objects.insert(Arc::clone(key), Arc::clone(&stored));
                self.reindex(previous.as_ref(), Some(&stored));
                previous
            }
            None => {
                let previous = self.objects.remove(key);
                self.reindex(previous.as_ref(), None);
                previous
            }
        };
        let removed = previous.as_ref().map_or(0, |stored| stored.size_bytes());
        self.size_bytes = (self.size_bytes + added).saturating_sub(removed);
        previous
    }

    /// Keeps an object in another way, where it is still of that version.
    pub(crate) fn keep_as(&mut self, stored: &Arc<Stored>) {
        let Some(kept) = self.objects.get(&**stored.key()).filter(|kept| kept.revision() == stored.revision()) else {
            return;
        };
        let kept = Arc::clone(kept);
        for (index, map) in self.indexes.iter().zip(&mut self.by_value) {
            if let Some(value) = kept.look(index.value) {
                insert(map, &value, stored);
            }
        }
        self.objects.insert(Arc::clone(stored.key()), Arc::clone(stored));
    }

    fn reindex(&mut self, previous: Option<&Arc<Stored>>, current: Option<&Arc<Stored>>) {
        // It goes into the log, where the same is asked of it again, so it had better be read once.
        if !self.indexes.is_empty() {
            previous.map(|stored| stored.object());
        }
        for (index, map) in self.indexes.iter().zip(&mut self.by_value) {
            let before = previous.and_then(|stored| Some((stored.look(index.value)?, stored)));
            let after = current.and_then(|stored| Some((stored.look(index.value)?, stored)));
            let stays = |before: &str| after.as_ref().is_some_and(|(after, _)| after == before);
            if let Some((before, stored)) = before.filter(|(before, _)| !stays(before)) {
                map.remove(&(Arc::from(before), Arc::clone(stored.key())));
            }
            if let Some((after, stored)) = after {
                insert(map, &after, stored);
            }
        }
    }
}

/// Notes under a value of an index that an object has it. All objects of a value share its text.
fn insert(map: &mut ByValue, value: &str, stored: &Arc<Stored>) {
    let first = map.get_next(&FirstOf(value)).filter(|((known, _), _)| **known == *value);
    let value = first.map_or_else(|| Arc::from(value), |((known, _), _)| Arc::clone(known));
    map.insert((value, Arc::clone(stored.key())), Arc::clone(stored));
}

/// The place before all objects of a value.
struct FirstOf<'a>(&'a str);

impl Equivalent<Place> for FirstOf<'_> {
    fn equivalent(&self, place: &Place) -> bool {
        self.compare(place).is_eq()
    }
}

impl Comparable<Place> for FirstOf<'_> {
    fn compare(&self, (value, key): &Place) -> Ordering {
        self.0.cmp(value).then_with(|| "".cmp(key))
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Snapshot({} objects@{})", self.objects.len(), self.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{indexes, stored};

    /// Kept as well by an object that is kept in another way, and by one that changes without changing its value.
    #[test]
    fn objects_of_a_value_share_its_text() {
        let mut snapshot = Snapshot::empty(Revision(1), indexes());
        let objects = [("b", 2, "red"), ("a", 3, "red"), ("c", 4, "blue"), ("b", 5, "red"), ("a", 6, "blue")];
        for (key, revision, colour) in objects {
            snapshot.replace(&key.into(), Some(stored(key, revision, colour)));
        }
        snapshot.keep_as(&stored("c", 4, "blue"));
        let places: Vec<_> = snapshot.by_value[0].keys().collect();
        let found: Vec<_> = places.iter().map(|(value, key)| [&**value, &**key]).collect();
        assert_eq!(found, [["blue", "a"], ["blue", "c"], ["red", "b"]]);
        assert!(Arc::ptr_eq(&places[0].0, &places[1].0));
    }
}
