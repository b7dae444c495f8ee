//! FlowSchema and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;

use super::PolicyRulesWithSubjects;

/// Says which requests belong together, and which priority level they have.
#[api(kind = "FlowSchema", resource = "flowschemas")]
pub struct FlowSchema {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Desired classification.
    #[field(2)]
    pub spec: FlowSchemaSpec,
    /// Last observed state of the schema.
    #[field(3)]
    pub status: FlowSchemaStatus,
}

/// The requests of a flow schema and their level.
#[api]
pub struct FlowSchemaSpec {
    /// Priority level of the requests. Without one of that name the schema is ignored.
    #[field(1, always, required)]
    pub priority_level_configuration: PriorityLevelConfigurationReference,
    /// Order among schemas that match a request: the lowest wins. From 1 to 10000, 1000 by default.
    #[field(2, always, fill = "1000")]
    pub matching_precedence: i32,
    /// How requests of the schema are told apart into flows. Without it all are one flow.
    #[field(3)]
    pub distinguisher_method: Option<FlowDistinguisherMethod>,
    /// Rules, any of which makes the schema match a request.
    #[field(4, atomic)]
    pub rules: Vec<PolicyRulesWithSubjects>,
}

/// How requests are told apart into flows.
#[api]
pub struct FlowDistinguisherMethod {
    /// ByUser or ByNamespace.
    #[field(1, always, required, go = "v1.FlowDistinguisherMethodType")]
    pub type_: String,
}

/// Names a priority level.
#[api]
pub struct PriorityLevelConfigurationReference {
    /// Name of the priority level.
    #[field(1, always, required)]
    pub name: String,
}

/// The observed state of a flow schema.
#[api]
pub struct FlowSchemaStatus {
    /// Latest observed conditions of the schema.
    #[field(1, merge_key = "type")]
    pub conditions: Vec<FlowSchemaCondition>,
}

/// One aspect of a flow schema's state.
#[api]
pub struct FlowSchemaCondition {
    /// Aspect that the condition is about.
    #[field(1, go = "v1.FlowSchemaConditionType")]
    pub type_: String,
    /// Whether it holds: True, False or Unknown.
    #[field(2, go = "v1.ConditionStatus")]
    pub status: String,
    /// When the status last changed.
    #[field(3)]
    pub last_transition_time: Time,
    /// One word on why.
    #[field(4)]
    pub reason: String,
    /// Details for people.
    #[field(5)]
    pub message: String,
}
