//! Well-known names and the values of string types.

/// Conditions of pod certificate requests. Each is final.
pub mod pod_certificate_condition {
    values! { DENIED = "Denied", FAILED = "Failed", ISSUED = "Issued" }
}
