//! ComponentStatus and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// Deprecated. Health of a control plane component.
#[api(kind = "ComponentStatus", resource = "componentstatuses")]
pub struct ComponentStatus {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Observed conditions of the component.
    #[field(2, merge_key = "type")]
    pub conditions: Vec<ComponentCondition>,
}

/// One observed condition of a component.
#[api]
pub struct ComponentCondition {
    /// Condition type; the valid value is Healthy.
    #[field(1, always, required, go = "v1.ComponentConditionType")]
    pub type_: String,
    /// Condition value: True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// Message about the condition, such as a health check result.
    #[field(3)]
    pub message: String,
    /// Error code of the health check, if any.
    #[field(4)]
    pub error: String,
}
