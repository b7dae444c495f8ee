//! Verifying peers' certificate chains against a reloadable bundle.
//!
//! The TLS handshake of our servers asks for a client certificate without judging it (an unknown one must still be able to
//! present a bearer token), so the chain is verified here, per request. Go's rules are kept where the library differs:
//! a root past its end no longer vouches, `anyExtendedKeyUsage` counts as client auth, and a certificate that is itself in
//! the bundle is trusted as it stands.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, Error, ExtendedKeyUsageValidator, KeyPurposeIdIter};

use crate::bundle::{BundleError, CaBundle};
use crate::certificate::{Certificate, CertificateError, colon_hex};
use crate::usage::Purpose;

/// Certificates a peer may send along; more is refused rather than searched.
pub const MAX_CHAIN_CERTIFICATES: usize = 16;

/// Why a chain is not acceptable; texts are those of Go's verifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// No certificate was presented.
    #[error("x509: no certificates presented")]
    Empty,
    /// More than [`MAX_CHAIN_CERTIFICATES`].
    #[error("x509: too many certificates presented")]
    TooLong,
    /// The leaf is not a certificate.
    #[error(transparent)]
    Malformed(#[from] CertificateError),
    /// No path to the bundle.
    #[error("x509: certificate signed by unknown authority")]
    UnknownAuthority,
    /// Outside the validity of a certificate on the path.
    #[error("x509: certificate has expired or is not yet valid: current time {now} is {relation} {bound}")]
    NotCurrent {
        /// RFC 3339 time of the check.
        now: String,
        /// `before` or `after`.
        relation: &'static str,
        /// RFC 3339 bound that is violated.
        bound: String,
    },
    /// The certificate is for something else.
    #[error("x509: certificate specifies an incompatible key usage")]
    IncompatibleUsage,
    /// Anything else.
    #[error("x509: {0}")]
    Other(String),
}

/// A bundle that can be replaced while requests are verified against it.
#[derive(Debug)]
pub struct CaPool {
    bundle: ArcSwap<CaBundle>,
}

impl CaPool {
    /// A pool that starts with `bundle`.
    #[must_use]
    pub fn new(bundle: CaBundle) -> Self {
        Self { bundle: ArcSwap::from_pointee(bundle) }
    }

    /// The bundle in force.
    #[must_use]
    pub fn current(&self) -> Arc<CaBundle> {
        self.bundle.load_full()
    }

    /// Puts another bundle in force.
    pub fn replace(&self, bundle: CaBundle) {
        self.bundle.store(Arc::new(bundle));
    }

    /// Reads the file again. Bad content keeps the old bundle in force.
    ///
    /// # Errors
    /// Why the file was not taken.
    pub fn reload(&self, path: &Path) -> Result<(), BundleError> {
        self.replace(CaBundle::load(path)?);
        Ok(())
    }

    /// Verifies a presented chain (leaf first) for client authentication at `now` and returns the parsed leaf.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn verify_client(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> Result<Certificate, ChainError> {
        let leaf = chain.first().ok_or(ChainError::Empty)?;
        let leaf = Certificate::from_der(leaf)?;
        verify_chain(&self.bundle.load(), &leaf, chain, &Purpose::client_auth(), now)?;
        Ok(leaf)
    }
}

/// Verifies that `chain` (leaf first, `leaf` being its parsed head) leads to the bundle and may be used for `purpose`.
///
/// # Errors
/// [`ChainError`].
pub fn verify_chain(
    bundle: &CaBundle,
    leaf: &Certificate,
    chain: &[CertificateDer<'_>],
    purpose: &Purpose,
    now: SystemTime,
) -> Result<(), ChainError> {
    if chain.len() > MAX_CHAIN_CERTIFICATES {
        return Err(ChainError::TooLong);
    }
    if bundle.certificates().contains(leaf) {
        return verify_member(leaf, purpose, now);
    }
    let anchors = current_anchors(bundle, now);
    let der = CertificateDer::from(leaf.der());
    let end_entity = EndEntityCert::try_from(&der).map_err(|error| chain_error(&error, now))?;
    let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let verified = end_entity.verify_for_usage(
        webpki::ALL_VERIFICATION_ALGS,
        &anchors,
        chain.get(1..).unwrap_or_default(),
        UnixTime::since_unix_epoch(since_epoch),
        ForPurpose(purpose),
        None,
        None,
    );
    verified.map(|_| ()).map_err(|error| chain_error(&error, now))
}

/// A certificate trusted by name needs no signature, only time and purpose.
fn verify_member(leaf: &Certificate, purpose: &Purpose, now: SystemTime) -> Result<(), ChainError> {
    if !leaf.is_current(now) {
        let early = now < leaf.not_before();
        let bound = if early { leaf.not_before() } else { leaf.not_after() };
        return Err(not_current(now, if early { "before" } else { "after" }, bound));
    }
    if leaf.permits(purpose) { Ok(()) } else { Err(ChainError::IncompatibleUsage) }
}

fn current_anchors(bundle: &CaBundle, now: SystemTime) -> Vec<TrustAnchor<'static>> {
    let pairs = bundle.certificates().iter().zip(bundle.anchors());
    pairs.filter(|(certificate, _)| certificate.is_current(now)).map(|(_, anchor)| anchor.clone()).collect()
}

struct ForPurpose<'a>(&'a Purpose);

impl ExtendedKeyUsageValidator for ForPurpose<'_> {
    fn validate(&self, identifiers: KeyPurposeIdIter<'_, '_>) -> Result<(), Error> {
        let mut restricted = false;
        for identifier in identifiers {
            restricted = true;
            let arcs: Vec<String> = identifier?.to_decoded_oid().iter().map(ToString::to_string).collect();
            let found = Purpose(arcs.join("."));
            if found == *self.0 || found == Purpose::any() {
                return Ok(());
            }
        }
        if restricted { Err(Error::EmptyEkuExtension) } else { Ok(()) }
    }
}

fn chain_error(error: &Error, now: SystemTime) -> ChainError {
    let at = |time: &UnixTime| UNIX_EPOCH + std::time::Duration::from_secs(time.as_secs());
    match error {
        Error::CertExpired { not_after, .. } => not_current(now, "after", at(not_after)),
        Error::CertNotValidYet { not_before, .. } => not_current(now, "before", at(not_before)),
        Error::EmptyEkuExtension | Error::RequiredEkuNotFoundContext(_) => ChainError::IncompatibleUsage,
        Error::UnknownIssuer | Error::InvalidSignatureForPublicKey | Error::CaUsedAsEndEntity => {
            ChainError::UnknownAuthority
        }
        other => ChainError::Other(other.to_string()),
    }
}

fn not_current(now: SystemTime, relation: &'static str, bound: SystemTime) -> ChainError {
    ChainError::NotCurrent { now: rfc3339(now), relation, bound: rfc3339(bound) }
}

fn rfc3339(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time)
        .map(|stamp| stamp.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}

/// How error texts name a certificate: `SN={decimal}, SKID={AA:BB}, AKID={AA:BB}`.
#[must_use]
pub fn describe(certificate: &Certificate) -> String {
    format!(
        "SN={}, SKID={}, AKID={}",
        certificate.serial_decimal(),
        colon_hex(certificate.subject_key_id()),
        colon_hex(certificate.authority_key_id())
    )
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
