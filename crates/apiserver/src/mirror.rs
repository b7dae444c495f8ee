//! Typed copies of small kinds that are looked at with every request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api_machinery::object::{Kind, Object};
use base::TaskGroup;
use parking_lot::RwLock;
use registry::Registry;

use crate::follow::{Follower, follow};

/// Objects by name within a namespace; cluster-scoped ones are in the namespace "".
type Objects<T> = BTreeMap<String, BTreeMap<String, Arc<T>>>;

/// All objects of one kind.
pub(crate) struct Mirror<T> {
    objects: RwLock<Objects<T>>,
    synced: AtomicBool,
}

impl<T> Default for Mirror<T> {
    fn default() -> Self {
        Self { objects: RwLock::default(), synced: AtomicBool::new(false) }
    }
}

impl<T: Object + Kind> Mirror<T> {
    /// One object.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.objects.read().get(namespace)?.get(name).cloned()
    }

    /// The objects of a namespace.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        self.objects.read().get(namespace).map(|objects| objects.values().cloned().collect()).unwrap_or_default()
    }

    /// Whether it has been filled once.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    /// Follows the registry for as long as the tasks live.
    pub(crate) fn follow(self: &Arc<Self>, registry: &Registry, tasks: &TaskGroup) {
        let place = (T::TYPE.group, T::TYPE.version, T::TYPE.resource);
        follow(registry, place, Arc::clone(self) as _, tasks);
    }
}

impl<T: Object + Kind> Follower for Mirror<T> {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        let Some(object) = object.downcast_ref::<T>() else { return };
        let meta = object.meta();
        let mut objects = self.objects.write();
        objects.entry(meta.namespace.clone()).or_default().insert(meta.name.clone(), Arc::new(object.clone()));
    }

    fn gone(&self, namespace: &str, name: &str) {
        let mut objects = self.objects.write();
        if let Some(names) = objects.get_mut(namespace) {
            names.remove(name);
            if names.is_empty() {
                objects.remove(namespace);
            }
        }
    }

    fn complete(&self) {
        self.synced.store(true, Ordering::Release);
    }
}
