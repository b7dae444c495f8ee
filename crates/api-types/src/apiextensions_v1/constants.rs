//! Well-known names and the values of string types.

/// Values of `ConversionStrategyType`.
pub mod conversion_strategy_type {
    values! { NONE = "None", WEBHOOK = "Webhook" }
}

/// Values of `ResourceScope`.
pub mod resource_scope {
    values! { CLUSTER = "Cluster", NAMESPACED = "Namespaced" }
}

/// Values of `ConditionStatus`.
pub mod condition_status {
    pub const TRUE: &str = "True";
    pub const FALSE: &str = "False";
    pub const UNKNOWN: &str = "Unknown";
}

/// Values of `CustomResourceDefinitionConditionType`.
pub mod custom_resource_definition_condition_type {
    pub const ESTABLISHED: &str = "Established";
    pub const NAMES_ACCEPTED: &str = "NamesAccepted";
    pub const NON_STRUCTURAL_SCHEMA: &str = "NonStructuralSchema";
    pub const TERMINATING: &str = "Terminating";
    pub const KUBERNETES_API_APPROVAL_POLICY_CONFORMANT: &str = "KubernetesAPIApprovalPolicyConformant";
    pub const STORAGE_MIGRATING: &str = "StorageMigrating";
}

/// Values of `FieldValueErrorReason`.
pub mod field_value_error_reason {
    values! {
        FIELD_VALUE_REQUIRED = "FieldValueRequired", FIELD_VALUE_DUPLICATE = "FieldValueDuplicate",
        FIELD_VALUE_INVALID = "FieldValueInvalid", FIELD_VALUE_FORBIDDEN = "FieldValueForbidden",
    }
}
