//! What other servers said last about one subject, with the tag by which they are asked whether it is still so.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

/// What was said, by the names of APIServices.
pub(super) struct Known<T> {
    said: RwLock<BTreeMap<String, Said<T>>>,
    generation: AtomicU64,
}

struct Said<T> {
    tag: Option<String>,
    value: T,
}

/// What has become of something that is said, in the words of upstream's metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Add,
    Update,
    Delete,
}

impl Change {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { said: RwLock::default(), generation: AtomicU64::new(0) }
    }
}

impl<T: Clone + PartialEq> Known<T> {
    /// Counts the changes.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn of(&self, name: &str) -> Option<T> {
        self.said.read().get(name).map(|said| said.value.clone())
    }

    pub(super) fn tag(&self, name: &str) -> Option<String> {
        self.said.read().get(name).and_then(|said| said.tag.clone())
    }

    /// Notes what a server says; tells whether that is new.
    pub(super) fn put(&self, name: &str, tag: Option<String>, value: T) -> Option<Change> {
        let former = self.said.write().insert(name.to_owned(), Said { tag, value: value.clone() });
        let change = match former {
            None => Change::Add,
            Some(former) if former.value != value => Change::Update,
            Some(_) => return None,
        };
        self.count(change)
    }

    /// Drops what a server said; tells whether there was anything.
    pub(super) fn forget(&self, name: &str) -> Option<Change> {
        self.said.write().remove(name)?;
        self.count(Change::Delete)
    }

    fn count(&self, change: Change) -> Option<Change> {
        self.generation.fetch_add(1, Ordering::AcqRel);
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_counts() {
        let known = Known::default();
        assert_eq!(known.forget("a"), None);
        assert_eq!(known.put("a", Some("1".to_owned()), "x"), Some(Change::Add));
        assert_eq!(known.put("a", Some("2".to_owned()), "x"), None, "another tag of the same is nothing new");
        assert_eq!((known.tag("a").as_deref(), known.of("a"), known.generation()), (Some("2"), Some("x"), 1));
        assert_eq!(known.put("a", None, "y"), Some(Change::Update));
        assert_eq!(known.forget("a"), Some(Change::Delete));
        assert_eq!((known.of("a"), known.tag("a"), known.generation()), (None, None, 3));
    }
}
