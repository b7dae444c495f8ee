//! TokenReview and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::leaf::StringList;
use api_machinery::meta::ObjectMeta;

/// Checks a bearer token and tells whose it is.
#[api(kind = "TokenReview", resource = "tokenreviews")]
pub struct TokenReview {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The token to check.
    #[field(2, always, required)]
    pub spec: TokenReviewSpec,
    /// Result, filled in by the server.
    #[field(3)]
    pub status: TokenReviewStatus,
}

/// The token to check.
#[api]
pub struct TokenReviewSpec {
    /// The bearer token, opaque to the caller.
    #[field(1, required, secret)]
    pub token: String,
    /// Audiences the token should be for. Default is the API server's own.
    #[field(2)]
    pub audiences: Vec<String>,
}

/// The result of a token check.
#[api]
pub struct TokenReviewStatus {
    /// Whether the token is valid for a known user.
    #[field(1)]
    pub authenticated: bool,
    /// The user the token belongs to.
    #[field(2)]
    pub user: UserInfo,
    /// Requested audiences that the token is valid for.
    #[field(4)]
    pub audiences: Vec<String>,
    /// Why the token could not be checked.
    #[field(3)]
    pub error: String,
}

/// Identity of a user.
#[api]
pub struct UserInfo {
    /// Name that identifies the user.
    #[field(1)]
    pub username: String,
    /// Identifier that tells apart users with the same name over time.
    #[field(2)]
    pub uid: String,
    /// Groups the user belongs to.
    #[field(3)]
    pub groups: Vec<String>,
    /// Further data from the authenticator.
    #[field(4, go = "map[string]v1.ExtraValue")]
    pub extra: BTreeMap<String, StringList>,
}
