//! The values of string types.

/// What stands for all operations, groups, versions or resources of a rule.
pub const ALL: &str = "*";

/// Values of `ScopeType`.
pub mod scope_type {
    values! { ALL_SCOPES = "*", CLUSTER = "Cluster", NAMESPACED = "Namespaced" }
}

/// Values of `OperationType`.
pub mod operation_type {
    values! {
        OPERATION_ALL = "*",
        CONNECT = "CONNECT",
        CREATE = "CREATE",
        DELETE = "DELETE",
        UPDATE = "UPDATE",
    }
}

/// Values of `FailurePolicyType`.
pub mod failure_policy_type {
    values! { FAIL = "Fail", IGNORE = "Ignore" }
}

/// Values of `MatchPolicyType`.
pub mod match_policy_type {
    values! { EQUIVALENT = "Equivalent", EXACT = "Exact" }
}

/// Values of `SideEffectClass`.
pub mod side_effect_class {
    values! { NONE = "None", NONE_ON_DRY_RUN = "NoneOnDryRun", SOME = "Some", UNKNOWN = "Unknown" }
}

/// Values of `ReinvocationPolicyType`.
pub mod reinvocation_policy_type {
    values! { IF_NEEDED = "IfNeeded", NEVER = "Never" }
}

/// Values of `ParameterNotFoundActionType`.
pub mod parameter_not_found_action_type {
    values! { ALLOW = "Allow", DENY = "Deny" }
}

/// Values of `ValidationAction`.
pub mod validation_action {
    values! { AUDIT = "Audit", DENY = "Deny", WARN = "Warn" }
}

/// Values of `PatchType`.
pub mod patch_type {
    values! { APPLY_CONFIGURATION = "ApplyConfiguration", JSON_PATCH = "JSONPatch" }
}
