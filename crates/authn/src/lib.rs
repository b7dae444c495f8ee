//! Who a request is: one authenticator per kind of credential, joined in upstream's order, plus the making of service account
//! tokens and the reading of impersonation headers.
//!
//! Deliberately not here: whether the user may do something (authorization). Failures are 401 with no detail; the reason is for the log and TokenReview.

mod anonymous;
mod audience_agnostic;
mod authenticator;
mod bearer;
mod bootstrap_token;
mod chain;
mod client_certificate;
mod csv;
mod front_proxy;
mod headers;
mod identity;
mod impersonation;
mod token_cache;
mod token_cache_metrics;
mod token_file;
mod verified_chains;
mod webhook;

pub mod jwt;
pub mod service_account;

pub use anonymous::Anonymous;
pub use audience_agnostic::AudienceAgnostic;
pub use authenticator::{Authenticator, AuthnError, LookupError, RequestedAudiences, TokenAuthenticator};
pub use bearer::{BearerHeader, WebSocketBearer, ignored_header_warning, strip_credentials};
pub use bootstrap_token::{BootstrapTokens, Secrets, is_bootstrap_group};
pub use chain::{Chain, TokenUnion, Union};
pub use client_certificate::{ClientCertificate, SubjectUid};
pub use front_proxy::{FrontProxy, ProxyHeaders};
pub use identity::{
    ANONYMOUS, API_SERVER_USER, AUTHENTICATED, CREDENTIAL_ID_KEY, Identity, MASTERS, UNAUTHENTICATED, UserInfo,
};
pub use impersonation::{Impersonation, ImpersonationCheck, ImpersonationError, MAX_CHECKS, Mode, Step};
pub use token_cache::{LOOKUP_DEADLINE, MAX_ENTRIES, SUCCESS_TTL, TokenCache};
pub use token_file::{StaticTokens, TokenFileError};
pub use webhook::{TokenReviewVersion, WebhookTokens};

#[cfg(test)]
mod testing;
