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

use feature_gates::MinorVersion;

use crate::rules::{Rules, Typed};
use crate::versions::SameForm;
use ip_address::IPAddressRules;
use service_cidr::ServiceCIDRRules;

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<ingress_class::IngressClassRules>::new(),
    &Typed::<ingress::IngressRules>::new(),
    &Typed::<network_policy::NetworkPolicyRules>::new(),
    &Typed::<IPAddressRules>::new(),
    &Typed::<ServiceCIDRRules>::new(),
];

/// What was in beta, under its name then.
pub(crate) static V1BETA1: &[&dyn Rules] = {
    const BROUGHT: MinorVersion = MinorVersion::one(31);
    static ADDRESS: SameForm = SameForm::of::<IPAddressRules>("v1beta1").introduced(BROUGHT);
    static CIDR: SameForm = SameForm::of::<ServiceCIDRRules>("v1beta1").introduced(BROUGHT);
    &[&Typed::<IPAddressRules>::under(&ADDRESS), &Typed::<ServiceCIDRRules>::under(&CIDR)]
};
