//! OpenAPI documents: one v3 document per group version, and the one v2 document of everything.
//!
//! Both are built from the same two lists: models (tables of built-in kinds, or schemas of custom resources) and
//! operations (which verbs each resource has). `kubectl explain`, client-side checks and generated clients read them.
//! Concept: <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-interface-definition>

use std::hash::{Hash, Hasher};

use api_machinery::gvk::GroupVersionKind;
use api_machinery::reflect::StructType;
use serde_json::Value;

mod custom;
mod models;
mod operations;
pub(crate) mod registered;
mod swagger;
mod v2;
mod v3;
mod wire;

pub use models::{Choices, Dialect, definitions};
pub use swagger::Swagger;
pub use v2::swagger;
pub use v3::{OwnPath, group_document, own_document, root_document, version_document};
pub use wire::{swagger_protobuf, version3_protobuf};

/// What a resource's objects look like.
#[derive(Clone, Copy)]
pub enum Model<'a> {
    /// A built-in struct.
    Table(&'static StructType),
    /// A custom resource: its model name and `openAPIV3Schema`.
    Custom {
        /// Name of the model, such as `com.example.stable.v1.CronTab`.
        name: &'a str,
        /// The schema as declared.
        schema: &'a Value,
    },
}

impl Hash for Model<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            // There is one struct of a name, and it is the same for as long as the program is.
            Self::Table(of) => (of.package, of.name).hash(state),
            Self::Custom { name, schema } => (name, schema).hash(state),
        }
    }
}

/// One resource or subresource of a group version, as plain data.
#[derive(Clone, Hash)]
pub struct Resource<'a> {
    /// The group version it is served in, and the kind that its operations name.
    pub gvk: GroupVersionKind,
    /// The group it is served in; differs from that of the kind for `pods/eviction` and `scale`.
    pub group: &'a str,
    /// The version it is served in.
    pub version: &'a str,
    /// Plural name.
    pub name: &'a str,
    /// The kind of the main resource, for operation ids.
    pub parent_kind: &'a str,
    /// The subresource; empty for the main resource.
    pub subresource: &'a str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// `get list watch create update patch delete deletecollection`, as discovery shows them.
    pub verbs: Vec<&'a str>,
    /// Whether a deletion is said to answer with the object; else with a `Status`.
    pub returns_deleted: bool,
    /// What its objects look like; absent for subresources that only connect.
    pub model: Option<Model<'a>>,
}

impl Resource<'_> {
    fn has(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// `/api/v1` or `/apis/{group}/{version}`.
    fn prefix(&self) -> String {
        version_prefix(self.group, self.version)
    }

    /// The name of the model of one object.
    fn model_name(&self) -> Option<String> {
        match self.model? {
            Model::Table(table) => Some(models::table_name(table)),
            Model::Custom { name, .. } => Some(name.to_owned()),
        }
    }

    /// The name of the model of a list; only main resources have one.
    fn list_name(&self) -> Option<String> {
        Some(format!("{}List", self.model_name()?)).filter(|_| self.subresource.is_empty() && self.has("list"))
    }
}

fn version_prefix(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// The group and version in operation ids: `CoreV1`, `RbacAuthorizationV1`.
fn operation_group(group: &str, version: &str) -> String {
    format!("{}{}", capitalized(&short_group(group)), capitalized(version))
}

/// `core`, or the group without `.k8s.io`, in camel case.
fn short_group(group: &str) -> String {
    if group.is_empty() {
        return "core".into();
    }
    let plain = group.strip_suffix(".k8s.io").unwrap_or(group);
    let mut parts = plain.split('.');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + &capitalized(part))
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests;
