//! TLS for both sides of a connection, on one crypto provider.
//!
//! Servers ask for client certificates but never require them and leave the chain to authentication, as upstream
//! does; clients accept what Go accepts, which is a little more than webpki does on its own. Certificates and CA
//! bundles are swapped while connections run. Making keys and certificates is not here: that is the `pki` crate.

mod bundle;
mod ca_file;
mod client;
mod options;
mod server;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

pub use bundle::{CaBundle, SharedCaBundle};
pub use ca_file::CaFile;
pub use client::{ClientIdentity, ClientTls, ServerTrust};
pub use options::{CIPHER_SUITES, TlsOptions};
pub use server::{CertFiles, ServerTls, ServingCerts, SniCert};

/// What can go wrong with certificates, keys and TLS options.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read.
    #[error("open {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The input holds no certificate in PEM form.
    #[error("{0}: data does not contain any valid RSA or ECDSA certificates")]
    NoCertificates(String),
    /// The input is not PEM, or the PEM in it is broken.
    #[error("{what}: {reason}")]
    Pem {
        /// The file or input.
        what: String,
        /// What the parser said.
        reason: String,
    },
    /// A certificate and a key do not make a pair.
    #[error("{what}: the certificate and the private key do not make a pair")]
    KeyPair {
        /// The file or input.
        what: String,
        /// What the library said.
        #[source]
        source: rustls::Error,
    },
    /// An option has a value that is not known or not offered.
    #[error("{0}")]
    Option(String),
    /// The library refused the configuration.
    #[error("TLS configuration")]
    Config(#[source] rustls::Error),
}

/// The crypto provider of the process.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider())))
}

/// Makes the provider the default for libraries that ask for one. Safe to call more than once.
pub fn install_default() {
    // The error means that a default is there already, which is what is wanted.
    let _ = CryptoProvider::clone(&provider()).install_default();
}

/// Reads a whole file.
pub(crate) fn read_file(path: &std::path::Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

/// All certificates in a PEM text, in order; other blocks are skipped. `what` names the input in errors.
///
/// # Errors
/// When there is none, or a block is broken.
pub fn certificates_from_pem(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::Pem { what: what.to_owned(), reason: error.to_string() })?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificates(what.to_owned()));
    }
    Ok(certificates)
}

/// A certificate chain with its private key, both PEM, checked to belong together.
///
/// # Errors
/// When either is missing or broken, or they do not match.
pub fn certified_key(what: &str, cert_pem: &[u8], key_pem: &[u8]) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = certificates_from_pem(what, cert_pem)?;
    let key = PrivateKeyDer::from_pem_slice(key_pem)
        .map_err(|error| TlsError::Pem { what: what.to_owned(), reason: error.to_string() })?;
    let pair = CertifiedKey::from_der(chain, key, &provider())
        .map_err(|source| TlsError::KeyPair { what: what.to_owned(), source })?;
    Ok(Arc::new(pair))
}
