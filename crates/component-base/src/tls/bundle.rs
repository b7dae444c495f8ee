//! A set of trusted certificates: the anchors for webpki, and the certificates themselves for exact matches.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::CertificateDer;
use rustls::{DistinguishedName, RootCertStore};

use super::{TlsError, certificates_from_pem, read_file};

/// Where Linux distributions keep the certificates of public authorities, in the order in which Go looks.
const SYSTEM_BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// A bundle that can be replaced while others read it.
pub type SharedCaBundle = Arc<ArcSwap<CaBundle>>;

/// Trusted certificates.
#[derive(Debug, Clone)]
pub struct CaBundle {
    certificates: Vec<CertificateDer<'static>>,
    roots: Arc<RootCertStore>,
}

impl CaBundle {
    /// A bundle of certificates in DER form. One that webpki cannot use as an anchor still counts for exact matches.
    #[must_use]
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates.iter().cloned());
        Self { certificates, roots: Arc::new(roots) }
    }

    /// A bundle that trusts nobody.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// The certificates of a PEM text; `what` names the input in errors.
    ///
    /// # Errors
    /// When there is none, or a block is broken.
    pub fn from_pem(what: &str, pem: &[u8]) -> Result<Self, TlsError> {
        Ok(Self::new(certificates_from_pem(what, pem)?))
    }

    /// The certificates of a PEM file.
    ///
    /// # Errors
    /// When the file cannot be read or holds no certificate.
    pub fn from_file(path: &Path) -> Result<Self, TlsError> {
        Self::from_pem(&path.display().to_string(), &read_file(path)?)
    }

    /// The authorities that the machine trusts; empty where it has no such file.
    #[must_use]
    pub fn system() -> Self {
        SYSTEM_BUNDLES.iter().find_map(|path| Self::from_file(Path::new(path)).ok()).unwrap_or_else(Self::empty)
    }

    /// The certificates, in the order of the input.
    #[must_use]
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// The anchors for webpki.
    #[must_use]
    pub fn roots(&self) -> &RootCertStore {
        &self.roots
    }

    /// The subjects, as servers send them to clients as a hint.
    #[must_use]
    pub fn subjects(&self) -> Vec<DistinguishedName> {
        self.roots.subjects()
    }

    /// Whether exactly this certificate is in the bundle.
    #[must_use]
    pub fn contains(&self, certificate: &CertificateDer<'_>) -> bool {
        self.certificates.iter().any(|known| known.as_ref() == certificate.as_ref())
    }

    /// This bundle, ready to be shared and replaced.
    #[must_use]
    pub fn into_shared(self) -> SharedCaBundle {
        Arc::new(ArcSwap::from_pointee(self))
    }
}
