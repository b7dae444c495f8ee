//! Well-known names and the values of string types.

pub const LABEL_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub const LABEL_SERVICE_NAME: &str = "kubernetes.io/service-name";
pub const LABEL_SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";

/// Values of `AddressType`.
pub mod address_type {
    pub const I_PV4: &str = "IPv4";
    pub const I_PV6: &str = "IPv6";
    pub const FQDN: &str = "FQDN";
}
