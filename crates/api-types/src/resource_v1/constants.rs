//! Well-known names and the values of string types.

/// Label of namespaces whose claims may have devices for administrators.
pub const ADMIN_ACCESS_LABEL: &str = "resource.kubernetes.io/admin-access";
/// Values of the label that allow it.
pub const ADMIN_ACCESS_ALLOWED: &str = "true";

/// Annotation, with [`EXTENDED_RESOURCE_CLAIM`], of a claim that the scheduler made for the extended resources of a pod.
pub const EXTENDED_RESOURCE_CLAIM_ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";
/// Value of the annotation.
pub const EXTENDED_RESOURCE_CLAIM: &str = "true";
/// What the name of the extended resource begins with that every device class stands for; the class's name follows.
pub const DEVICE_CLASS_RESOURCE_PREFIX: &str = "deviceclass.resource.kubernetes.io/";
/// The most devices that a claim may have.
pub const ALLOCATION_RESULTS_MAX: usize = 32;

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
