//! A certificate authority: creating one, loading one, and issuing with it.
//!
//! Two kinds of issuing with different lifetimes: `issue` for the cluster's own certificates (kubeadm's rules), and
//! `sign_request` for CertificateSigningRequests (the signing controllers' rules, bounded by the CA's own end).

use std::time::{Duration, SystemTime};

use base::Rng;

use crate::alt_names::AltNames;
use crate::certificate::{Certificate, CertificateError};
use crate::key::{KeyError, PrivateKey};
use crate::name::Name;
use crate::public_key::PublicKey;
use crate::request::{CertificateRequest, RequestError};
use crate::usage::{KeyUsages, Purpose, UnknownUsages, from_names};
use crate::{der, extension};

/// How far before "now" certificates start, to bridge clocks that run late.
pub const BACKDATE: Duration = Duration::from_secs(5 * 60);
/// From this lifetime on a signed request's back-dating also shortens the end.
const LONG_LIFETIME: Duration = Duration::from_secs(8 * 3600);
/// The least lifetime a signer grants.
pub const MINIMUM_LIFETIME: Duration = Duration::from_secs(10 * 60);
const SERIAL_BYTES: usize = 16;

/// Why nothing was issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// Signing failed.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A certificate could not be read.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The private key belongs to another certificate.
    #[error("private key does not match the certificate's public key")]
    KeyMismatch,
    /// The certificate may not sign others.
    #[error("certificate is not a certificate authority")]
    NotAuthority,
    /// The request's own signature is wrong.
    #[error("unable to verify certificate request signature: {0}")]
    Request(RequestError),
    /// Usages outside the API's set.
    #[error(transparent)]
    Usages(#[from] UnknownUsages),
    /// The CA ended before the certificate would start.
    #[error("the signer has expired: NotAfter={0}")]
    SignerExpired(String),
    /// The CA ended, so the certificate would be expired at birth.
    #[error("refusing to sign a certificate that expired in the past: NotAfter={0}")]
    AlreadyExpired(String),
}

/// What an issued certificate shall say.
#[derive(Debug, Clone, Default)]
pub struct CertificateSpec {
    /// Common name and organizations.
    pub subject: Name,
    /// Alternative names.
    pub alt_names: AltNames,
    /// KeyUsage bits.
    pub key_usages: KeyUsages,
    /// Purposes.
    pub purposes: Vec<Purpose>,
    /// Time from now (not from the back-dated start) to the end.
    pub validity: Duration,
}

impl CertificateSpec {
    /// A TLS client: user and groups.
    #[must_use]
    pub fn client(user: &str, groups: &[String], validity: Duration) -> Self {
        Self::leaf(Name::new(user, groups), AltNames::default(), vec![Purpose::client_auth()], validity)
    }

    /// A TLS server.
    #[must_use]
    pub fn server(common_name: &str, alt_names: AltNames, validity: Duration) -> Self {
        Self::leaf(Name::new(common_name, &[]), alt_names, vec![Purpose::server_auth()], validity)
    }

    /// Any leaf with the usual key usages.
    #[must_use]
    pub fn leaf(subject: Name, alt_names: AltNames, purposes: Vec<Purpose>, validity: Duration) -> Self {
        let key_usages = KeyUsages::DIGITAL_SIGNATURE.and(KeyUsages::KEY_ENCIPHERMENT);
        Self { subject, alt_names, key_usages, purposes, validity }
    }
}

/// A CA certificate with its key.
#[derive(Debug)]
pub struct CertificateAuthority {
    certificate: Certificate,
    key: PrivateKey,
}

struct Template<'a> {
    subject: &'a Name,
    public_key: &'a PublicKey,
    alt_names: &'a AltNames,
    key_usages: KeyUsages,
    purposes: &'a [Purpose],
    is_ca: bool,
    window: (SystemTime, SystemTime),
}

impl CertificateAuthority {
    /// A new self-signed CA as kubeadm makes it: key usages for signing, its common name as DNS name, back-dated start,
    /// end at `now + validity`.
    ///
    /// # Errors
    /// [`IssueError::Key`] when signing fails.
    pub fn create(
        common_name: &str,
        key: PrivateKey,
        validity: Duration,
        now: SystemTime,
        rng: &Rng,
    ) -> Result<Self, IssueError> {
        let subject = Name::new(common_name, &[]);
        let alt_names = AltNames { dns: vec![common_name.to_owned()], ..AltNames::default() };
        let leaf_bits = KeyUsages::DIGITAL_SIGNATURE.and(KeyUsages::KEY_ENCIPHERMENT);
        let template = Template {
            subject: &subject,
            public_key: key.public_key(),
            alt_names: &alt_names,
            key_usages: leaf_bits.and(KeyUsages::CERT_SIGN),
            purposes: &[],
            is_ca: true,
            window: (now - BACKDATE, now + validity),
        };
        let certificate = template.sign(&subject, &[], &key, rng)?;
        Ok(Self { certificate, key })
    }

    /// A CA from its certificate and key. A certificate that does not say whether it is a CA's may be one: those of
    /// long ago have no BasicConstraints.
    ///
    /// # Errors
    /// [`IssueError::KeyMismatch`] or [`IssueError::NotAuthority`].
    pub fn new(certificate: Certificate, key: PrivateKey) -> Result<Self, IssueError> {
        if certificate.public_key() != key.public_key() {
            return Err(IssueError::KeyMismatch);
        }
        if certificate.has_basic_constraints() && !certificate.is_ca() {
            return Err(IssueError::NotAuthority);
        }
        Ok(Self { certificate, key })
    }

    /// A CA from PEM texts; exactly one certificate is allowed.
    ///
    /// # Errors
    /// As [`Self::new`], and what is wrong with either text.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, IssueError> {
        Self::new(Certificate::one_from_pem(certificate)?, PrivateKey::from_pem(key)?)
    }

    /// The CA's own certificate.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The CA's key.
    #[must_use]
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// Issues a leaf for `public_key`: valid from five minutes ago until `now + spec.validity`.
    ///
    /// # Errors
    /// [`IssueError::Key`] when signing fails.
    pub fn issue(
        &self,
        spec: &CertificateSpec,
        public_key: &PublicKey,
        now: SystemTime,
        rng: &Rng,
    ) -> Result<Certificate, IssueError> {
        let template = Template {
            subject: &spec.subject,
            public_key,
            alt_names: &spec.alt_names,
            key_usages: spec.key_usages,
            purposes: &spec.purposes,
            is_ca: false,
            window: (now - BACKDATE, now + spec.validity),
        };
        self.sign(&template, rng)
    }

    /// Signs a request: its subject and key are copied as bytes, its names by type, nothing else; usages come from the API
    /// object. `lifetime` is what [`granted_lifetime`] yields; the CA's own end caps it.
    ///
    /// # Errors
    /// A wrong self-signature, unknown usages, or a CA that has ended.
    pub fn sign_request<S: AsRef<str>>(
        &self,
        request: &CertificateRequest,
        usages: &[S],
        lifetime: Duration,
        now: SystemTime,
        rng: &Rng,
    ) -> Result<Certificate, IssueError> {
        request.verify().map_err(IssueError::Request)?;
        let (key_usages, purposes) = from_names(usages)?;
        let template = Template {
            subject: request.subject(),
            public_key: request.public_key(),
            alt_names: request.alt_names(),
            key_usages,
            purposes: &purposes,
            is_ca: false,
            window: signing_window(now, lifetime, self.certificate.not_after())?,
        };
        self.sign(&template, rng)
    }

    fn sign(&self, template: &Template<'_>, rng: &Rng) -> Result<Certificate, IssueError> {
        template.sign(self.certificate.subject(), self.certificate.subject_key_id(), &self.key, rng)
    }
}

impl Template<'_> {
    fn sign(
        &self,
        issuer: &Name,
        issuer_key_id: &[u8],
        key: &PrivateKey,
        rng: &Rng,
    ) -> Result<Certificate, IssueError> {
        let algorithm = key.signature_algorithm();
        let (not_before, not_after) = self.window;
        let body = der::sequence(&[
            &der::element(der::explicit(0), &der::unsigned_integer(&[2])),
            &der::unsigned_integer(&serial(rng)),
            &algorithm,
            issuer.raw(),
            &der::sequence(&[&der::time(not_before), &der::time(not_after)]),
            self.subject.raw(),
            self.public_key.spki(),
            &der::element(der::explicit(3), &der::element(der::SEQUENCE, &self.extensions(issuer_key_id))),
        ]);
        let signature = der::bit_string(&key.sign(&body)?);
        Ok(Certificate::from_der(&der::sequence(&[&body, &algorithm, &signature]))?)
    }

    fn extensions(&self, issuer_key_id: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if self.key_usages != KeyUsages::default() {
            out.extend(extension::key_usage(self.key_usages));
        }
        if !self.purposes.is_empty() {
            out.extend(extension::extended_key_usage(self.purposes));
        }
        out.extend(extension::basic_constraints(self.is_ca));
        out.extend(extension::subject_key_id(&self.public_key.subject_key_id()));
        if !issuer_key_id.is_empty() {
            out.extend(extension::authority_key_id(issuer_key_id));
        }
        if !self.alt_names.is_empty() {
            out.extend(extension::alt_names(self.alt_names, self.subject.is_empty()));
        }
        out
    }
}

/// A random serial number below 2^128, never zero.
fn serial(rng: &Rng) -> [u8; SERIAL_BYTES] {
    let mut serial = [0; SERIAL_BYTES];
    rng.fill(&mut serial);
    if serial == [0; SERIAL_BYTES] {
        serial[SERIAL_BYTES - 1] = 1;
    }
    serial
}

/// The lifetime a signer grants: the wish, or `maximum` without one; never above `maximum`, nor below ten minutes.
#[must_use]
pub fn granted_lifetime(wish_seconds: Option<i32>, maximum: Duration) -> Duration {
    let Some(seconds) = wish_seconds else { return maximum };
    let wish = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    if wish > maximum { maximum } else { wish.max(MINIMUM_LIFETIME) }
}

/// Start and end of a signed request's certificate.
fn signing_window(
    now: SystemTime,
    lifetime: Duration,
    signer_end: SystemTime,
) -> Result<(SystemTime, SystemTime), IssueError> {
    let not_before = now - BACKDATE;
    if not_before >= signer_end {
        return Err(IssueError::SignerExpired(go_time(signer_end)));
    }
    let wanted = if lifetime >= LONG_LIFETIME { now + lifetime - BACKDATE } else { now + lifetime };
    let not_after = wanted.min(signer_end);
    if not_after <= now {
        return Err(IssueError::AlreadyExpired(go_time(not_after)));
    }
    Ok((not_before, not_after))
}

/// A time as Go prints it by default, which the error texts contain.
fn go_time(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time)
        .map(|stamp| stamp.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string())
        .unwrap_or_default()
}

#[cfg(test)]
#[path = "authority_tests.rs"]
mod tests;
