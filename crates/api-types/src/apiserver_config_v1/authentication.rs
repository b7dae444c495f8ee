//! AuthenticationConfiguration: whose tokens are accepted, and what requests without credentials may ask for.

use api_machinery::api;

/// Whose tokens are accepted.
#[api]
pub struct AuthenticationConfiguration {
    /// Issuers of tokens.
    #[field(0, always)]
    pub jwt: Vec<JWTAuthenticator>,
    /// What becomes of requests without credentials.
    #[field(0)]
    pub anonymous: Option<AnonymousAuthConfig>,
}

/// What becomes of requests without credentials.
#[api]
pub struct AnonymousAuthConfig {
    /// Whether they are let in.
    #[field(0, always)]
    pub enabled: bool,
    /// Where they are let in, one of them; without any, everywhere.
    #[field(0)]
    pub conditions: Vec<AnonymousAuthCondition>,
}

/// Where requests without credentials are let in.
#[api]
pub struct AnonymousAuthCondition {
    /// The path, which must be the same.
    #[field(0, always)]
    pub path: String,
}

/// One issuer of tokens, and what its tokens mean.
#[api]
pub struct JWTAuthenticator {
    /// The issuer.
    #[field(0, always)]
    pub issuer: Issuer,
    /// What a token must say, all of it.
    #[field(0)]
    pub claim_validation_rules: Vec<ClaimValidationRule>,
    /// What a token says of its user.
    #[field(0, always)]
    pub claim_mappings: ClaimMappings,
    /// What must be so of the user, all of it.
    #[field(0)]
    pub user_validation_rules: Vec<UserValidationRule>,
}

/// An issuer of tokens.
#[api]
pub struct Issuer {
    /// Its address, as tokens name it.
    #[field(0, always)]
    pub url: String,
    /// Where its document is, if not below its address.
    #[field(0, name = "discoveryURL")]
    pub discovery_url: Option<String>,
    /// Whose certificates are trusted for it, in PEM form; without, the machine's authorities.
    #[field(0)]
    pub certificate_authority: String,
    /// Whom its tokens must be for.
    #[field(0, always)]
    pub audiences: Vec<String>,
    /// MatchAny, where there are several audiences.
    #[field(0)]
    pub audience_match_policy: String,
    /// Through which connection it is reached: controlplane or cluster.
    #[field(0)]
    pub egress_selector_type: String,
}

/// What a token must say.
#[api]
pub struct ClaimValidationRule {
    /// A claim.
    #[field(0)]
    pub claim: String,
    /// What it must say.
    #[field(0)]
    pub required_value: String,
    /// A condition in CEL, instead.
    #[field(0)]
    pub expression: String,
    /// What is said where it does not hold.
    #[field(0)]
    pub message: String,
}

/// What a token says of its user.
#[api]
pub struct ClaimMappings {
    /// The name.
    #[field(0, always)]
    pub username: PrefixedClaimOrExpression,
    /// The groups.
    #[field(0)]
    pub groups: PrefixedClaimOrExpression,
    /// The uid.
    #[field(0)]
    pub uid: ClaimOrExpression,
    /// What else there is.
    #[field(0)]
    pub extra: Vec<ExtraMapping>,
}

/// A claim, with what is put before it, or an expression.
#[api]
pub struct PrefixedClaimOrExpression {
    /// The claim.
    #[field(0)]
    pub claim: String,
    /// What is put before it.
    #[field(0)]
    pub prefix: Option<String>,
    /// An expression in CEL, instead.
    #[field(0)]
    pub expression: String,
}

/// A claim or an expression.
#[api]
pub struct ClaimOrExpression {
    /// The claim.
    #[field(0)]
    pub claim: String,
    /// An expression in CEL, instead.
    #[field(0)]
    pub expression: String,
}

/// One more thing that is known of a user.
#[api]
pub struct ExtraMapping {
    /// Its key, with a domain before it.
    #[field(0, always)]
    pub key: String,
    /// Its values, in CEL.
    #[field(0, always)]
    pub value_expression: String,
}

/// What must be so of a user.
#[api]
pub struct UserValidationRule {
    /// A condition in CEL.
    #[field(0, always)]
    pub expression: String,
    /// What is said where it does not hold.
    #[field(0)]
    pub message: String,
}
