//! The objects and the changes of the fake server.

use std::collections::{BTreeMap, VecDeque};

use api_machinery::value::Value;

/// One change, as watches send it.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) resource: String,
    pub(super) kind: &'static str,
    pub(super) object: Value,
}

#[derive(Default)]
pub(super) struct Store {
    version: u64,
    /// By resource, then by namespace and name.
    objects: BTreeMap<String, BTreeMap<(String, String), Value>>,
    pub(super) log: Vec<Change>,
    /// Watches from before this version get 410.
    pub(super) oldest: u64,
    /// Counts up when running watches have to end.
    pub(super) generation: u64,
    pub(super) initial_events: bool,
    pub(super) failures: BTreeMap<String, VecDeque<u16>>,
    pub(super) requests: Vec<String>,
}

/// A member of an object as text, empty where there is none.
pub(super) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    path.iter().try_fold(object, |value, name| value.get(name)).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn set(object: &mut Value, path: &[&str], value: Value) {
    let (Some((last, parents)), true) = (path.split_last(), object.is_object()) else { return };
    let mut at = object;
    for name in parents {
        if !at[*name].is_object() {
            at[*name] = Value::Object(Default::default());
        }
        at = &mut at[*name];
    }
    at[*last] = value;
}

fn key(object: &Value) -> (String, String) {
    (text(object, &["metadata", "namespace"]).to_owned(), text(object, &["metadata", "name"]).to_owned())
}

impl Store {
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn cut_watches(&mut self) {
        self.generation += 1;
    }

    pub(super) fn compact(&mut self) {
        self.log.clear();
        self.version += 1;
        self.oldest = self.version;
    }

    pub(super) fn bookmark(&mut self) {
        self.version += 1;
        let change = Change { version: self.version, resource: String::new(), kind: "BOOKMARK", object: Value::Null };
        self.log.push(change);
    }

    pub(super) fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(resource)?.get(&(namespace.to_owned(), name.to_owned()))
    }

    pub(super) fn objects(&self, resource: &str) -> Vec<Value> {
        self.objects.get(resource).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// Stores an object at a new version and answers with it.
    pub(super) fn put(&mut self, resource: &str, mut object: Value) -> Value {
        self.version += 1;
        set(&mut object, &["metadata", "resourceVersion"], self.version.to_string().into());
        if text(&object, &["metadata", "uid"]).is_empty() {
            let (namespace, name) = key(&object);
            let former =
                self.get(resource, &namespace, &name).map(|former| text(former, &["metadata", "uid"]).to_owned());
            let uid = former.unwrap_or_else(|| format!("uid-{}", self.version));
            set(&mut object, &["metadata", "uid"], uid.into());
        }
        if text(&object, &["metadata", "creationTimestamp"]).is_empty() {
            set(&mut object, &["metadata", "creationTimestamp"], "2026-01-01T00:00:00Z".into());
        }
        let former = self.objects.entry(resource.to_owned()).or_default().insert(key(&object), object.clone());
        let kind = if former.is_some() { "MODIFIED" } else { "ADDED" };
        self.log.push(Change { version: self.version, resource: resource.to_owned(), kind, object: object.clone() });
        object
    }

    pub(super) fn remove(&mut self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let place = (namespace.to_owned(), name.to_owned());
        let mut object = self.objects.get_mut(resource)?.remove(&place)?;
        self.version += 1;
        set(&mut object, &["metadata", "resourceVersion"], self.version.to_string().into());
        let change =
            Change { version: self.version, resource: resource.to_owned(), kind: "DELETED", object: object.clone() };
        self.log.push(change);
        Some(object)
    }
}
