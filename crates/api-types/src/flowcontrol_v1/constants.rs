//! Well-known names and the values of string types.

pub const AUTO_UPDATE_ANNOTATION_KEY: &str = "apf.kubernetes.io/autoupdate-spec";
pub const API_GROUP_ALL: &str = "*";
pub const FLOW_SCHEMA_DANGLING: &str = "Dangling";
pub const NAMESPACE_EVERY: &str = "*";
pub const NAME_ALL: &str = "*";
pub const NON_RESOURCE_ALL: &str = "*";
pub const RESOURCE_ALL: &str = "*";
pub const VERB_ALL: &str = "*";

/// The level and the schema that nothing holds up.
pub const EXEMPT: &str = "exempt";
/// The level and the schema of what matches nothing else.
pub const CATCH_ALL: &str = "catch-all";

/// Values of `FlowDistinguisherMethodType`.
pub mod flow_distinguisher_method_type {
    values! { BY_NAMESPACE = "ByNamespace", BY_USER = "ByUser" }
}

/// Values of `SubjectKind`.
pub mod subject_kind {
    values! { GROUP = "Group", SERVICE_ACCOUNT = "ServiceAccount", USER = "User" }
}

/// Values of `PriorityLevelEnablement`.
pub mod priority_level_enablement {
    values! { EXEMPT = "Exempt", LIMITED = "Limited" }
}

/// Values of `LimitResponseType`.
pub mod limit_response_type {
    values! { QUEUE = "Queue", REJECT = "Reject" }
}
