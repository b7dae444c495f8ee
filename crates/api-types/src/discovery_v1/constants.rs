//! Well-known names and the values of string types.

pub const LABEL_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub const LABEL_SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Values of `AddressType`.
pub mod address_type {
    values! { I_PV4 = "IPv4", I_PV6 = "IPv6", FQDN = "FQDN" }
}
