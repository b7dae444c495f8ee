//! Certificates on disk: one file each with certificate and key, and a link to the one in use.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use api_machinery::time::Time;
use pki::Certificate;

use super::CertificateError;

/// Pairs of one purpose.
#[derive(Debug, Clone)]
pub(super) struct Store {
    directory: PathBuf,
    /// `kubelet-client` or `kubelet-server`.
    prefix: &'static str,
}

/// A certificate chain and its key, both PEM.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) chain: Vec<u8>,
    pub(super) key: Vec<u8>,
}

impl Pair {
    /// The certificate itself.
    pub(super) fn leaf(&self) -> Result<Certificate, CertificateError> {
        Ok(Certificate::one_from_pem(&self.chain)?)
    }
}

impl Store {
    pub(super) fn new(directory: &Path, prefix: &'static str) -> Self {
        Self { directory: directory.to_owned(), prefix }
    }

    /// The link to the pair in use.
    pub(super) fn current(&self) -> PathBuf {
        self.directory.join(format!("{}-current.pem", self.prefix))
    }

    /// The pair in use, if there is one that can be read.
    pub(super) fn load(&self) -> Option<Pair> {
        let text = fs::read(self.current()).ok()?;
        // Both readers skip blocks of other kinds.
        let pair = Pair { chain: text.clone(), key: text };
        pair.leaf().is_ok().then_some(pair)
    }

    /// Writes a pair and makes it the one in use.
    pub(super) fn save(&self, pair: &Pair, now: SystemTime) -> Result<(), CertificateError> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
        made.map_err(|source| file("mkdir", &self.directory, source))?;
        let stamp = Time::from(now).to_string();
        let stamp: String = stamp.chars().take(19).map(|c| if c.is_ascii_digit() { c } else { '-' }).collect();
        let name = format!("{}-{stamp}.pem", self.prefix);
        let path = self.directory.join(&name);
        let content = [pair.chain.as_slice(), b"\n", pair.key.as_slice()].concat();
        sys::fs::write_atomic(&path, &content, 0o600).map_err(|source| file("write", &path, source))?;
        let (link, new) = (self.current(), self.directory.join(format!("{}-updated.pem", self.prefix)));
        let _ = fs::remove_file(&new);
        symlink(&path, &new).map_err(|source| file("symlink", &new, source))?;
        fs::rename(&new, &link).map_err(|source| file("rename", &link, source))
    }
}

fn file(what: &'static str, path: &Path, source: io::Error) -> CertificateError {
    CertificateError::File { what, path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use base::Rng;
    use pki::{CertificateAuthority, KeyAlgorithm, PrivateKey};

    use super::*;

    #[test]
    fn the_link_leads_to_the_newest_pair() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(&dir.path().join("pki"), "kubelet-client");
        assert!(store.load().is_none());
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        for (name, later) in [("one", 0), ("two", 5)] {
            let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
            let key_pem = key.to_pem().unwrap();
            let made = CertificateAuthority::create(name, key, Duration::from_secs(100), now, &Rng::seeded(1)).unwrap();
            let pair = Pair { chain: made.certificate().to_pem().into(), key: key_pem.into() };
            store.save(&pair, now + Duration::from_secs(later)).unwrap();
            assert_eq!(store.load().unwrap().leaf().unwrap().subject().common_name(), name);
        }
        let target = fs::read_link(store.current()).unwrap();
        assert!(target.ends_with("kubelet-client-2023-11-14-22-13-25.pem"), "{target:?}");
        assert_eq!(fs::metadata(target).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
