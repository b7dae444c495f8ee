//! What handlers must know of kinds that come and go at run time: their schemas.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use api_machinery::object::Unstructured;
use api_machinery::value::Value;
use arc_swap::ArcSwap;
use parking_lot::RwLock;
use schema::Structural;

/// Group, version and plural resource name.
type Key = (String, String, String);

/// `apiVersion` and schema of each version of a definition.
pub(crate) type VersionSchemas = Arc<[(String, Arc<Structural>)]>;

/// The schema of a custom kind in one version.
#[derive(Debug, Clone)]
pub(crate) struct CustomKind {
    /// The structural schema.
    pub schema: Arc<Structural>,
    /// The kind of lists.
    pub list_kind: String,
    /// Where the scale subresource finds the wanted replicas; empty without one.
    pub replicas_path: String,
    /// What clients are told at every request; nothing unless the version is deprecated.
    pub deprecation: Option<String>,
    /// Whether unknown fields are kept everywhere.
    pub preserve_unknown_fields: bool,
    /// Every version of the definition.
    pub versions: VersionSchemas,
}

impl CustomKind {
    /// Removes the fields that the schema does not know, and names them as strict decoding does.
    pub(crate) fn prune(&self, object: &mut Unstructured) -> Vec<String> {
        if self.preserve_unknown_fields {
            return Vec::new();
        }
        let mut content = Value::Object(std::mem::take(&mut object.content).into_iter().collect());
        let unknown = schema::structural::prune(&mut content, &self.schema);
        if let Value::Object(content) = content {
            object.content = content.into_iter().collect();
        }
        unknown.into_iter().map(|path| format!("unknown field {path:?}")).collect()
    }
}

/// The custom kinds that are served, by group, version and resource.
#[derive(Debug, Default)]
pub(crate) struct CustomKinds {
    served: ArcSwap<HashMap<Key, Arc<CustomKind>>>,
    /// Group and resource of the definitions that are being deleted.
    terminating: RwLock<HashSet<(String, String)>>,
}

fn key(group: &str, version: &str, resource: &str) -> Key {
    (group.to_owned(), version.to_owned(), resource.to_owned())
}

impl CustomKinds {
    /// Adds or replaces a kind.
    pub(crate) fn insert(&self, group: &str, version: &str, resource: &str, kind: Arc<CustomKind>) {
        self.served.rcu(|kinds| {
            let mut kinds = HashMap::clone(kinds);
            kinds.insert(key(group, version, resource), Arc::clone(&kind));
            kinds
        });
    }

    /// Removes a kind.
    pub(crate) fn remove(&self, group: &str, version: &str, resource: &str) {
        self.served.rcu(|kinds| {
            let mut kinds = HashMap::clone(kinds);
            kinds.remove(&key(group, version, resource));
            kinds
        });
    }

    /// Notes whether the definition of a resource is being deleted.
    pub(crate) fn set_terminating(&self, group: &str, resource: &str, terminating: bool) {
        let place = (group.to_owned(), resource.to_owned());
        let mut all = self.terminating.write();
        if terminating {
            all.insert(place)
        } else {
            all.remove(&place)
        };
    }

    /// Whether the definition of a resource is being deleted.
    #[must_use]
    pub(crate) fn is_terminating(&self, group: &str, resource: &str) -> bool {
        let all = self.terminating.read();
        !all.is_empty() && all.contains(&(group.to_owned(), resource.to_owned()))
    }

    /// Finds a kind.
    #[must_use]
    pub(crate) fn get(&self, group: &str, version: &str, resource: &str) -> Option<Arc<CustomKind>> {
        self.served.load().get(&key(group, version, resource)).cloned()
    }
}
