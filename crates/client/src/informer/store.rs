//! The objects of one kind and scope, by key and by index. Readers never wait for handlers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::object_key::ObjectKey;
use crate::resource::ApiObject;

/// Names the values that an object is found under in one index.
pub(crate) type IndexFn<T> = Arc<dyn Fn(&T) -> Vec<String> + Send + Sync>;

/// A set of objects with indexes, ordered by namespace and name so that walks are the same every time.
pub(crate) struct Store<T> {
    contents: RwLock<Contents<T>>,
}

struct Contents<T> {
    objects: BTreeMap<ObjectKey, Arc<T>>,
    indexes: BTreeMap<&'static str, Index<T>>,
    version: String,
}

struct Index<T> {
    values_of: IndexFn<T>,
    keys: BTreeMap<String, BTreeSet<ObjectKey>>,
}

impl<T> Index<T> {
    fn add(&mut self, key: &ObjectKey, object: &T) {
        for value in (self.values_of)(object) {
            self.keys.entry(value).or_default().insert(key.clone());
        }
    }

    fn remove(&mut self, key: &ObjectKey, object: &T) {
        for value in (self.values_of)(object) {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
    }
}

impl<T: ApiObject> Store<T> {
    pub(crate) fn new() -> Self {
        let contents = Contents { objects: BTreeMap::new(), indexes: BTreeMap::new(), version: String::new() };
        Self { contents: RwLock::new(contents) }
    }

    /// Adds an index over what is there and what comes; one of the same name stays as it is.
    pub(crate) fn add_index(&self, name: &'static str, values_of: IndexFn<T>) {
        let mut contents = self.contents.write();
        if contents.indexes.contains_key(name) {
            return;
        }
        let mut index = Index { values_of, keys: BTreeMap::new() };
        for (key, object) in &contents.objects {
            index.add(key, object);
        }
        contents.indexes.insert(name, index);
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.contents.read().objects.get(key).cloned()
    }

    pub(crate) fn list(&self) -> Vec<Arc<T>> {
        self.contents.read().objects.values().cloned().collect()
    }

    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.contents.read().objects.keys().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.contents.read().objects.len()
    }

    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        let contents = self.contents.read();
        let from = contents.objects.range(ObjectKey::new(namespace, "")..);
        from.take_while(|(key, _)| key.namespace == namespace).map(|(_, object)| Arc::clone(object)).collect()
    }

    pub(crate) fn by_index(&self, name: &str, value: &str) -> Vec<Arc<T>> {
        let contents = self.contents.read();
        let keys = contents.indexes.get(name).and_then(|index| index.keys.get(value));
        keys.into_iter().flatten().filter_map(|key| contents.objects.get(key).cloned()).collect()
    }

    pub(crate) fn index_values(&self, name: &str) -> Vec<String> {
        let contents = self.contents.read();
        contents.indexes.get(name).map(|index| index.keys.keys().cloned().collect()).unwrap_or_default()
    }

    pub(crate) fn version(&self) -> String {
        self.contents.read().version.clone()
    }

    pub(crate) fn advance(&self, version: &str) {
        version.clone_into(&mut self.contents.write().version);
    }

    /// Puts an object in and answers with the one it replaces.
    pub(crate) fn put(&self, key: &ObjectKey, object: &Arc<T>) -> Option<Arc<T>> {
        let mut contents = self.contents.write();
        let Contents { objects, indexes, .. } = &mut *contents;
        let old = objects.insert(key.clone(), Arc::clone(object));
        for index in indexes.values_mut() {
            if let Some(old) = &old {
                index.remove(key, old);
            }
            index.add(key, object);
        }
        old
    }

    pub(crate) fn remove(&self, key: &ObjectKey) -> Option<Arc<T>> {
        let mut contents = self.contents.write();
        let Contents { objects, indexes, .. } = &mut *contents;
        let old = objects.remove(key)?;
        for index in indexes.values_mut() {
            index.remove(key, &old);
        }
        Some(old)
    }

    /// Swaps the whole content at once and answers with the former one.
    pub(crate) fn replace(&self, objects: BTreeMap<ObjectKey, Arc<T>>, version: &str) -> BTreeMap<ObjectKey, Arc<T>> {
        let mut contents = self.contents.write();
        version.clone_into(&mut contents.version);
        let former = std::mem::replace(&mut contents.objects, objects);
        let Contents { objects, indexes, .. } = &mut *contents;
        for index in indexes.values_mut() {
            index.keys.clear();
            for (key, object) in objects.iter() {
                index.add(key, object);
            }
        }
        former
    }
}
