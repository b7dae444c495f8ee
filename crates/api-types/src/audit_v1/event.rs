//! Event and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::leaf::RawJson;
use api_machinery::meta::{ListMeta, Status};
use api_machinery::time::MicroTime;

use crate::authentication_v1::UserInfo;

/// One stage of one request, as far as the level tells.
#[api(kind = "Event")]
pub struct Event {
    /// How much is told: Metadata, Request or RequestResponse.
    #[field(1, always, go = "audit.Level")]
    pub level: String,
    /// Identifier of the request, the same in all its events.
    #[field(2, name = "auditID", always, go = "types.UID")]
    pub audit_id: String,
    /// How far the request has come.
    #[field(3, always, go = "audit.Stage")]
    pub stage: String,
    /// Path and query as sent.
    #[field(4, name = "requestURI", always)]
    pub request_uri: String,
    /// Verb of the API, or the method in lower case for mere paths.
    #[field(5, always)]
    pub verb: String,
    /// Who sent the request.
    #[field(6, always)]
    pub user: UserInfo,
    /// On whose behalf it ran.
    #[field(7)]
    pub impersonated_user: Option<UserInfo>,
    /// How the sender was let act on somebody's behalf.
    #[field(17)]
    pub authentication_metadata: Option<AuthenticationMetadata>,
    /// Where it came from, the first sender first.
    #[field(8, name = "sourceIPs", atomic)]
    pub source_ips: Vec<String>,
    /// What the client calls itself; the client's own words.
    #[field(16)]
    pub user_agent: String,
    /// Object that the request is about.
    #[field(9)]
    pub object_ref: Option<ObjectReference>,
    /// Answer, without the object.
    #[field(10)]
    pub response_status: Option<Status>,
    /// Object of the request before admission, or the patch.
    #[field(11)]
    pub request_object: Option<RawJson>,
    /// Object of the answer.
    #[field(12)]
    pub response_object: Option<RawJson>,
    /// Time at which the request came.
    #[field(13, always)]
    pub request_received_timestamp: MicroTime,
    /// Time at which it came to this stage.
    #[field(14, always)]
    pub stage_timestamp: MicroTime,
    /// What those on the request's road had to say, each under a key of its own.
    #[field(15)]
    pub annotations: BTreeMap<String, String>,
}

/// Events that are delivered together.
#[api(kind = "EventList")]
pub struct EventList {
    /// Standard list metadata.
    #[field(1)]
    pub metadata: ListMeta,
    /// Events.
    #[field(2, always)]
    pub items: Vec<Event>,
}

/// How the sender was let act on somebody's behalf.
#[api]
pub struct AuthenticationMetadata {
    /// Verb that allowed it, where it was a constrained one.
    #[field(1)]
    pub impersonation_constraint: String,
}

/// Points to an object or to a part of one.
#[api]
pub struct ObjectReference {
    /// Plural name.
    #[field(1)]
    pub resource: String,
    /// Namespace.
    #[field(2)]
    pub namespace: String,
    /// Name.
    #[field(3)]
    pub name: String,
    /// Unique identifier.
    #[field(4, go = "types.UID")]
    pub uid: String,
    /// Group; empty for core.
    #[field(5, name = "apiGroup")]
    pub api_group: String,
    /// Version.
    #[field(6, name = "apiVersion")]
    pub api_version: String,
    /// Version of the object in the store.
    #[field(7)]
    pub resource_version: String,
    /// Part of the object.
    #[field(8)]
    pub subresource: String,
}
