//! ClusterTrustBundle and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// Certificates of authorities that pods may trust.
#[api(kind = "ClusterTrustBundle", resource = "clustertrustbundles")]
pub struct ClusterTrustBundle {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The certificates, and whose they are.
    #[field(2, always, required)]
    pub spec: ClusterTrustBundleSpec,
}

/// Certificates that are trusted.
#[api]
pub struct ClusterTrustBundleSpec {
    /// Signer whose certificates they verify, which the name begins with; none if empty. It never changes.
    #[field(1)]
    pub signer_name: String,
    /// Certificates of authorities in PEM form, at least one, in no order.
    #[field(2, always, required)]
    pub trust_bundle: String,
}
