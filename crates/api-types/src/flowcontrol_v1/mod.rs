//! flowcontrol.apiserver.k8s.io/v1: one file per kind, with what it is made of.

pub mod constants;
mod flow_schema;
mod policy_rules;
mod priority_level_configuration;

pub use flow_schema::{
    FlowDistinguisherMethod, FlowSchema, FlowSchemaCondition, FlowSchemaSpec, FlowSchemaStatus,
    PriorityLevelConfigurationReference,
};
pub use policy_rules::{
    GroupSubject, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, ServiceAccountSubject, Subject,
    UserSubject,
};
pub use priority_level_configuration::{
    ExemptPriorityLevelConfiguration, LimitResponse, LimitedPriorityLevelConfiguration, PriorityLevelConfiguration,
    PriorityLevelConfigurationCondition, PriorityLevelConfigurationSpec, PriorityLevelConfigurationStatus,
    QueuingConfiguration,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.flowcontrol.v1";
/// The API group.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
