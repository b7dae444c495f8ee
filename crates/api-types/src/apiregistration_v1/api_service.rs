//! APIService and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::reflect::ByteString;
use api_machinery::time::Time;

/// Says which server answers for a version of an API group.
#[api(kind = "APIService", resource = "apiservices")]
pub struct APIService {
    /// Standard object metadata. The name is the version and the group, with a dot in between.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Which server, and how it is reached.
    #[field(2)]
    pub spec: APIServiceSpec,
    /// Whether it can be asked.
    #[field(3)]
    pub status: APIServiceStatus,
}

/// The server of a version of a group.
#[api]
pub struct APIServiceSpec {
    /// The Service in front of the server. Without one this server itself answers.
    #[field(1)]
    pub service: Option<ServiceReference>,
    /// The API group.
    #[field(2)]
    pub group: String,
    /// The version.
    #[field(3)]
    pub version: String,
    /// Whether the server's certificate is not verified. Not for use outside of tests.
    #[field(4, name = "insecureSkipTLSVerify")]
    pub insecure_skip_tls_verify: bool,
    /// Certificates, in PEM form, that vouch for the server's; those that the machine trusts where it is empty.
    #[field(5, atomic)]
    pub ca_bundle: ByteString,
    /// Place of the group among others: the higher, the earlier. The highest of its versions counts.
    #[field(7, always, required)]
    pub group_priority_minimum: i32,
    /// Place of the version within its group: the higher, the earlier.
    #[field(8, always, required)]
    pub version_priority: i32,
}

/// Names a Service.
#[api]
pub struct ServiceReference {
    /// Namespace of the Service.
    #[field(1)]
    pub namespace: String,
    /// Name of the Service.
    #[field(2)]
    pub name: String,
    /// Port of the Service; 443 by default.
    #[field(3)]
    pub port: Option<i32>,
}

/// The observed state of the server of a version.
#[api]
pub struct APIServiceStatus {
    /// Latest observed conditions.
    #[field(1, merge_key = "type")]
    pub conditions: Vec<APIServiceCondition>,
}

/// One aspect of the state.
#[api]
pub struct APIServiceCondition {
    /// Aspect that the condition is about.
    #[field(1, always, required)]
    pub type_: String,
    /// Whether it holds: True, False or Unknown.
    #[field(2, always, required)]
    pub status: String,
    /// When the status last changed.
    #[field(3)]
    pub last_transition_time: Time,
    /// One word on why.
    #[field(4)]
    pub reason: String,
    /// Details for people.
    #[field(5)]
    pub message: String,
}
