//! Objects as a controller knows them: out of the informer, or as the controller itself wrote them where the informer has
//! not heard of that yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use client::{ApiObject, Informer, ObjectKey};
use parking_lot::Mutex;

/// The newest state of each object. What was written is kept until the informer has it, so it is bounded by the
/// objects that exist.
pub(super) struct Newest<T> {
    informer: Informer<T>,
    written: Mutex<BTreeMap<ObjectKey, Arc<T>>>,
}

impl<T: ApiObject> Newest<T> {
    pub(super) fn new(informer: Informer<T>) -> Self {
        Self { informer, written: Mutex::default() }
    }

    /// Where objects are read in bulk; what is found there is to be looked up here.
    pub(super) fn informer(&self) -> &Informer<T> {
        &self.informer
    }

    /// The object, if the informer has it at all: what is gone for it is gone.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        let seen = self.informer.get(key);
        let mut written = self.written.lock();
        let Some(own) = written.get(key) else { return seen };
        if let Some(seen) = &seen
            && is_newer(own.meta(), seen.meta())
        {
            return Some(Arc::clone(own));
        }
        written.remove(key);
        seen
    }

    /// The newest state of an object that the informer showed.
    pub(super) fn of(&self, seen: &Arc<T>) -> Arc<T> {
        self.get(&ObjectKey::of(seen.meta())).unwrap_or_else(|| Arc::clone(seen))
    }

    /// The object was written like this.
    pub(super) fn wrote(&self, object: T) -> Arc<T> {
        let (key, object) = (ObjectKey::of(object.meta()), Arc::new(object));
        self.written.lock().insert(key.clone(), Arc::clone(&object));
        // Drops it again should the object be gone by now.
        drop(self.get(&key));
        object
    }
}

/// Whether this is the same object, written later. Versions that are no numbers tell nothing.
fn is_newer(own: &ObjectMeta, seen: &ObjectMeta) -> bool {
    let version = |meta: &ObjectMeta| meta.resource_version.parse::<u64>();
    own.uid == seen.uid && version(own).is_ok_and(|own| version(seen).is_ok_and(|seen| own > seen))
}

#[cfg(test)]
mod tests {
    use api_machinery::object::Object;
    use api_types::core_v1::PersistentVolume;
    use client::fake::FakeServer;
    use client::{InformerOptions, Informers};

    use super::*;

    fn volume(uid: &str, version: &str, class: &str) -> PersistentVolume {
        let mut volume = PersistentVolume::default();
        (volume.metadata.name, volume.metadata.uid) = ("v".into(), uid.into());
        volume.metadata.resource_version = version.into();
        volume.spec.storage_class_name = class.into();
        volume
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_written_counts_until_it_is_seen() {
        let server = FakeServer::new();
        server.put("v1/persistentvolumes", (&volume("u", "", "seen") as &dyn Object).to_value());
        let informer = Informers::new(&server.client(), InformerOptions::default()).of::<PersistentVolume>();
        informer.start();
        informer.wait_synced().await;
        let volumes = Newest::new(informer.clone());
        let key = ObjectKey::cluster("v");
        let class = || volumes.get(&key).map(|volume| volume.spec.storage_class_name.clone());
        assert_eq!(class().as_deref(), Some("seen"));
        for (name, written, expected) in [
            ("older", volume("u", "0", "old"), "seen"),
            ("of another", volume("other", "99", "foreign"), "seen"),
            ("no number", volume("u", "x", "odd"), "seen"),
            ("newer", volume("u", "99", "own"), "own"),
        ] {
            volumes.wrote(written);
            assert_eq!(class().as_deref(), Some(expected), "{name}");
        }
        server.remove("v1/persistentvolumes", "", "v");
        while informer.get(&key).is_some() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert_eq!(class(), None, "what is gone is gone");
        volumes.wrote(volume("u", "100", "late"));
        assert!(volumes.written.lock().is_empty(), "nothing is kept of it");
    }
}
