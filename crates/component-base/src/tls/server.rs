//! The server's side: which certificate to show, and how clients are asked for theirs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoClientAuth, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};

use super::{CaBundle, TlsError, TlsOptions, certified_key, provider, read_file};
use crate::reload::{Reload, ReloadError};

/// A certificate and its key in two PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertFiles {
    /// The chain, leaf first.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// A further certificate, chosen by the name that a client asks for (`--tls-sni-cert-key`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SniCert {
    /// Its files.
    pub files: CertFiles,
    /// The names it serves, `*.` wildcards included; empty means the DNS names of the certificate.
    pub names: Vec<String>,
}

/// One certificate in use.
#[derive(Debug, Clone)]
struct Entry {
    files: Option<CertFiles>,
    explicit: Vec<String>,
    pem: (Vec<u8>, Vec<u8>),
    names: Vec<String>,
    key: Arc<CertifiedKey>,
}

#[derive(Debug, Clone, Default)]
struct Entries {
    default: Option<Entry>,
    sni: Vec<Entry>,
}

/// The certificates of a server; they can be replaced while it runs.
#[derive(Debug, Default)]
pub struct ServingCerts {
    entries: ArcSwap<Entries>,
    /// Serialises writers; readers only look at the snapshot.
    writer: Mutex<()>,
}

impl ServingCerts {
    /// No certificate yet: handshakes fail until one is set.
    #[must_use]
    pub fn empty() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Reads the main pair and those chosen by name.
    ///
    /// # Errors
    /// When a file cannot be read, or a pair does not match.
    pub fn load(default: Option<&CertFiles>, sni: &[SniCert]) -> Result<Arc<Self>, TlsError> {
        let default = default.map(|files| Entry::load(files, &[])).transpose()?;
        let sni = sni.iter().map(|cert| Entry::load(&cert.files, &cert.names)).collect::<Result<_, _>>()?;
        Ok(Arc::new(Self { entries: ArcSwap::from_pointee(Entries { default, sni }), writer: Mutex::default() }))
    }

    /// A main pair held in memory.
    ///
    /// # Errors
    /// When the pair is broken.
    pub fn from_pem(cert_pem: &[u8], key_pem: &[u8]) -> Result<Arc<Self>, TlsError> {
        let certs = Self::empty();
        certs.set_default(cert_pem, key_pem)?;
        Ok(certs)
    }

    /// Replaces the main pair by one held in memory.
    ///
    /// # Errors
    /// When the pair is broken; the former one stays.
    pub fn set_default(&self, cert_pem: &[u8], key_pem: &[u8]) -> Result<(), TlsError> {
        let entry = Entry::new(None, &[], cert_pem.to_vec(), key_pem.to_vec())?;
        self.update(|entries| entries.default = Some(entry));
        Ok(())
    }

    /// Adds a pair for some names, held in memory; it wins over those added before.
    ///
    /// # Errors
    /// When the pair is broken.
    pub fn add_sni(&self, names: &[String], cert_pem: &[u8], key_pem: &[u8]) -> Result<(), TlsError> {
        let entry = Entry::new(None, names, cert_pem.to_vec(), key_pem.to_vec())?;
        self.update(|entries| entries.sni.insert(0, entry));
        Ok(())
    }

    /// The main chain as it is shown now.
    #[must_use]
    pub fn default_chain(&self) -> Vec<CertificateDer<'static>> {
        self.entries.load().default.as_ref().map(|entry| entry.key.cert.clone()).unwrap_or_default()
    }

    fn update(&self, change: impl FnOnce(&mut Entries)) {
        let _writer = self.writer.lock();
        let mut entries = Entries::clone(&self.entries.load());
        change(&mut entries);
        self.entries.store(Arc::new(entries));
    }

    /// Names given by the operator come before names in certificates, exact ones before wildcards.
    fn choose(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let entries = self.entries.load();
        let wanted = name.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let by_name = wanted.as_deref().and_then(|wanted| {
            let wildcard = wanted.split_once('.').map(|(_, rest)| format!("*.{rest}"));
            let candidates = [Some(wanted), wildcard.as_deref()];
            candidates.into_iter().flatten().find_map(|pattern| entries.find(pattern))
        });
        by_name.or(entries.default.as_ref()).map(|entry| Arc::clone(&entry.key))
    }
}

impl Entries {
    fn find(&self, pattern: &str) -> Option<&Entry> {
        let explicit = self.sni.iter().find(|entry| entry.explicit.iter().any(|name| name == pattern));
        let derived =
            || self.sni.iter().find(|entry| entry.explicit.is_empty() && entry.names.iter().any(|n| n == pattern));
        explicit.or_else(derived)
    }
}

impl Entry {
    fn load(files: &CertFiles, names: &[String]) -> Result<Self, TlsError> {
        Self::new(Some(files.clone()), names, read_file(&files.cert)?, read_file(&files.key)?)
    }

    fn new(files: Option<CertFiles>, names: &[String], cert: Vec<u8>, key: Vec<u8>) -> Result<Self, TlsError> {
        let what = files.as_ref().map_or("in-memory certificate".to_owned(), |f| f.cert.display().to_string());
        let pair = certified_key(&what, &cert, &key)?;
        let explicit: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let names = pair.cert.first().map(|leaf| dns_names(leaf)).unwrap_or_default();
        Ok(Self { files, explicit, pem: (cert, key), names, key: pair })
    }

    /// The entry read again, or none when its files are as before.
    fn reread(&self) -> Result<Option<Self>, TlsError> {
        let Some(files) = &self.files else { return Ok(None) };
        let pem = (read_file(&files.cert)?, read_file(&files.key)?);
        if pem == self.pem {
            return Ok(None);
        }
        Self::new(Some(files.clone()), &self.explicit, pem.0, pem.1).map(Some)
    }
}

impl Reload for ServingCerts {
    fn describe(&self) -> String {
        let entries = self.entries.load();
        let files = entries.default.iter().chain(&entries.sni).filter_map(|entry| entry.files.as_ref());
        let names: Vec<String> = files.map(|files| files.cert.display().to_string()).collect();
        format!("serving certificates {}", names.join(", "))
    }

    fn reload(&self) -> Result<bool, ReloadError> {
        let _writer = self.writer.lock();
        let mut entries = Entries::clone(&self.entries.load());
        let mut changed = false;
        let mut failure = None;
        for entry in entries.default.iter_mut().chain(&mut entries.sni) {
            match entry.reread() {
                Ok(Some(fresh)) => (*entry, changed) = (fresh, true),
                Ok(None) => {}
                Err(error) => failure = Some(error),
            }
        }
        self.entries.store(Arc::new(entries));
        failure.map_or(Ok(changed), |error| Err(error.into()))
    }
}

impl ResolvesServerCert for ServingCerts {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(hello.server_name())
    }
}

/// The DNS names of a certificate, in lower case; empty when it does not parse.
fn dns_names(leaf: &CertificateDer<'_>) -> Vec<String> {
    use x509_parser::extensions::GeneralName;
    let Ok((_, certificate)) = x509_parser::parse_x509_certificate(leaf) else { return Vec::new() };
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    let dns = names.value.general_names.iter().filter_map(|name| match name {
        GeneralName::DNSName(dns) => Some(dns.to_ascii_lowercase()),
        _ => None,
    });
    dns.collect()
}

/// A server's TLS configuration, rebuilt when the set of client CAs changes.
#[derive(Debug)]
pub struct ServerTls {
    certs: Arc<ServingCerts>,
    options: TlsOptions,
    config: ArcSwap<ServerConfig>,
}

impl ServerTls {
    /// A configuration that shows `certs` and does not ask for client certificates yet.
    ///
    /// # Errors
    /// When an option is unknown.
    pub fn new(certs: Arc<ServingCerts>, options: TlsOptions) -> Result<Arc<Self>, TlsError> {
        let config = ArcSwap::from_pointee(build(&certs, &options, None)?);
        Ok(Arc::new(Self { certs, options, config }))
    }

    /// Asks clients of new connections for a certificate, naming these authorities as a hint. Any certificate (or
    /// none) passes the handshake: authentication checks the chain and answers 401, not a TLS alert.
    ///
    /// # Errors
    /// When the library refuses the configuration.
    pub fn request_client_certs(&self, authorities: &[&CaBundle]) -> Result<(), TlsError> {
        let hints = authorities.iter().flat_map(|bundle| bundle.subjects()).collect();
        self.config.store(Arc::new(build(&self.certs, &self.options, Some(hints))?));
        Ok(())
    }

    /// The configuration for the next connection.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.load_full()
    }

    /// The certificates that are shown.
    #[must_use]
    pub fn certs(&self) -> &Arc<ServingCerts> {
        &self.certs
    }
}

fn build(
    certs: &Arc<ServingCerts>,
    options: &TlsOptions,
    hints: Option<Vec<DistinguishedName>>,
) -> Result<ServerConfig, TlsError> {
    let verifier: Arc<dyn ClientCertVerifier> = match hints {
        Some(hints) => Arc::new(RequestClientCert { hints, provider: provider() }),
        None => Arc::new(NoClientAuth),
    };
    let mut config = ServerConfig::builder_with_provider(options.provider()?)
        .with_protocol_versions(&options.versions()?)
        .map_err(TlsError::Config)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::<ServingCerts>::clone(certs));
    config.alpn_protocols = options.alpn();
    Ok(config)
}

/// Go's `RequestClientCert`: the client proves that it holds the key, nothing more.
#[derive(Debug)]
struct RequestClientCert {
    hints: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for RequestClientCert {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Splits a `--tls-sni-cert-key` value: `cert,key` or `cert,key:name,name`.
impl std::str::FromStr for SniCert {
    type Err = TlsError;

    fn from_str(text: &str) -> Result<Self, TlsError> {
        let (pair, names) = text.split_once(':').map_or((text, None), |(pair, names)| (pair, Some(names)));
        let bad = || TlsError::Option("expected comma separated certificate and key file paths".to_owned());
        let (cert, key) = pair.split_once(',').filter(|(_, key)| !key.contains(',')).ok_or_else(bad)?;
        let (cert, key) = (cert.trim(), key.trim());
        if cert.is_empty() || key.is_empty() {
            return Err(bad());
        }
        let names: Vec<String> = match names {
            None => Vec::new(),
            Some(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        };
        if names.iter().any(String::is_empty) {
            return Err(TlsError::Option("unexpected empty name in the list of domain patterns".to_owned()));
        }
        let files = CertFiles { cert: Path::new(cert).to_owned(), key: Path::new(key).to_owned() };
        Ok(Self { files, names })
    }
}
