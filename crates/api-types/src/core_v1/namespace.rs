//! Namespace and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;

use super::constants::namespace_phase;

/// A scope for object names and policies.
#[api(kind = "Namespace", resource = "namespaces")]
pub struct Namespace {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The wanted behaviour of the namespace.
    #[field(2)]
    pub spec: NamespaceSpec,
    /// Current state of the namespace, set by the system.
    #[field(3)]
    pub status: NamespaceStatus,
}

/// Describes a namespace.
#[api]
pub struct NamespaceSpec {
    /// Finalizers that must be removed before the namespace is gone.
    #[field(1, go = "[]v1.FinalizerName")]
    pub finalizers: Vec<String>,
}

/// Current state of a namespace.
#[api]
pub struct NamespaceStatus {
    /// Life cycle state: Active or Terminating.
    #[field(1, fill = "\"Active\"", go = "v1.NamespacePhase", values = namespace_phase::ALL)]
    pub phase: String,
    /// Current conditions of the namespace.
    #[field(2, merge_key = "type")]
    pub conditions: Vec<NamespaceCondition>,
}

/// One observed condition of a namespace.
#[api]
pub struct NamespaceCondition {
    /// Condition type, for example NamespaceContentRemaining.
    #[field(1, always, required, go = "v1.NamespaceConditionType")]
    pub type_: String,
    /// Condition value: True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// When the condition last changed its status.
    #[field(4)]
    pub last_transition_time: Time,
    /// Short CamelCase reason for the last change.
    #[field(5)]
    pub reason: String,
    /// Human-readable details about the last change.
    #[field(6)]
    pub message: String,
}
