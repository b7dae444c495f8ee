//! Well-known names and the values of string types.

/// Label of namespaces whose claims may have devices for administrators.
pub const ADMIN_ACCESS_LABEL: &str = "resource.kubernetes.io/admin-access";
/// Values of the label that allow it.
pub const ADMIN_ACCESS_ALLOWED: &str = "true";

/// Values of `DeviceAllocationMode`.
pub mod device_allocation_mode {
    values! { ALL_FITTING = "All", EXACT_COUNT = "ExactCount" }
}

/// Values of `DeviceTaintEffect`.
pub mod device_taint_effect {
    values! { NO_EXECUTE = "NoExecute", NO_SCHEDULE = "NoSchedule", NONE = "None" }
}

/// Values of `DeviceTolerationOperator`.
pub mod device_toleration_operator {
    values! { EQUAL = "Equal", EXISTS = "Exists" }
}

/// Values of `AllocationConfigSource`.
pub mod allocation_config_source {
    values! { CLAIM = "FromClaim", CLASS = "FromClass" }
}
