//! Well-known names and the values of string types.

/// The condition that says whether the version can be asked.
pub const AVAILABLE: &str = "Available";

/// Values of `ConditionStatus`.
pub mod condition_status {
    values! { FALSE = "False", TRUE = "True", UNKNOWN = "Unknown" }
}
