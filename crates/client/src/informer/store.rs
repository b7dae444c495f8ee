//! The objects of one kind and scope, by key and by index. Readers never wait for handlers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use api_machinery::object::Object;
use base::ByHash;
use parking_lot::RwLock;

use crate::object_key::ObjectKey;

/// Names the values that an object is found under in one index.
type IndexFn<T> = Box<dyn Fn(&T) -> Vec<String> + Send + Sync>;

/// A set of objects with indexes, ordered by namespace and name so that walks are the same every time.
pub struct ObjectStore<T> {
    contents: RwLock<Contents<T>>,
}

struct Contents<T> {
    objects: BTreeMap<ObjectKey, Arc<T>>,
    by_hash: ByHash<T>,
    indexes: BTreeMap<&'static str, Index<T>>,
    version: String,
}

struct Index<T> {
    values_of: IndexFn<T>,
    keys: HashMap<String, BTreeSet<ObjectKey>>,
}

impl<T> Index<T> {
    /// An object comes, changes or goes; most changes do not change what it is found under.
    fn change(&mut self, key: &ObjectKey, old: Option<&T>, new: Option<&T>) {
        let values = |object: Option<&T>| object.map(&self.values_of).unwrap_or_default();
        let (before, now) = (values(old), values(new));
        if before == now {
            return;
        }
        for value in before {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
        for value in now {
            self.keys.entry(value).or_default().insert(key.clone());
        }
    }
}

impl<T> Default for ObjectStore<T> {
    fn default() -> Self {
        let (objects, indexes) = (BTreeMap::new(), BTreeMap::new());
        let contents = Contents { objects, by_hash: ByHash::default(), indexes, version: String::new() };
        Self { contents: RwLock::new(contents) }
    }
}

fn name_of(key: &ObjectKey) -> [&str; 2] {
    [&key.namespace, &key.name]
}

/// Whether an object has this namespace and name.
fn is_named<T: Object>([namespace, name]: [&str; 2]) -> impl FnOnce(&T) -> bool {
    move |object| {
        let meta = object.meta();
        meta.name == name && meta.namespace == namespace
    }
}

impl<T: Object> Contents<T> {
    fn find(&self, name: [&str; 2]) -> Option<&Arc<T>> {
        let hashed = self.by_hash.get(name, is_named(name));
        if hashed.is_some() || self.by_hash.len() == self.objects.len() {
            return hashed;
        }
        let [namespace, name] = name;
        self.objects.get(&ObjectKey::new(namespace, name))
    }
}

impl<T: Object> ObjectStore<T> {
    /// Adds an index over what is there and what comes; one of the same name stays as it is.
    pub fn add_index(&self, name: &'static str, values_of: impl Fn(&T) -> Vec<String> + Send + Sync + 'static) {
        let mut contents = self.contents.write();
        if contents.indexes.contains_key(name) {
            return;
        }
        let mut index = Index { values_of: Box::new(values_of), keys: HashMap::new() };
        for (key, object) in &contents.objects {
            index.change(key, None, Some(object));
        }
        contents.indexes.insert(name, index);
    }

    /// The object of a key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.find(&key.namespace, &key.name)
    }

    /// The object of this name.
    #[must_use]
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.contents.read().find([namespace, name]).cloned()
    }

    /// All objects.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<T>> {
        self.contents.read().objects.values().cloned().collect()
    }

    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.contents.read().objects.keys().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.contents.read().objects.len()
    }

    /// The objects of a namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        let contents = self.contents.read();
        let from = contents.objects.range(ObjectKey::new(namespace, "")..);
        from.take_while(|(key, _)| key.namespace == namespace).map(|(_, object)| Arc::clone(object)).collect()
    }

    /// The objects that an index has under a value.
    #[must_use]
    pub fn by_index(&self, name: &str, value: &str) -> Vec<Arc<T>> {
        let contents = self.contents.read();
        let keys = contents.indexes.get(name).and_then(|index| index.keys.get(value));
        keys.into_iter().flatten().filter_map(|key| contents.find(name_of(key)).cloned()).collect()
    }

    pub(crate) fn index_values(&self, name: &str) -> Vec<String> {
        let contents = self.contents.read();
        let mut values: Vec<String> =
            contents.indexes.get(name).map(|index| index.keys.keys().cloned().collect()).unwrap_or_default();
        values.sort_unstable();
        values
    }

    pub(crate) fn version(&self) -> String {
        self.contents.read().version.clone()
    }

    pub(crate) fn advance(&self, version: &str) {
        version.clone_into(&mut self.contents.write().version);
    }

    /// Puts an object in and answers with the one it replaces.
    pub fn put(&self, key: &ObjectKey, object: &Arc<T>) -> Option<Arc<T>> {
        let mut contents = self.contents.write();
        let Contents { objects, by_hash, indexes, .. } = &mut *contents;
        by_hash.put(name_of(key), object);
        let Some(slot) = objects.get_mut(key) else {
            objects.insert(key.clone(), Arc::clone(object));
            indexes.values_mut().for_each(|index| index.change(key, None, Some(object)));
            return None;
        };
        let old = std::mem::replace(slot, Arc::clone(object));
        indexes.values_mut().for_each(|index| index.change(key, Some(&old), Some(object)));
        Some(old)
    }

    /// Takes an object out and answers with it.
    pub fn remove(&self, key: &ObjectKey) -> Option<Arc<T>> {
        let mut contents = self.contents.write();
        let Contents { objects, by_hash, indexes, .. } = &mut *contents;
        by_hash.remove(name_of(key), is_named(name_of(key)));
        let old = objects.remove(key)?;
        for index in indexes.values_mut() {
            index.change(key, Some(&old), None);
        }
        Some(old)
    }

    /// Swaps the whole content at once and answers with the former one.
    pub(crate) fn replace(&self, objects: BTreeMap<ObjectKey, Arc<T>>, version: &str) -> BTreeMap<ObjectKey, Arc<T>> {
        let mut contents = self.contents.write();
        version.clone_into(&mut contents.version);
        let former = std::mem::replace(&mut contents.objects, objects);
        let Contents { objects, by_hash, indexes, .. } = &mut *contents;
        by_hash.clear();
        for (key, object) in objects.iter() {
            by_hash.put(name_of(key), object);
        }
        for index in indexes.values_mut() {
            index.keys.clear();
            for (key, object) in objects.iter() {
                index.change(key, None, Some(object));
            }
        }
        former
    }
}
