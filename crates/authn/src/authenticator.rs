//! The two traits of this crate and the error they share.
//!
//! `Ok(None)` means "no opinion": the credential is not of my kind. `Err` means "of my kind and wrong". The difference decides
//! whether a request may still pass as anonymous.

use std::fmt;

use async_trait::async_trait;
use http::request::Parts;
use rustls_pki_types::CertificateDer;

use crate::identity::Identity;

/// Why a credential was refused. Clients only ever see 401; this text goes to the log and into TokenReview.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthnError {
    /// Nobody accepted the bearer token.
    #[error("invalid bearer token")]
    InvalidBearerToken,
    /// The client certificate's chain.
    #[error("verifying certificate {certificate} failed: {why}")]
    Certificate {
        /// Serial number and key identifiers.
        certificate: String,
        /// What the verifier said.
        why: String,
    },
    /// A credential was understood and refused.
    #[error("{0}")]
    Refused(String),
    /// An object that decides could not be read.
    #[error("{0}")]
    Lookup(String),
    /// Several authenticators failed.
    #[error("{}", aggregate(.0))]
    Several(Vec<AuthnError>),
    /// A bug or an abort inside an authenticator.
    #[error("authentication failed unexpectedly")]
    Unexpected,
    /// The shared look-up took too long.
    #[error("authentication timed out")]
    Timeout,
}

impl AuthnError {
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self::Refused(why.into())
    }

    /// One error of many; `None` for none.
    #[must_use]
    pub fn join(mut errors: Vec<Self>) -> Option<Self> {
        match errors.len() {
            0 => None,
            1 => errors.pop(),
            _ => Some(Self::Several(errors)),
        }
    }
}

/// Upstream's form of several errors: distinct texts in brackets.
fn aggregate(errors: &[AuthnError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if let [single] = texts.as_slice() { single.clone() } else { format!("[{}]", texts.join(", ")) }
}

/// Authenticates requests by whatever they carry.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Whether it could say who the request is. One that could not is asked only after all others, for what is wrong.
    fn may_know(&self, _request: &Parts) -> bool {
        true
    }

    /// Says who the request is; `peer` is the certificate chain of the TLS client, leaf first, empty without one.
    async fn authenticate(
        &self,
        request: &Parts,
        peer: &[CertificateDer<'static>],
    ) -> Result<Option<Identity>, AuthnError>;
}

/// Authenticates bearer tokens.
#[async_trait]
pub trait TokenAuthenticator: Send + Sync {
    /// Says whose token it is; `audiences` are those asked for, empty meaning the API server's own.
    async fn authenticate_token(&self, token: &str, audiences: &[String]) -> Result<Option<Identity>, AuthnError>;
}

/// Put into a request's extensions to ask for a token valid for these audiences (TokenReview does).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedAudiences(pub Vec<String>);

/// An object that a credential depends on could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupError(pub String);

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LookupError {}

impl From<LookupError> for AuthnError {
    fn from(error: LookupError) -> Self {
        Self::Lookup(error.0)
    }
}
