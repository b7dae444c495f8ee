//! A set of trusted certificates: the anchors for webpki, and the certificates themselves for exact matches.

use std::collections::HashSet;
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

/// Directories of certificates, read as well.
const SYSTEM_DIRECTORIES: &str = "/etc/ssl/certs:/etc/pki/tls/certs";
/// Files of a directory that are read at most.
const MAX_FILES: usize = 10_000;

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

    /// The authorities that the machine trusts; empty where it has no such file. As Go has it, `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR` (directories, with colons in between) stand for the usual places.
    #[must_use]
    pub fn system() -> Self {
        let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let directories = named("SSL_CERT_DIR").unwrap_or_else(|| SYSTEM_DIRECTORIES.to_owned());
        match named("SSL_CERT_FILE") {
            Some(file) => Self::from_places(&[&file], &directories),
            None => Self::from_places(SYSTEM_BUNDLES, &directories),
        }
    }

    /// The certificates of the first of the files that has any, and of all files in the directories.
    fn from_places(files: &[&str], directories: &str) -> Self {
        let of_file = |path: &Path| Self::from_file(path).map(|bundle| bundle.certificates).ok();
        let mut all = files.iter().find_map(|path| of_file(Path::new(path))).unwrap_or_default();
        let mut known: HashSet<Vec<u8>> = all.iter().map(|certificate| certificate.to_vec()).collect();
        for directory in directories.split(':').filter(|path| !path.is_empty()) {
            let Ok(entries) = std::fs::read_dir(directory) else { continue };
            let found = entries.take(MAX_FILES).flatten().filter_map(|entry| of_file(&entry.path()));
            all.extend(found.flatten().filter(|certificate| known.insert(certificate.to_vec())));
        }
        Self::new(all)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_directories_count_once_each() {
        let dir = tempfile::tempdir().unwrap();
        let pem = || {
            let params = rcgen::CertificateParams::new(Vec::new()).unwrap();
            params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
        };
        let (one, two) = (pem(), pem());
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("bundle"), &one).unwrap();
        std::fs::create_dir(path("certs")).unwrap();
        std::fs::write(path("certs/one.pem"), &one).unwrap();
        std::fs::write(path("certs/two.pem"), &two).unwrap();
        std::fs::write(path("certs/README"), "no certificate").unwrap();
        let count = |files: &[&str], directories: &str| CaBundle::from_places(files, directories).certificates().len();
        assert_eq!(count(&["/nonexistent", &path("bundle")], ""), 1);
        assert_eq!(count(&[&path("bundle")], &format!("/nonexistent:{}", path("certs"))), 2);
        assert_eq!(count(&["/nonexistent"], "/nonexistent"), 0);
    }
}
