//! TokenRequest and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;

/// Requests a token for a service account.
#[api(kind = "TokenRequest")]
pub struct TokenRequest {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What the token should be like.
    #[field(2, always)]
    pub spec: TokenRequestSpec,
    /// The issued token, filled in by the server.
    #[field(3)]
    pub status: TokenRequestStatus,
}

/// What the requested token should be like.
#[api]
pub struct TokenRequestSpec {
    /// Audiences the token is meant for. Default is the API server's own.
    #[field(1, always)]
    pub audiences: Vec<String>,
    /// Wanted lifetime in seconds, at least 600. Default is 3600.
    #[field(4, always, fill = "3600")]
    pub expiration_seconds: Option<i64>,
    /// Object whose deletion makes the token invalid.
    #[field(3, always)]
    pub bound_object_ref: Option<BoundObjectReference>,
}

/// Points to an object that a token is tied to.
#[api]
pub struct BoundObjectReference {
    /// Kind of the object: Pod, Secret or Node.
    #[field(1)]
    pub kind: String,
    /// API version of the object.
    #[field(2)]
    pub api_version: String,
    /// Name of the object.
    #[field(3)]
    pub name: String,
    /// Unique identifier of the object.
    #[field(4, go = "types.UID")]
    pub uid: String,
}

/// The issued token.
#[api]
pub struct TokenRequestStatus {
    /// The bearer token.
    #[field(1, always, secret)]
    pub token: String,
    /// Time at which the token stops being valid.
    #[field(2, always)]
    pub expiration_timestamp: Time,
}
