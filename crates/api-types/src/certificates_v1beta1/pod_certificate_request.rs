//! PodCertificateRequest and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::{Condition, ObjectMeta};
use api_machinery::reflect::ByteString;
use api_machinery::time::Time;

/// Asks a signer for a certificate for a pod.
#[api(kind = "PodCertificateRequest", resource = "podcertificaterequests", namespaced)]
pub struct PodCertificateRequest {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Whose certificate, and by whom. It never changes.
    #[field(2, always, required)]
    pub spec: PodCertificateRequestSpec,
    /// The certificate, or why there is none.
    #[field(3)]
    pub status: PodCertificateRequestStatus,
}

/// Whose certificate is asked for.
#[api]
pub struct PodCertificateRequestSpec {
    /// Signer that is asked.
    #[field(1, always, required)]
    pub signer_name: String,
    /// Name of the pod.
    #[field(2, always, required)]
    pub pod_name: String,
    /// UID of the pod.
    #[field(3, name = "podUID", always, required, go = "types.UID")]
    pub pod_uid: String,
    /// Name of the pod's service account.
    #[field(4, always, required)]
    pub service_account_name: String,
    /// UID of the service account.
    #[field(5, name = "serviceAccountUID", always, required, go = "types.UID")]
    pub service_account_uid: String,
    /// Node that the pod is on.
    #[field(6, always, required, go = "types.NodeName")]
    pub node_name: String,
    /// UID of the node.
    #[field(7, name = "nodeUID", always, required, go = "types.UID")]
    pub node_uid: String,
    /// Longest lifetime of the certificate, in seconds. Default a day.
    #[field(8, default = "86400", fill = "86400")]
    pub max_expiration_seconds: Option<i32>,
    /// Public key, in place of stubPKCS10Request. Deprecated.
    #[field(9, always)]
    pub pkix_public_key: ByteString,
    /// Signature over the pod's UID by the key of pkixPublicKey. Deprecated.
    #[field(10, always)]
    pub proof_of_possession: ByteString,
    /// A PKCS#10 request in DER form whose key and signature count.
    #[field(12, name = "stubPKCS10Request", always, required)]
    pub stub_pkcs10_request: ByteString,
    /// What the pod says to the signer; nobody has checked it.
    #[field(11)]
    pub unverified_user_annotations: BTreeMap<String, String>,
}

/// A certificate for a pod.
#[api]
pub struct PodCertificateRequestStatus {
    /// Issued, Denied or Failed, at most one of them.
    #[field(1, merge_key = "type")]
    pub conditions: Vec<Condition>,
    /// The certificate and those that it needs to be verified, in PEM form.
    #[field(2)]
    pub certificate_chain: String,
    /// Start of the certificate's lifetime.
    #[field(4)]
    pub not_before: Option<Time>,
    /// Time at which the kubelet asks for the next one.
    #[field(5)]
    pub begin_refresh_at: Option<Time>,
    /// End of the certificate's lifetime.
    #[field(6)]
    pub not_after: Option<Time>,
}
