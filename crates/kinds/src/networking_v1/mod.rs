//! The kinds of networking.k8s.io/v1.

mod ingress;
mod ingress_class;
mod ingress_validation;
mod ip_address;
mod network_policy;
mod network_policy_validation;
mod service_cidr;

#[cfg(test)]
mod tests;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<ingress_class::IngressClassRules>::new(),
    &Typed::<ingress::IngressRules>::new(),
    &Typed::<network_policy::NetworkPolicyRules>::new(),
    &Typed::<ip_address::IPAddressRules>::new(),
    &Typed::<service_cidr::ServiceCIDRRules>::new(),
];
