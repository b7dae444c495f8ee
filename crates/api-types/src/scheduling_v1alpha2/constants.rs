//! The values of string types.

/// Values of `DisruptionMode`.
pub mod disruption_mode {
    values! { POD = "Pod", POD_GROUP = "PodGroup" }
}
