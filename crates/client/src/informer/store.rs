//! The objects of one kind and scope, by key and by index. Readers never wait for handlers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use api_machinery::object::Object;
use base::ByHash;
use parking_lot::RwLock;
use slab::Slab;

use crate::object_key::ObjectKey;

/// Names the values that an object is found under in one index.
type IndexFn<T> = Box<dyn Fn(&T) -> Vec<String> + Send + Sync>;

/// A set of objects with indexes, ordered by namespace and name so that walks are the same every time.
pub struct ObjectStore<T> {
    contents: RwLock<Contents<T>>,
}

/// Most changes are of objects that are there: they are found by a hash, and the order stays as it is.
struct Contents<T> {
    objects: Slab<Arc<T>>,
    /// Where each object is, in their order.
    order: BTreeMap<ObjectKey, usize>,
    by_hash: ByHash<usize>,
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

impl<T> Default for Contents<T> {
    fn default() -> Self {
        let (objects, order, by_hash, indexes) = Default::default();
        Self { objects, order, by_hash, indexes, version: String::new() }
    }
}

impl<T> Default for ObjectStore<T> {
    fn default() -> Self {
        Self { contents: RwLock::default() }
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
    fn place(&self, name: [&str; 2]) -> Option<usize> {
        let is_named = is_named::<T>(name);
        let hashed = self.by_hash.get(name, |at| self.objects.get(*at).is_some_and(|own| is_named(own)));
        if hashed.is_some() || self.by_hash.len() == self.objects.len() {
            return hashed.copied();
        }
        let [namespace, name] = name;
        self.order.get(&ObjectKey::new(namespace, name)).copied()
    }

    fn find(&self, name: [&str; 2]) -> Option<&Arc<T>> {
        self.objects.get(self.place(name)?)
    }

    /// All of them in their order, from a key on.
    fn from<'a>(&'a self, key: &ObjectKey) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<T>)> + use<'a, T> {
        self.order.range(key..).filter_map(|(key, at)| Some((key, self.objects.get(*at)?)))
    }

    fn all(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<T>)> {
        self.order.iter().filter_map(|(key, at)| Some((key, self.objects.get(*at)?)))
    }

    fn put(&mut self, key: &ObjectKey, object: &Arc<T>) -> Option<Arc<T>> {
        let found = self.place(name_of(key)).and_then(|at| self.objects.get_mut(at));
        let mut old = found.map(|slot| std::mem::replace(slot, Arc::clone(object)));
        if old.is_none() {
            let at = self.objects.insert(Arc::clone(object));
            self.by_hash.put(name_of(key), at);
            // One that is called otherwise than its key is not found by it.
            let former = self.order.insert(key.clone(), at);
            old = former.and_then(|at| self.objects.try_remove(at));
        }
        self.indexes.values_mut().for_each(|index| index.change(key, old.as_deref(), Some(object)));
        old
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Arc<T>> {
        let at = self.order.remove(key)?;
        self.by_hash.remove(name_of(key), |own| *own == at);
        let old = self.objects.try_remove(at)?;
        self.indexes.values_mut().for_each(|index| index.change(key, Some(&old), None));
        Some(old)
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
        for (key, object) in contents.all() {
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
        self.contents.read().all().map(|(_, object)| Arc::clone(object)).collect()
    }

    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.contents.read().order.keys().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.contents.read().objects.len()
    }

    /// The objects of a namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        let contents = self.contents.read();
        let from = contents.from(&ObjectKey::new(namespace, ""));
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
        self.contents.write().put(key, object)
    }

    /// Takes an object out and answers with it.
    pub fn remove(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.contents.write().remove(key)
    }

    /// Swaps the whole content at once and answers with the former one.
    pub(crate) fn replace(&self, objects: BTreeMap<ObjectKey, Arc<T>>, version: &str) -> BTreeMap<ObjectKey, Arc<T>> {
        let mut contents = self.contents.write();
        version.clone_into(&mut contents.version);
        contents.by_hash.clear();
        contents.indexes.values_mut().for_each(|index| index.keys.clear());
        let (order, mut former) = (std::mem::take(&mut contents.order), std::mem::take(&mut contents.objects));
        for (key, object) in &objects {
            contents.put(key, object);
        }
        order.into_iter().filter_map(|(key, at)| Some((key, former.try_remove(at)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::ConfigMap;
    use base::Rng;

    use super::*;

    fn config_map(key: &ObjectKey, version: usize) -> Arc<ConfigMap> {
        let mut map = ConfigMap::default();
        map.metadata.namespace.clone_from(&key.namespace);
        map.metadata.name.clone_from(&key.name);
        map.metadata.resource_version = version.to_string();
        Arc::new(map)
    }

    fn versions<'a>(objects: impl IntoIterator<Item = &'a Arc<ConfigMap>>) -> Vec<String> {
        objects.into_iter().map(|object| object.metadata.resource_version.clone()).collect()
    }

    #[test]
    fn a_store_behaves_like_an_ordered_map() {
        let (rng, store) = (Rng::seeded(7), ObjectStore::<ConfigMap>::default());
        store.add_index("even", |map| vec![(map.metadata.resource_version.len() % 2).to_string()]);
        let mut model: BTreeMap<ObjectKey, Arc<ConfigMap>> = BTreeMap::new();
        for version in 0..3_000 {
            let key = ObjectKey::new(format!("n{}", rng.below(3)), format!("k{}", rng.below(20)));
            let object = config_map(&key, version);
            let (old, expected) = match rng.below(100) {
                0 => {
                    let all: BTreeMap<_, _> =
                        model.iter().take(5).map(|(key, own)| (key.clone(), own.clone())).collect();
                    let former = store.replace(all.clone(), "1");
                    assert!(former == std::mem::replace(&mut model, all));
                    continue;
                }
                1..40 => (store.remove(&key), model.remove(&key)),
                _ => (store.put(&key, &object), model.insert(key.clone(), object)),
            };
            assert_eq!(versions(&old), versions(&expected), "{key}");
            assert_eq!(versions(&store.get(&key)), versions(model.get(&key)), "{key}");
        }
        assert_eq!((versions(&store.list()), store.len()), (versions(model.values()), model.len()));
        assert_eq!(store.keys(), model.keys().cloned().collect::<Vec<_>>());
        let of = |namespace: &str| model.values().filter(|map| map.metadata.namespace == namespace).collect::<Vec<_>>();
        assert_eq!(versions(&store.in_namespace("n1")), versions(of("n1")));
        let found = ["0", "1"].map(|value| store.by_index("even", value).len());
        assert_eq!(found.iter().sum::<usize>(), model.len());
    }

    #[test]
    fn one_that_is_called_otherwise_than_its_key_is_there_once() {
        let store = ObjectStore::<ConfigMap>::default();
        let (key, other) = (ObjectKey::new("n", "k"), ObjectKey::new("n", "other"));
        assert!(store.put(&key, &config_map(&other, 1)).is_none());
        assert_eq!(versions(&store.put(&key, &config_map(&other, 2))), ["1"]);
        assert_eq!((versions(&store.list()), versions(&store.remove(&key))), (vec!["2".into()], vec!["2".into()]));
        assert_eq!(store.len(), 0);
    }
}
