//! What a plugin may know of a write.

use std::sync::Arc;

use api_machinery::gvk::{GroupResource, GroupVersionKind};
use api_machinery::json;
use api_machinery::leaf::RawJson;
use api_machinery::meta::{CreateOptions, DeleteOptions, UpdateOptions};
use api_machinery::object::Kind;
use api_machinery::reflect::Reflect;
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{Findings, Rounds};

/// Texts for the client's `Warning` headers. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Adds a text.
    pub fn add(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    /// Takes all texts out.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// What the audit log should say of the request, each under a key of its own. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Annotations(Arc<Mutex<Vec<(String, String)>>>);

impl Annotations {
    /// Adds a text.
    pub fn add(&self, key: impl Into<String>, text: impl Into<String>) {
        self.0.lock().push((key.into(), text.into()));
    }

    /// Takes all texts out, in their order.
    #[must_use]
    pub fn take(&self) -> Vec<(String, String)> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// What the request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of an object.
    Update,
    /// A deletion; there is no new object.
    Delete,
    /// Opening a stream to an object (exec, attach, port-forward, proxy).
    Connect,
}

impl Operation {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    /// The operation as texts and webhooks name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// The options of an operation, as its request states them.
#[derive(Debug, Clone, Default)]
pub enum OperationOptions {
    /// Connections have none.
    #[default]
    None,
    /// Of a creation.
    Create(CreateOptions),
    /// Of an update, by a patch as well.
    Update(UpdateOptions),
    /// Of a deletion.
    Delete(DeleteOptions),
}

impl OperationOptions {
    /// The options with their kind, as webhooks and expressions see them.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        self.parts().map_or_else(RawJson::default, |(kind, options)| {
            RawJson::from_text(json::encode_typed(kind, "meta.k8s.io/v1", options))
        })
    }

    /// The kind of the options, and their fields; nothing for connections.
    #[must_use]
    pub fn parts(&self) -> Option<(&'static str, &dyn Reflect)> {
        fn typed<T: Kind + Reflect>(options: &T) -> Option<(&'static str, &dyn Reflect)> {
            Some((T::TYPE.kind, options))
        }
        match self {
            Self::None => None,
            Self::Create(options) => typed(options),
            Self::Update(options) => typed(options),
            Self::Delete(options) => typed(options),
        }
    }
}

/// A write, apart from its objects.
#[derive(Debug, Clone)]
pub struct Attributes {
    /// What the request does.
    pub operation: Operation,
    /// The API group; empty for core.
    pub group: String,
    /// The version of the request.
    pub version: String,
    /// The plural resource name.
    pub resource: String,
    /// The subresource; usually empty.
    pub subresource: String,
    /// The kind of the object that is sent: of a subresource it may be of another group, as of `pods/eviction`.
    pub kind: GroupVersionKind,
    /// The namespace; for a Namespace that is created, its own name.
    pub namespace: String,
    /// The object's name; empty while it is still to be generated.
    pub name: String,
    /// Who asks.
    pub user: Arc<UserInfo>,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// The options of the operation.
    pub options: OperationOptions,
    /// When nobody waits for the answer any more.
    pub deadline: Option<Instant>,
    /// What the client should hear of.
    pub warnings: Warnings,
    /// What the audit log should say.
    pub annotations: Annotations,
    /// What was looked up for the request.
    pub findings: Findings,
    /// How often the mutating pass has run, and whether it has to run once more.
    pub rounds: Rounds,
}

impl Attributes {
    /// Whether it is about this resource of this group, and not a subresource.
    #[must_use]
    pub fn is(&self, group: &str, resource: &str) -> bool {
        self.is_sub(group, resource, "")
    }

    /// Group, version and plural name of the resource.
    #[must_use]
    pub fn place(&self) -> [&str; 3] {
        [&self.group, &self.version, &self.resource]
    }

    /// Whether it is about this subresource.
    #[must_use]
    pub fn is_sub(&self, group: &str, resource: &str, subresource: &str) -> bool {
        self.group == group && self.resource == resource && self.subresource == subresource
    }

    /// The group and resource.
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone().into(), resource: self.resource.clone().into() }
    }

    /// A refusal, with the request's resource and name in front.
    #[must_use]
    pub fn forbidden(&self, text: impl std::fmt::Display) -> ApiError {
        let name = if self.name.is_empty() { "Unknown" } else { &self.name };
        ApiError::forbidden(&self.group_resource(), name, text)
    }
}
