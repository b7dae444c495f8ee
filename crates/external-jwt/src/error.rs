//! Why an external signer is of no use; the texts are upstream's.

use api_machinery::quote::go_quote;

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    /// The socket is no path.
    #[error("while dialing grpc socket at {}: not a path", go_quote(.0))]
    Socket(String),
    /// The signer did not answer, or refused.
    #[error("{what}: rpc error: code = {code} desc = {message}")]
    Call {
        /// What was asked for.
        what: &'static str,
        /// The code of the answer, as Go prints it.
        code: &'static str,
        /// What the signer says.
        message: String,
    },
    /// The signature's header is not one that tokens may have.
    #[error("while validating header: {0}")]
    Header(String),
    /// There is no signature.
    #[error("empty signature returned")]
    NoSignature,
    /// The keys cannot be used.
    #[error("while fetching token verification keys: {0}")]
    Keys(String),
}

impl SignerError {
    /// The code of the answer, as metrics have it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Call { code, .. } => code,
            Self::Socket(_) | Self::Header(_) | Self::NoSignature | Self::Keys(_) => "unknown-non-grpc",
        }
    }
}
