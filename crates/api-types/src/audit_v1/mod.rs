//! audit.k8s.io/v1: the policy of the audit log, and the events in it. They are formats of files and of webhooks; no
//! server stores them.

mod event;
mod policy;

pub use event::{AuthenticationMetadata, Event, EventList, ObjectReference};
pub use policy::{GroupResources, Policy, PolicyRule};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.apiserver.pkg.apis.audit.v1";
/// The API group.
pub const GROUP: &str = "audit.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
