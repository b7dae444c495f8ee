//! Well-known names and the values of string types.

pub const ANNOTATION_IS_DEFAULT_INGRESS_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";
pub const INGRESS_CLASS_PARAMETERS_REFERENCE_SCOPE_CLUSTER: &str = "Cluster";
pub const INGRESS_CLASS_PARAMETERS_REFERENCE_SCOPE_NAMESPACE: &str = "Namespace";
pub const LABEL_IP_ADDRESS_FAMILY: &str = "ipaddress.kubernetes.io/ip-family";
pub const LABEL_MANAGED_BY: &str = "ipaddress.kubernetes.io/managed-by";
pub const SERVICE_CIDR_CONDITION_READY: &str = "Ready";
pub const SERVICE_CIDR_REASON_TERMINATING: &str = "Terminating";

/// Values of `PolicyType`.
pub mod policy_type {
    values! { INGRESS = "Ingress", EGRESS = "Egress" }
}

/// Values of `PathType`.
pub mod path_type {
    values! { EXACT = "Exact", PREFIX = "Prefix", IMPLEMENTATION_SPECIFIC = "ImplementationSpecific" }
}
