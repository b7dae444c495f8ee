//! Binding.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::ObjectReference;

/// Binds a pod to a node.
#[api(kind = "Binding", resource = "bindings", namespaced)]
pub struct Binding {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Object that the pod is bound to, usually a node.
    #[field(2, always, required)]
    pub target: ObjectReference,
}
