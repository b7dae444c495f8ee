//! The client's side: which servers to trust, and which certificate to show.
//!
//! Go accepts a server certificate that is itself in the bundle, also one that is an authority; webpki refuses both.
//! Upstream's self-signed serving pairs and many webhook `caBundle`s are like that, so an exact match comes first.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use super::{CertFiles, SharedCaBundle, TlsError, certified_key, provider, read_file};
use crate::reload::{Reload, ReloadError};

/// Which servers a client trusts.
#[derive(Debug, Clone)]
pub enum ServerTrust {
    /// Those that the bundle vouches for; it may be replaced at any time.
    Bundle(SharedCaBundle),
    /// Any (`insecure-skip-tls-verify`).
    Anyone,
}

/// A client certificate that can be replaced; connections made later show the new one.
#[derive(Debug, Default)]
pub struct ClientIdentity {
    files: Option<CertFiles>,
    pem: Mutex<(Vec<u8>, Vec<u8>)>,
    key: ArcSwapOption<CertifiedKey>,
}

impl ClientIdentity {
    /// No certificate; one may be set later.
    #[must_use]
    pub fn none() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// A pair held in memory.
    ///
    /// # Errors
    /// When the pair is broken.
    pub fn from_pem(cert_pem: &[u8], key_pem: &[u8]) -> Result<Arc<Self>, TlsError> {
        let identity = Self::default();
        identity.set(cert_pem, key_pem)?;
        Ok(Arc::new(identity))
    }

    /// A pair that follows its files (see [`crate::reload::Reload`]).
    ///
    /// # Errors
    /// When a file cannot be read, or the pair does not match.
    pub fn load(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Result<Arc<Self>, TlsError> {
        let identity = Self { files: Some(CertFiles { cert: cert.into(), key: key.into() }), ..Self::default() };
        identity.read_again()?;
        Ok(Arc::new(identity))
    }

    /// Replaces the pair.
    ///
    /// # Errors
    /// When the pair is broken; the former one stays.
    pub fn set(&self, cert_pem: &[u8], key_pem: &[u8]) -> Result<(), TlsError> {
        let key = certified_key(&self.describe(), cert_pem, key_pem)?;
        *self.pem.lock() = (cert_pem.to_vec(), key_pem.to_vec());
        self.key.store(Some(key));
        Ok(())
    }

    /// Shows no certificate any more.
    pub fn clear(&self) {
        *self.pem.lock() = Default::default();
        self.key.store(None);
    }

    /// From when to when the certificate that is shown now is valid; nothing when there is none that can be read.
    #[must_use]
    pub fn validity(&self) -> Option<(SystemTime, SystemTime)> {
        let chain = self.chain();
        let (_, leaf) = x509_parser::parse_x509_certificate(chain.first()?).ok()?;
        let at = |seconds: i64| UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        let validity = leaf.validity();
        Some((at(validity.not_before.timestamp()), at(validity.not_after.timestamp())))
    }

    fn read_again(&self) -> Result<bool, TlsError> {
        let Some(files) = &self.files else { return Ok(false) };
        let pem = (read_file(&files.cert)?, read_file(&files.key)?);
        if *self.pem.lock() == pem {
            return Ok(false);
        }
        self.set(&pem.0, &pem.1)?;
        Ok(true)
    }

    /// The chain that is shown now; empty when there is none.
    #[must_use]
    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.key.load().as_ref().map(|key| key.cert.clone()).unwrap_or_default()
    }
}

impl Reload for ClientIdentity {
    fn describe(&self) -> String {
        self.files.as_ref().map_or("in-memory client certificate".to_owned(), |files| files.cert.display().to_string())
    }

    fn reload(&self) -> Result<bool, ReloadError> {
        Ok(self.read_again()?)
    }
}

impl ResolvesClientCert for ClientIdentity {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.key.load_full()
    }

    fn has_certs(&self) -> bool {
        self.key.load().is_some()
    }
}

/// How a client speaks TLS.
#[derive(Debug, Clone)]
pub struct ClientTls {
    /// Which servers it trusts.
    pub trust: ServerTrust,
    /// The certificate it shows.
    pub identity: Arc<ClientIdentity>,
    /// The name to ask for and to verify instead of the host's (`tls-server-name`).
    pub server_name: Option<String>,
    /// The protocols to offer, most wanted first; empty offers none.
    pub alpn: Vec<Vec<u8>>,
}

impl ClientTls {
    /// A client that trusts `trust`, shows no certificate and offers HTTP/2 and HTTP/1.1.
    #[must_use]
    pub fn new(trust: ServerTrust) -> Self {
        let alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { trust, identity: ClientIdentity::none(), server_name: None, alpn }
    }

    /// The configuration for rustls.
    ///
    /// # Errors
    /// When the library refuses it.
    pub fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let verifier = Arc::new(Verifier { trust: self.trust.clone(), provider: provider() });
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(TlsError::Config)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::<ClientIdentity>::clone(&self.identity));
        config.alpn_protocols.clone_from(&self.alpn);
        Ok(Arc::new(config))
    }

    /// The name to ask `host` for: a DNS name or an address, without port or brackets.
    ///
    /// # Errors
    /// When it is neither.
    pub fn name_for(&self, host: &str) -> Result<ServerName<'static>, TlsError> {
        let name = self.server_name.as_deref().filter(|name| !name.is_empty()).unwrap_or(host);
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        ServerName::try_from(bare.to_owned()).map_err(|_| TlsError::Option(format!("invalid server name {name:?}")))
    }
}

#[derive(Debug)]
struct Verifier {
    trust: ServerTrust,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let ServerTrust::Bundle(bundle) = &self.trust else { return Ok(ServerCertVerified::assertion()) };
        let bundle = bundle.load();
        let parsed = ParsedCertificate::try_from(leaf)?;
        if bundle.contains(leaf) {
            check_validity(leaf, now)?;
        } else {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, bundle.roots(), intermediates, now, algorithms)?;
        }
        verify_server_name(&parsed, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether `now` lies within the certificate's dates; webpki checks this only as part of a chain.
fn check_validity(leaf: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let bad = |error| Error::InvalidCertificate(error);
    let (_, certificate) = x509_parser::parse_x509_certificate(leaf).map_err(|_| bad(CertificateError::BadEncoding))?;
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    if seconds < validity.not_before.timestamp() {
        return Err(bad(CertificateError::NotValidYet));
    }
    if seconds > validity.not_after.timestamp() {
        return Err(bad(CertificateError::Expired));
    }
    Ok(())
}
