//! CA bundles: a file of certificates to trust, read with errors that name the file and the entry.

use std::io;
use std::path::{Path, PathBuf};

use rustls_pki_types::{CertificateDer, TrustAnchor};

use crate::certificate::Certificate;
use crate::pem;

/// Entries one bundle may hold; system bundles have some 150, so this only stops nonsense.
pub const MAX_BUNDLE_CERTIFICATES: usize = 10_000;

/// Why a bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The file could not be read.
    #[error("unable to read CA bundle {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file was read, its content is no good.
    #[error("unable to load CA bundle {path}: {source}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<BundleError>,
    },
    /// Not one certificate.
    #[error("data does not contain any valid RSA or ECDSA certificates")]
    Empty,
    /// Far too many.
    #[error("more than {MAX_BUNDLE_CERTIFICATES} certificates")]
    TooMany,
    /// One entry is not a certificate, or not one that can be an anchor.
    #[error("entry {index}: {why}")]
    Entry {
        /// Position among the certificate blocks, from 0.
        index: usize,
        /// What is wrong.
        why: String,
    },
}

/// Certificates to trust, in file order.
#[derive(Debug, Clone, Default)]
pub struct CaBundle {
    certificates: Vec<Certificate>,
    anchors: Vec<TrustAnchor<'static>>,
}

impl CaBundle {
    /// Parses PEM text; blocks that are not certificates are skipped.
    ///
    /// # Errors
    /// [`BundleError::Empty`], [`BundleError::TooMany`] or the first bad entry.
    pub fn from_pem(text: &[u8]) -> Result<Self, BundleError> {
        let blocks = pem::parse_blocks(text);
        let blocks = blocks.iter().filter(|block| block.label == "CERTIFICATE" && !block.has_headers);
        let mut certificates = Vec::new();
        for (index, block) in blocks.enumerate() {
            if index >= MAX_BUNDLE_CERTIFICATES {
                return Err(BundleError::TooMany);
            }
            let parsed = Certificate::from_der(&block.der);
            certificates.push(parsed.map_err(|error| BundleError::Entry { index, why: error.to_string() })?);
        }
        Self::new(certificates)
    }

    /// A bundle of parsed certificates.
    ///
    /// # Errors
    /// [`BundleError::Empty`], or an entry that cannot be a trust anchor (a version 1 certificate, for instance).
    pub fn new(certificates: Vec<Certificate>) -> Result<Self, BundleError> {
        if certificates.is_empty() {
            return Err(BundleError::Empty);
        }
        let mut anchors = Vec::with_capacity(certificates.len());
        for (index, certificate) in certificates.iter().enumerate() {
            let der = CertificateDer::from(certificate.der());
            let anchor = webpki::anchor_from_trusted_cert(&der)
                .map_err(|error| BundleError::Entry { index, why: error.to_string() })?;
            anchors.push(anchor.to_owned());
        }
        Ok(Self { certificates, anchors })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`Self::from_pem`], naming the file.
    pub fn load(path: &Path) -> Result<Self, BundleError> {
        let text = std::fs::read(path).map_err(|source| BundleError::Read { path: path.to_owned(), source })?;
        Self::from_pem(&text).map_err(|source| BundleError::Content { path: path.to_owned(), source: Box::new(source) })
    }

    /// The certificates, in file order.
    #[must_use]
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// The same as trust anchors, in the same order.
    #[must_use]
    pub fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }

    /// Raw subjects: the hints a TLS server sends about acceptable client CAs.
    #[must_use]
    pub fn subjects(&self) -> Vec<Vec<u8>> {
        self.certificates.iter().map(|certificate| certificate.subject().raw().to_vec()).collect()
    }

    /// Whether any certificate is in both bundles.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.certificates.iter().any(|own| other.certificates.iter().any(|theirs| own.der() == theirs.der()))
    }

    /// All certificates as PEM text.
    #[must_use]
    pub fn to_pem(&self) -> String {
        self.certificates.iter().map(Certificate::to_pem).collect()
    }
}
