//! CertificateSigningRequest and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::leaf::StringList;
use api_machinery::meta::ObjectMeta;
use api_machinery::reflect::ByteString;
use api_machinery::time::Time;

use super::constants::key_usage;

/// Asks a signer to issue an X.509 certificate.
#[api(kind = "CertificateSigningRequest", resource = "certificatesigningrequests")]
pub struct CertificateSigningRequest {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The request. Cannot change after creation.
    #[field(2, always, required)]
    pub spec: CertificateSigningRequestSpec,
    /// Approval state and issued certificate.
    #[field(3)]
    pub status: CertificateSigningRequestStatus,
}

/// The details of a signing request.
#[api]
pub struct CertificateSigningRequestSpec {
    /// PKCS#10 request in PEM form, base64 encoded.
    #[field(1, always, required)]
    pub request: ByteString,
    /// Signer that should issue the certificate, as domain/path.
    #[field(7, always, required)]
    pub signer_name: String,
    /// Wanted lifetime in seconds, at least 600. The signer may differ.
    #[field(8)]
    pub expiration_seconds: Option<i32>,
    /// Key usages wanted in the certificate. At least one is needed.
    #[field(5, go = "[]v1.KeyUsage", values = key_usage::ALL)]
    pub usages: Vec<String>,
    /// Name of the requesting user, set by the server.
    #[field(2)]
    pub username: String,
    /// Identifier of the requesting user, set by the server.
    #[field(3)]
    pub uid: String,
    /// Groups of the requesting user, set by the server.
    #[field(4)]
    pub groups: Vec<String>,
    /// Further data on the requesting user, set by the server.
    #[field(6, go = "map[string]v1.ExtraValue")]
    pub extra: BTreeMap<String, StringList>,
}

/// The state of a signing request.
#[api]
pub struct CertificateSigningRequestStatus {
    /// Approval and failure conditions of the request.
    #[field(1, keys("type"))]
    pub conditions: Vec<CertificateSigningRequestCondition>,
    /// Issued certificate chain in PEM form. Cannot change once set.
    #[field(2)]
    pub certificate: ByteString,
}

/// One observed aspect of a signing request.
#[api]
pub struct CertificateSigningRequestCondition {
    /// Condition name, such as Approved, Denied or Failed.
    #[field(1, always, required, go = "v1.RequestConditionType")]
    pub type_: String,
    /// Whether it holds. Approved, Denied and Failed allow only True.
    #[field(6, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// Short reason for the condition.
    #[field(2)]
    pub reason: String,
    /// Text for people about the condition.
    #[field(3)]
    pub message: String,
    /// Time at which the condition was last updated.
    #[field(4)]
    pub last_update_time: Time,
    /// Time at which the status last changed.
    #[field(5)]
    pub last_transition_time: Time,
}
