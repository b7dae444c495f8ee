//! Tokens of issuers elsewhere (OpenID Connect): several at once, as AuthenticationConfiguration or the flags `--oidc-*`
//! state them. Concept: <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#openid-connect-tokens>, KEP-3331
//!
//! A configuration is checked and compiled to [`Rules`], one for each issuer, without asking anybody.
//! [`JwtAuthenticators`] look for the issuers in the background, fetch their keys when a token names one that is not
//! known, and turn what a token says into a user. Nothing here logs a token, or tells one in an error.

mod authenticator;
mod configuration;
mod demands;
mod discovery;
mod distributed;
mod expressions;
mod fetch;
mod keys;
mod mappings;
mod metrics;
mod rules;
#[cfg(test)]
mod tests;

pub use authenticator::{JwtAuthenticators, JwtCx};
pub use configuration::{ConfigurationError, EGRESS_TYPES, Surroundings, compile, parse};
pub use fetch::{Connector, Egress};
pub use metrics::JwtMetrics;
pub use rules::Rules;

pub use pki::jws::Algorithm;

/// How tokens may be signed, where nothing else is said: with all that upstream knows.
pub const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::Es256,
    Algorithm::Es384,
    Algorithm::Es512,
    Algorithm::Ps256,
    Algorithm::Ps384,
    Algorithm::Ps512,
    Algorithm::Rs256,
    Algorithm::Rs384,
    Algorithm::Rs512,
];
