//! Making a certificates directory complete: what is missing is created, what is there and fits is kept, what is there and
//! does not fit is an error that names it. Nothing existing is ever overwritten, and a run that was cut short is finished by the
//! next: keys are written before certificates, and a key without certificate is used.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base::Rng;

use crate::alt_names::AltNames;
use crate::authority::{CertificateAuthority, CertificateSpec, IssueError};
use crate::bundle::CaBundle;
use crate::certificate::Certificate;
use crate::file::{PRIVATE_MODE, PUBLIC_MODE, create_parent, read_optional, write_atomically};
use crate::key::{KeyAlgorithm, KeyError, PrivateKey};
use crate::layout::{Authority, Leaf, PkiConfig};
use crate::public_key::PublicKey;
use crate::usage::Purpose;
use crate::verify::{ChainError, verify_chain};

/// Why the directory could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum EnsureError {
    /// Reading or writing a file.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file holds the wrong thing.
    #[error("{path}: {why}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A certificate is missing and so is the CA's key.
    #[error("certificate {name} is missing and the key of {authority} is not here to sign it")]
    ExternalAuthority {
        /// The leaf.
        name: &'static str,
        /// The CA.
        authority: &'static str,
    },
    /// Making a key or certificate.
    #[error("failed to create {name}: {source}")]
    Issue {
        /// What was to be made.
        name: &'static str,
        /// Why not.
        source: IssueError,
    },
}

/// What happened to one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ensured {
    /// Made now.
    Created,
    /// There already and fit.
    Kept,
    /// There already and kept, but outside its validity: to be renewed.
    KeptExpired,
}

/// What a run did, in order: `(name, what happened)`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnsureReport {
    /// The entries.
    pub entries: Vec<(&'static str, Ensured)>,
}

impl EnsureReport {
    /// Names of what was made.
    pub fn created(&self) -> impl Iterator<Item = &'static str> {
        self.which(Ensured::Created)
    }

    /// Names of what was kept though it is outside its validity.
    pub fn expired(&self) -> impl Iterator<Item = &'static str> {
        self.which(Ensured::KeptExpired)
    }

    fn which(&self, wanted: Ensured) -> impl Iterator<Item = &'static str> {
        self.entries.iter().filter(move |(_, outcome)| *outcome == wanted).map(|(name, _)| *name)
    }
}

/// Completes `directory` for `config` and reports what was done.
///
/// # Errors
/// [`EnsureError`]; files made before the error stay and are kept by the next run.
pub fn ensure(directory: &Path, config: &PkiConfig, now: SystemTime, rng: &Rng) -> Result<EnsureReport, EnsureError> {
    let run = Run { directory, config, now, rng };
    let mut report = EnsureReport::default();
    for authority in config.authorities() {
        let (signer, outcome) = run.authority(authority)?;
        report.entries.push((authority.name(), outcome));
        for leaf in config.leaves().filter(|leaf| leaf.authority == authority) {
            report.entries.push((leaf.name, run.leaf(leaf, &signer)?));
        }
    }
    report.entries.push(("sa", run.service_account_keys()?));
    Ok(report)
}

/// A certificate with its key as PEM, for embedding in a kubeconfig or a Secret.
#[derive(Clone)]
pub struct ClientIdentity {
    /// The certificate.
    pub certificate_pem: String,
    /// The private key.
    pub key_pem: String,
}

/// Issues a fresh certificate for one of [`crate::layout::USERS`] with the authority stored in `directory`.
///
/// # Errors
/// A missing or unusable CA, or a failure to sign.
pub fn issue_user(
    directory: &Path,
    user: &Leaf,
    config: &PkiConfig,
    now: SystemTime,
    rng: &Rng,
) -> Result<ClientIdentity, EnsureError> {
    let run = Run { directory, config, now, rng };
    run.issue(user.authority, user.name, &config.spec(user))
}

/// Issues a fresh serving certificate with the cluster's authority stored in `directory`, for a server that is known by
/// these names.
///
/// # Errors
/// An external CA, or a failure to sign.
pub fn issue_server(
    directory: &Path,
    common_name: &str,
    names: AltNames,
    config: &PkiConfig,
    now: SystemTime,
    rng: &Rng,
) -> Result<ClientIdentity, EnsureError> {
    let run = Run { directory, config, now, rng };
    let spec = CertificateSpec::server(common_name, names, config.leaf_validity);
    run.issue(Authority::Cluster, "the serving certificate", &spec)
}

/// Re-issues an existing leaf with a new key: subject, names and purposes come from the certificate on disk, not from the
/// configuration.
///
/// # Errors
/// A missing or unreadable certificate, an external CA, or a failure to sign.
pub fn renew(
    directory: &Path,
    leaf: &Leaf,
    config: &PkiConfig,
    now: SystemTime,
    rng: &Rng,
) -> Result<Certificate, EnsureError> {
    let run = Run { directory, config, now, rng };
    let Signer::Own(authority) = run.load_authority(leaf.authority)? else {
        return Err(EnsureError::ExternalAuthority { name: leaf.name, authority: leaf.authority.name() });
    };
    let (certificate_path, key_path) = run.paths(leaf.path);
    let Some(text) = run.read(&certificate_path)? else {
        return Err(content(&certificate_path, "the certificate to renew does not exist"));
    };
    let old = first_certificate(&certificate_path, &text)?;
    let spec = CertificateSpec {
        subject: old.subject().clone(),
        alt_names: old.alt_names().clone(),
        key_usages: old.key_usages(),
        purposes: old.purposes().to_vec(),
        validity: config.leaf_validity,
    };
    let failed = |source| EnsureError::Issue { name: leaf.name, source };
    let key = PrivateKey::generate(config.key_algorithm).map_err(|e| failed(e.into()))?;
    let renewed = authority.issue(&spec, key.public_key(), now, rng).map_err(failed)?;
    run.write_key(&key_path, &key)?;
    run.write(&certificate_path, renewed.to_pem().as_bytes(), PUBLIC_MODE)?;
    Ok(renewed)
}

/// A CA of the directory: with its key, or only its certificates when the key is kept elsewhere.
enum Signer {
    Own(Box<CertificateAuthority>),
    External(Vec<Certificate>),
}

impl Signer {
    fn certificates(&self) -> Vec<Certificate> {
        match self {
            Self::Own(authority) => vec![authority.certificate().clone()],
            Self::External(certificates) => certificates.clone(),
        }
    }
}

struct Run<'a> {
    directory: &'a Path,
    config: &'a PkiConfig,
    now: SystemTime,
    rng: &'a Rng,
}

impl Run<'_> {
    fn issue(
        &self,
        authority: Authority,
        name: &'static str,
        spec: &CertificateSpec,
    ) -> Result<ClientIdentity, EnsureError> {
        let Signer::Own(signer) = self.load_authority(authority)? else {
            return Err(EnsureError::ExternalAuthority { name, authority: authority.name() });
        };
        let issued = PrivateKey::generate(self.config.key_algorithm).map_err(IssueError::from).and_then(|key| {
            let certificate = signer.issue(spec, key.public_key(), self.now, self.rng)?;
            Ok(ClientIdentity { certificate_pem: certificate.to_pem(), key_pem: key.to_pem()? })
        });
        issued.map_err(|source| EnsureError::Issue { name, source })
    }

    fn paths(&self, base: &str) -> (PathBuf, PathBuf) {
        (self.directory.join(format!("{base}.crt")), self.directory.join(format!("{base}.key")))
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, EnsureError> {
        read_optional(path).map_err(|source| EnsureError::File { path: path.to_owned(), source })
    }

    fn write(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), EnsureError> {
        create_parent(path)
            .and_then(|()| write_atomically(path, bytes, mode))
            .map_err(|source| EnsureError::File { path: path.to_owned(), source })
    }

    fn write_key(&self, path: &Path, key: &PrivateKey) -> Result<(), EnsureError> {
        let text = key.to_pem().map_err(|error| content(path, &error.to_string()))?;
        self.write(path, text.as_bytes(), PRIVATE_MODE)
    }

    /// The key on disk, or a new one, written.
    fn key(&self, path: &Path, algorithm: KeyAlgorithm) -> Result<PrivateKey, EnsureError> {
        if let Some(text) = self.read(path)? {
            return PrivateKey::from_pem(&text).map_err(|error| content(path, &error.to_string()));
        }
        let key = PrivateKey::generate(algorithm).map_err(|error| content(path, &error.to_string()))?;
        self.write_key(path, &key)?;
        Ok(key)
    }

    fn authority(&self, authority: Authority) -> Result<(Signer, Ensured), EnsureError> {
        let (certificate_path, key_path) = self.paths(authority.base_path());
        if self.read(&certificate_path)?.is_some() {
            let signer = self.load_authority(authority)?;
            let current = signer.certificates().iter().all(|certificate| certificate.is_current(self.now));
            return Ok((signer, if current { Ensured::Kept } else { Ensured::KeptExpired }));
        }
        let key = self.key(&key_path, self.config.key_algorithm)?;
        let made =
            CertificateAuthority::create(authority.common_name(), key, self.config.ca_validity, self.now, self.rng);
        let made = made.map_err(|source| EnsureError::Issue { name: authority.name(), source })?;
        self.write(&certificate_path, made.certificate().to_pem().as_bytes(), PUBLIC_MODE)?;
        Ok((Signer::Own(Box::new(made)), Ensured::Created))
    }

    /// Reads a CA that must exist. Of several certificates (a rotation in progress) the first one signs.
    fn load_authority(&self, authority: Authority) -> Result<Signer, EnsureError> {
        let (certificate_path, key_path) = self.paths(authority.base_path());
        let Some(text) = self.read(&certificate_path)? else {
            return Err(content(&certificate_path, "the CA certificate does not exist"));
        };
        let certificate = first_certificate(&certificate_path, &text)?;
        if !certificate.is_ca() {
            return Err(content(&certificate_path, "certificate is not a certificate authority"));
        }
        let Some(key) = self.read(&key_path)? else {
            let all =
                Certificate::all_from_pem(&text).map_err(|error| content(&certificate_path, &error.to_string()))?;
            return Ok(Signer::External(all));
        };
        let key = PrivateKey::from_pem(&key).map_err(|error| content(&key_path, &error.to_string()))?;
        let own =
            CertificateAuthority::new(certificate, key).map_err(|error| content(&key_path, &error.to_string()))?;
        Ok(Signer::Own(Box::new(own)))
    }

    fn leaf(&self, leaf: &Leaf, signer: &Signer) -> Result<Ensured, EnsureError> {
        let (certificate_path, key_path) = self.paths(leaf.path);
        if let Some(text) = self.read(&certificate_path)? {
            return self.keep(leaf, signer, &text);
        }
        let Signer::Own(authority) = signer else {
            return Err(EnsureError::ExternalAuthority { name: leaf.name, authority: leaf.authority.name() });
        };
        let key = self.key(&key_path, self.config.key_algorithm)?;
        let issued = authority.issue(&self.config.spec(leaf), key.public_key(), self.now, self.rng);
        let issued = issued.map_err(|source| EnsureError::Issue { name: leaf.name, source })?;
        self.write(&certificate_path, issued.to_pem().as_bytes(), PUBLIC_MODE)?;
        Ok(Ensured::Created)
    }

    /// An existing leaf must match its key, its CA, and the names and purposes this node needs. Being outside its validity is
    /// reported, not refused: renewal is the operator's command.
    fn keep(&self, leaf: &Leaf, signer: &Signer, text: &[u8]) -> Result<Ensured, EnsureError> {
        let (certificate_path, key_path) = self.paths(leaf.path);
        let certificate = first_certificate(&certificate_path, text)?;
        let Some(key) = self.read(&key_path)? else {
            return Err(content(&key_path, "the certificate is there but its private key is not"));
        };
        let key = PrivateKey::from_pem(&key).map_err(|error| content(&key_path, &error.to_string()))?;
        if key.public_key() != certificate.public_key() {
            return Err(content(&key_path, &IssueError::KeyMismatch.to_string()));
        }
        let spec = self.config.spec(leaf);
        if !certificate.alt_names().covers(&spec.alt_names) {
            return Err(content(&certificate_path, "certificate does not carry all names this node needs"));
        }
        if !spec.purposes.iter().all(|purpose| certificate.permits(purpose)) {
            return Err(content(&certificate_path, &ChainError::IncompatibleUsage.to_string()));
        }
        let bundle = CaBundle::new(signer.certificates());
        let bundle = bundle.map_err(|error| content(&certificate_path, &error.to_string()))?;
        let purpose = spec.purposes.first().cloned().unwrap_or_else(Purpose::client_auth);
        match verify_chain(&bundle, &certificate, &[], &purpose, self.now) {
            Ok(()) => Ok(Ensured::Kept),
            Err(ChainError::NotCurrent { .. }) => Ok(Ensured::KeptExpired),
            // The CA's own end makes it unusable as an anchor; report that as age as well.
            Err(ChainError::UnknownAuthority) if !signer.certificates().iter().any(|ca| ca.is_current(self.now)) => {
                Ok(Ensured::KeptExpired)
            }
            Err(error) => Err(content(
                &certificate_path,
                &format!("certificate {} not signed by CA certificate {}: {error}", leaf.name, leaf.authority.name()),
            )),
        }
    }

    fn service_account_keys(&self) -> Result<Ensured, EnsureError> {
        let (private_path, public_path) = (self.directory.join("sa.key"), self.directory.join("sa.pub"));
        let existed = self.read(&private_path)?;
        let public = self.read(&public_path)?;
        if existed.is_none() && public.is_some() {
            return Err(content(&private_path, "sa.pub is there but its private key is not"));
        }
        let key = self.key(&private_path, self.config.key_algorithm)?;
        if let Some(text) = public {
            let keys: Result<Vec<PublicKey>, KeyError> = PublicKey::all_from_pem(&text);
            let keys = keys.map_err(|error| content(&public_path, &error.to_string()))?;
            return if keys.contains(key.public_key()) {
                Ok(Ensured::Kept)
            } else {
                Err(content(&public_path, "public key does not belong to sa.key"))
            };
        }
        self.write(&public_path, key.public_key().to_pem().as_bytes(), PRIVATE_MODE)?;
        Ok(Ensured::Created)
    }
}

fn content(path: &Path, why: &str) -> EnsureError {
    EnsureError::Content { path: path.to_owned(), why: why.to_owned() }
}

fn first_certificate(path: &Path, text: &[u8]) -> Result<Certificate, EnsureError> {
    let all = Certificate::all_from_pem(text).map_err(|error| content(path, &error.to_string()))?;
    all.into_iter().next().ok_or_else(|| content(path, "no certificate in the file"))
}

#[cfg(test)]
#[path = "ensure_tests.rs"]
mod tests;
