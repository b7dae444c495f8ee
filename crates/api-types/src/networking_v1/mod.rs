//! networking.k8s.io/v1: one file per kind, with what it is made of.

pub mod constants;
mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;

pub use ingress::{
    HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressLoadBalancerIngress,
    IngressLoadBalancerStatus, IngressPortStatus, IngressRule, IngressRuleValue, IngressServiceBackend, IngressSpec,
    IngressStatus, IngressTLS, ServiceBackendPort,
};
pub use ingress_class::{IngressClass, IngressClassParametersReference, IngressClassSpec};
pub use ip_address::{IPAddress, IPAddressSpec, ParentReference};
pub use network_policy::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec,
};
pub use service_cidr::{ServiceCIDR, ServiceCIDRSpec, ServiceCIDRStatus};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.networking.v1";
/// The API group.
pub const GROUP: &str = "networking.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
