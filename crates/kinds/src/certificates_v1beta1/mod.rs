//! The kinds of certificates.k8s.io/v1beta1, and of v1alpha1, which has the same form.

mod cluster_trust_bundle;
mod issued_chain;
mod pod_certificate_request;
mod requested_key;
#[cfg(test)]
mod tests;

use feature_gates::MinorVersion;

use crate::rules::{Rules, Typed};
use crate::versions::SameForm;
use cluster_trust_bundle::ClusterTrustBundleRules;

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] =
    &[&Typed::<ClusterTrustBundleRules>::new(), &Typed::<pod_certificate_request::PodCertificateRequestRules>::new()];

/// The bundle under its first name.
pub(crate) static V1ALPHA1: &[&dyn Rules] = {
    static NAMED: SameForm = SameForm::of::<ClusterTrustBundleRules>("v1alpha1").introduced(MinorVersion::one(26));
    &[&Typed::<ClusterTrustBundleRules>::under(&NAMED)]
};
