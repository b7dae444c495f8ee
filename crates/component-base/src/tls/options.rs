//! The TLS flags of a server, in Go's names: lowest version, cipher suites, curves.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion, version};

use super::{TlsError, provider};

/// The suites that are offered, by Go's name. Suites for TLS 1.3 cannot be chosen, as in Go, but may be named.
pub const CIPHER_SUITES: &[(&str, SupportedCipherSuite)] = &[
    ("TLS_AES_128_GCM_SHA256", aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", ECDSA_CHACHA),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", ECDSA_CHACHA),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", RSA_CHACHA),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", RSA_CHACHA),
];

const ECDSA_CHACHA: SupportedCipherSuite = aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
const RSA_CHACHA: SupportedCipherSuite = aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256;

/// What a server offers in a handshake; the default is what upstream offers without flags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// `VersionTLS12` or `VersionTLS13`; empty is TLS 1.2.
    pub min_version: String,
    /// Suites for TLS 1.2 by Go's name; empty is all of [`CIPHER_SUITES`].
    pub cipher_suites: Vec<String>,
    /// Key exchange groups by their TLS number, most wanted first; empty is the library's choice.
    pub curve_preferences: Vec<i64>,
    /// Whether only HTTP/1.1 is offered.
    pub disable_http2: bool,
}

impl TlsOptions {
    /// Every problem with the options, for start-up to report together.
    #[must_use]
    pub fn problems(&self) -> Vec<TlsError> {
        let mut problems: Vec<TlsError> = self.versions().err().into_iter().collect();
        problems.extend(self.suites().err());
        problems.extend(self.groups().err());
        problems
    }

    /// The protocol versions to offer.
    ///
    /// # Errors
    /// When the lowest version is unknown, or older than what is offered at all.
    pub fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
        match self.min_version.as_str() {
            "" | "VersionTLS12" => Ok(vec![&version::TLS13, &version::TLS12]),
            "VersionTLS13" => Ok(vec![&version::TLS13]),
            old @ ("VersionTLS10" | "VersionTLS11") => Err(TlsError::Option(format!(
                "tls version {old:?} is not supported: possible values: VersionTLS12, VersionTLS13"
            ))),
            other => Err(TlsError::Option(format!("unknown tls version {other:?}"))),
        }
    }

    /// The crypto provider cut down to these options.
    ///
    /// # Errors
    /// When a suite or a curve is not known.
    pub fn provider(&self) -> Result<Arc<CryptoProvider>, TlsError> {
        let mut provider = CryptoProvider::clone(&provider());
        provider.cipher_suites = self.suites()?;
        provider.kx_groups = self.groups()?;
        Ok(Arc::new(provider))
    }

    /// The protocols to offer over ALPN.
    #[must_use]
    pub fn alpn(&self) -> Vec<Vec<u8>> {
        let protocols: &[&[u8]] = if self.disable_http2 { &[b"http/1.1"] } else { &[b"h2", b"http/1.1"] };
        protocols.iter().map(|protocol| protocol.to_vec()).collect()
    }

    fn suites(&self) -> Result<Vec<SupportedCipherSuite>, TlsError> {
        if self.cipher_suites.is_empty() {
            return Ok(provider().cipher_suites.clone());
        }
        let mut suites: Vec<SupportedCipherSuite> =
            provider().cipher_suites.iter().filter(|suite| suite.tls13().is_some()).copied().collect();
        for name in &self.cipher_suites {
            let (_, suite) = CIPHER_SUITES
                .iter()
                .find(|(known, _)| known == name)
                .ok_or_else(|| TlsError::Option(format!("Cipher suite {name} not supported or doesn't exist")))?;
            if !suites.contains(suite) {
                suites.push(*suite);
            }
        }
        Ok(suites)
    }

    fn groups(&self) -> Result<Vec<&'static dyn SupportedKxGroup>, TlsError> {
        if self.curve_preferences.is_empty() {
            return Ok(provider().kx_groups.clone());
        }
        self.curve_preferences.iter().map(|number| group(*number)).collect()
    }
}

fn group(number: i64) -> Result<&'static dyn SupportedKxGroup, TlsError> {
    aws_lc_rs::ALL_KX_GROUPS
        .iter()
        .find(|group| i64::from(u16::from(group.name())) == number)
        .copied()
        .ok_or_else(|| TlsError::Option(format!("tls curve preference {number} not supported or doesn't exist")))
}
