//! The kubelet's own certificates: how it gets its first identity, keeps it valid, and what it serves with.

mod client;
mod request;
mod rotation;
mod serving;
mod store;

pub(crate) use client::{ClientAccess, client_config};
pub(crate) use serving::{request_serving, self_signed};

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    /// The key could not be made or used.
    #[error("unable to generate a new private key: {0}")]
    Key(#[from] pki::KeyError),
    /// The API server refused or did not answer.
    #[error("cannot create certificate signing request: {0}")]
    Client(#[from] ::client::ClientError),
    /// The signer said no.
    #[error("certificate signing request is {verdict}: {reason} {message}")]
    Refused { verdict: &'static str, reason: String, message: String },
    /// Nobody signed in time.
    #[error("timed out waiting for the certificate")]
    Timeout,
    /// What was signed is no certificate.
    #[error("the certificate that was issued cannot be read: {0}")]
    Issued(#[from] pki::CertificateError),
    /// The self-signed pair could not be made.
    #[error("unable to generate self signed cert: {0}")]
    SelfSigned(#[from] pki::IssueError),
    /// A file.
    #[error("{what} {path}: {source}")]
    File { what: &'static str, path: String, source: std::io::Error },
    /// The pair cannot be used for TLS.
    #[error(transparent)]
    Tls(#[from] component_base::tls::TlsError),
    /// The kubeconfig cannot be used.
    #[error(transparent)]
    Config(#[from] ::client::ConfigError),
}
