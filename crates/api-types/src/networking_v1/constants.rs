//! Well-known names and the values of string types.

pub const LABEL_MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";

/// Values of `PolicyType`.
pub mod policy_type {
    values! { INGRESS = "Ingress", EGRESS = "Egress" }
}

/// Values of `PathType`.
pub mod path_type {
    values! { EXACT = "Exact", PREFIX = "Prefix", IMPLEMENTATION_SPECIFIC = "ImplementationSpecific" }
}
