//! AdmissionReview and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::leaf::RawJson;
use api_machinery::meta::{GroupVersionKind, GroupVersionResource, Status};
use api_machinery::reflect::ByteString;

use crate::authentication_v1::UserInfo;

/// A request, and what a webhook has to say of it.
#[api(kind = "AdmissionReview")]
pub struct AdmissionReview {
    /// What is asked.
    #[field(1)]
    pub request: Option<AdmissionRequest>,
    /// What is answered.
    #[field(2)]
    pub response: Option<AdmissionResponse>,
}

/// A request as a webhook is told of it.
#[api]
pub struct AdmissionRequest {
    /// Identifies this question; the answer repeats it.
    #[field(1, always, go = "types.UID")]
    pub uid: String,
    /// Kind of the object that is sent.
    #[field(2, always)]
    pub kind: GroupVersionKind,
    /// Resource that a rule of the webhook matched.
    #[field(3, always)]
    pub resource: GroupVersionResource,
    /// Subresource that a rule matched; may be empty.
    #[field(4)]
    pub sub_resource: String,
    /// Kind of the request as the client made it.
    #[field(13)]
    pub request_kind: Option<GroupVersionKind>,
    /// Resource of the request as the client made it.
    #[field(14)]
    pub request_resource: Option<GroupVersionResource>,
    /// Subresource of the request as the client made it.
    #[field(15)]
    pub request_sub_resource: String,
    /// Name of the object; empty where the server has yet to make one.
    #[field(5)]
    pub name: String,
    /// Namespace of the request.
    #[field(6)]
    pub namespace: String,
    /// CREATE, UPDATE, DELETE or CONNECT.
    #[field(7, always, go = "v1.Operation")]
    pub operation: String,
    /// Who sent the request.
    #[field(8, always)]
    pub user_info: UserInfo,
    /// The new object.
    #[field(9, always)]
    pub object: RawJson,
    /// The object as it is stored.
    #[field(10, always)]
    pub old_object: RawJson,
    /// Whether nothing is to be written.
    #[field(11)]
    pub dry_run: Option<bool>,
    /// Options of the operation, such as `meta.k8s.io/v1.CreateOptions`.
    #[field(12, always)]
    pub options: RawJson,
}

/// The answer of a webhook.
#[api]
pub struct AdmissionResponse {
    /// Identifies the question.
    #[field(1, always, go = "types.UID")]
    pub uid: String,
    /// Whether the request may go on.
    #[field(2, always)]
    pub allowed: bool,
    /// Why it may not.
    #[field(3, name = "status")]
    pub result: Option<Status>,
    /// How the object is to be changed.
    #[field(4)]
    pub patch: ByteString,
    /// Form of the patch: JSONPatch.
    #[field(5, go = "v1.PatchType")]
    pub patch_type: Option<String>,
    /// What the audit log is to hold; the webhook's name goes before each key.
    #[field(6)]
    pub audit_annotations: BTreeMap<String, String>,
    /// What the client is to be warned of.
    #[field(7, atomic)]
    pub warnings: Vec<String>,
}
