//! Service account tokens signed by somebody outside the API server (KEP-740), over gRPC on a unix socket.
//!
//! [`ExternalSigner`] asks the signer, [`KeyCache`] keeps its keys up to date. What claims a token has, and who may have
//! one, is for others to say; nothing here looks into the claims.

mod client;
mod error;
mod header;
mod keys;
#[cfg(test)]
mod tests;

pub use client::{ExternalSigner, Observer};
pub use error::SignerError;
pub use keys::{ExternalKey, KeyCache};
