//! Objects as the watch has them, overlaid with what plugins mean to write.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use api_machinery::object::{Kind, Object};
use client::ObjectKey;
use parking_lot::Mutex;

use crate::listers::{Lister, NotFound};

/// What a plugin means to write counts for as long as the watch shows the version that it was made from; any other
/// version, or a deletion, ends that.
pub(crate) struct AssumeCache<T> {
    lister: Lister<T>,
    assumed: Assumed<T>,
}

/// Shared with who hears of changes.
type Assumed<T> = Arc<Mutex<HashMap<ObjectKey, Arc<T>>>>;

/// An object cannot be assumed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AssumeError {
    /// It is gone.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// It was made from another version than the one that the watch shows.
    #[error("{kind} {name:?} is out of sync (stored: {stored}, assume: {assumed})")]
    OutOfSync {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What the watch shows.
        stored: String,
        /// What it was made from.
        assumed: String,
    },
}

impl<T: Kind + Object> AssumeCache<T> {
    pub(crate) fn new(lister: Lister<T>) -> Self {
        let assumed = Assumed::<T>::default();
        let held = Arc::clone(&assumed);
        lister.on_change(move |object| {
            if let Entry::Occupied(own) = held.lock().entry(ObjectKey::of(object.meta()))
                && own.get().meta().resource_version != object.meta().resource_version
            {
                own.remove();
            }
        });
        Self { lister, assumed }
    }

    /// What the watch shows.
    pub(crate) fn watched(&self) -> &Lister<T> {
        &self.lister
    }

    /// An object, as it is assumed to be.
    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.lister.find(namespace, name).map(|object| self.overlaid(object))
    }

    /// An object, as it is assumed to be.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Result<Arc<T>, NotFound> {
        self.lister.get(namespace, name).map(|object| self.overlaid(object))
    }

    /// The objects that an index of the watched ones has under a value, as they are assumed to be.
    pub(crate) fn by_index(&self, index: &str, value: &str) -> Vec<Arc<T>> {
        let objects = self.lister.by_index(index, value).into_iter();
        objects.map(|object| self.overlaid(object)).collect()
    }

    fn overlaid(&self, object: Arc<T>) -> Arc<T> {
        let assumed = self.assumed.lock();
        if assumed.is_empty() {
            return object;
        }
        // The watch may show another one that nobody has told of yet.
        let is_current = |own: &&Arc<T>| own.meta().resource_version == object.meta().resource_version;
        let own = assumed.get(&ObjectKey::of(object.meta())).filter(is_current).cloned();
        own.unwrap_or(object)
    }

    /// Takes an object for what it will be. It has the version that it was made from.
    ///
    /// # Errors
    /// When the watch shows another version, or none.
    pub(crate) fn assume(&self, object: Arc<T>) -> Result<(), AssumeError> {
        let meta = object.meta();
        let stored = self.lister.get(&meta.namespace, &meta.name)?;
        if stored.meta().resource_version != meta.resource_version {
            return Err(AssumeError::OutOfSync {
                kind: T::TYPE.kind,
                name: meta.name.clone(),
                stored: stored.meta().resource_version.clone(),
                assumed: meta.resource_version.clone(),
            });
        }
        let key = ObjectKey::of(meta);
        self.assumed.lock().insert(key, object);
        Ok(())
    }

    /// The object is again what the watch shows.
    pub(crate) fn restore(&self, object: &T) {
        self.assumed.lock().remove(&ObjectKey::of(object.meta()));
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::PersistentVolume;

    use super::*;
    use crate::listers::Listers;

    fn volume(version: &str, phase: &str) -> Arc<PersistentVolume> {
        let mut volume = PersistentVolume::default();
        volume.metadata.name = "v".into();
        volume.metadata.resource_version = version.into();
        volume.status.phase = phase.into();
        Arc::new(volume)
    }

    #[test]
    fn what_is_assumed_counts_until_the_watch_moves_on() {
        let lister = Listers::in_memory().of::<PersistentVolume>();
        let cache = AssumeCache::new(lister.clone());
        let phase = || cache.find("", "v").map(|volume| volume.status.phase.clone());
        assert_eq!(cache.assume(volume("1", "mine")).unwrap_err().to_string(), "persistentvolume \"v\" not found");
        lister.put(volume("1", "seen"));
        cache.assume(volume("1", "mine")).unwrap();
        assert_eq!(phase().as_deref(), Some("mine"));
        cache.restore(&volume("1", ""));
        assert_eq!(phase().as_deref(), Some("seen"));
        cache.assume(volume("1", "mine")).unwrap();
        lister.put(volume("2", "newer"));
        assert_eq!(phase().as_deref(), Some("newer"));
        assert!(cache.assumed.lock().is_empty(), "nothing is kept that no longer counts");
        let error = cache.assume(volume("1", "mine")).unwrap_err().to_string();
        assert_eq!(error, "PersistentVolume \"v\" is out of sync (stored: 2, assume: 1)");
        lister.put(volume("1", "seen"));
        assert_eq!(phase().as_deref(), Some("seen"), "a version that was seen ended it for good");
        cache.assume(volume("1", "mine")).unwrap();
        lister.remove("", "v");
        assert_eq!(phase(), None);
    }
}
