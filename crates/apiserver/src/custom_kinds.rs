//! What handlers must know of kinds that come and go at run time: their schemas.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use api_machinery::object::{Object, Unstructured};
use api_machinery::value::Value;
use api_types::apiextensions_v1::CustomResourceDefinition;
use kinds::apiextensions_v1::schema_of;
use parking_lot::RwLock;
use schema::Structural;
use schema::apply::CustomVersions;

/// The schema of one version of a definition. It is unpacked when it is first needed: of most definitions that are
/// installed there are no objects, and what is unpacked is larger than the definition.
pub(crate) struct VersionSchema {
    /// The definition, which its cache holds as well.
    definition: RwLock<Arc<dyn Object>>,
    version: String,
    unpacked: OnceLock<Structural>,
}

impl VersionSchema {
    /// The schema of a version by name.
    pub(crate) fn new(definition: &Arc<dyn Object>, version: &str) -> Self {
        let definition = RwLock::new(Arc::clone(definition));
        Self { definition, version: version.to_owned(), unpacked: OnceLock::new() }
    }

    /// Holds the definition as its cache holds it now, with the same schema, in the place of what the cache has let go of.
    pub(crate) fn hold(&self, definition: &Arc<dyn Object>) {
        *self.definition.write() = Arc::clone(definition);
    }

    /// A schema that is unpacked already.
    #[cfg(test)]
    pub(crate) fn of(schema: Structural) -> Self {
        let definition = RwLock::new(Arc::new(CustomResourceDefinition::default()) as _);
        Self { definition, version: String::new(), unpacked: OnceLock::from(schema) }
    }

    /// As the definition has it.
    pub(crate) fn declared(&self) -> Value {
        let definition = Arc::clone(&self.definition.read());
        let definition = definition.downcast_ref::<CustomResourceDefinition>();
        let mut versions = definition.into_iter().flat_map(|definition| &definition.spec.versions);
        versions.find(|own| own.name == self.version).map(schema_of).unwrap_or_default()
    }
}

impl std::fmt::Debug for VersionSchema {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("VersionSchema").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Deref for VersionSchema {
    type Target = Structural;

    fn deref(&self) -> &Structural {
        self.unpacked.get_or_init(|| Structural::root(&self.declared()))
    }
}

/// `apiVersion` and schema of each version of a definition.
#[derive(Debug, Default)]
pub(crate) struct VersionSchemas(pub(crate) Vec<(String, Arc<VersionSchema>)>);

impl CustomVersions for VersionSchemas {
    fn has(&self, api_version: &str) -> bool {
        self.0.iter().any(|(name, _)| name == api_version)
    }

    fn schema(&self, api_version: &str) -> Option<&Structural> {
        self.0.iter().find(|(name, _)| name == api_version).map(|(_, schema)| &***schema)
    }
}

/// The schema of a custom kind in one version.
#[derive(Debug, Clone)]
pub(crate) struct CustomKind {
    /// The structural schema.
    pub schema: Arc<VersionSchema>,
    /// The kind of lists.
    pub list_kind: String,
    /// Where the scale subresource finds the wanted replicas; empty without one.
    pub replicas_path: String,
    /// What clients are told at every request; nothing unless the version is deprecated.
    pub deprecation: Option<String>,
    /// Whether unknown fields are kept everywhere.
    pub preserve_unknown_fields: bool,
    /// Every version of the definition.
    pub versions: Arc<VersionSchemas>,
}

impl CustomKind {
    /// Removes the fields that the schema does not know, and names them as strict decoding does.
    pub(crate) fn prune(&self, object: &mut Unstructured) -> Vec<String> {
        if self.preserve_unknown_fields {
            return Vec::new();
        }
        prune(object, &self.schema).into_iter().map(|path| format!("unknown field {path:?}")).collect()
    }
}

/// Removes the fields that a schema does not know, and gives their paths.
pub(crate) fn prune(object: &mut Unstructured, schema: &Structural) -> Vec<String> {
    let mut content = Value::Object(std::mem::take(&mut object.content).into_iter().collect());
    let unknown = schema::structural::prune(&mut content, schema);
    if let Value::Object(content) = content {
        object.content = content.into_iter().collect();
    }
    unknown
}

/// The kinds of a group, by version and resource.
type Versions = HashMap<(String, String), Arc<CustomKind>>;

/// The custom kinds that are served, by group: requests for built-in ones ask here as well, and find no such group.
#[derive(Debug, Default)]
pub(crate) struct CustomKinds {
    served: RwLock<HashMap<String, Versions>>,
    /// Group and resource of the definitions that are being deleted.
    terminating: RwLock<HashSet<(String, String)>>,
}

impl CustomKinds {
    /// Adds or replaces a kind.
    pub(crate) fn insert(&self, group: &str, version: &str, resource: &str, kind: Arc<CustomKind>) {
        let place = (version.to_owned(), resource.to_owned());
        self.served.write().entry(group.to_owned()).or_default().insert(place, kind);
    }

    /// Removes a kind.
    pub(crate) fn remove(&self, group: &str, version: &str, resource: &str) {
        let mut served = self.served.write();
        let Some(versions) = served.get_mut(group) else { return };
        versions.remove(&(version.to_owned(), resource.to_owned()));
        if versions.is_empty() {
            served.remove(group);
        }
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
        self.served.read().get(group)?.get(&(version.to_owned(), resource.to_owned())).cloned()
    }
}
