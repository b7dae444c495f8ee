//! The facts of one certificate that the rest of the system asks about, owned, with the DER they came from.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer as _;
use x509_parser::time::ASN1Time;

use crate::alt_names::AltNames;
use crate::name::Name;
use crate::pem;
use crate::public_key::PublicKey;
use crate::usage::{KeyUsages, Purpose};

/// Why bytes are not a certificate this crate can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not X.509 DER.
    #[error("x509: malformed certificate: {0}")]
    Malformed(String),
    /// The subject's key has an algorithm outside the supported set.
    #[error("x509: unsupported public key")]
    UnsupportedKey,
    /// The text does not hold the one certificate asked for.
    #[error("expected 1 certificate, found {0}")]
    NotOne(usize),
}

/// A parsed certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    der: Vec<u8>,
    subject: Name,
    issuer: Name,
    serial: Vec<u8>,
    not_before: SystemTime,
    not_after: SystemTime,
    public_key: PublicKey,
    extensions: Extensions,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Extensions {
    alt_names: AltNames,
    is_ca: bool,
    basic_constraints: bool,
    key_usages: KeyUsages,
    purposes: Vec<Purpose>,
    subject_key_id: Vec<u8>,
    authority_key_id: Vec<u8>,
}

impl Certificate {
    /// Parses one DER certificate; nothing may follow it.
    ///
    /// # Errors
    /// [`CertificateError::Malformed`] or [`CertificateError::UnsupportedKey`].
    pub fn from_der(der: &[u8]) -> Result<Self, CertificateError> {
        let malformed = |why: String| CertificateError::Malformed(why);
        let (rest, parsed) = X509Certificate::from_der(der).map_err(|e| malformed(e.to_string()))?;
        if !rest.is_empty() {
            return Err(malformed("trailing data".to_owned()));
        }
        let public_key = PublicKey::from_spki(parsed.public_key().raw).map_err(|_| CertificateError::UnsupportedKey)?;
        Ok(Self {
            der: der.to_vec(),
            subject: Name::from_parsed(parsed.subject()),
            issuer: Name::from_parsed(parsed.issuer()),
            serial: parsed.raw_serial().iter().copied().skip_while(|byte| *byte == 0).collect(),
            not_before: system_time(parsed.validity().not_before),
            not_after: system_time(parsed.validity().not_after),
            public_key,
            extensions: Extensions::collect(&parsed),
        })
    }

    /// Every `CERTIFICATE` block of PEM text; other blocks are skipped.
    ///
    /// # Errors
    /// The first certificate that does not parse.
    pub fn all_from_pem(text: &[u8]) -> Result<Vec<Self>, CertificateError> {
        let blocks = pem::parse_blocks(text);
        blocks.iter().filter(|block| block.label == "CERTIFICATE").map(|block| Self::from_der(&block.der)).collect()
    }

    /// The only certificate of PEM text.
    ///
    /// # Errors
    /// [`CertificateError::NotOne`] for none or several.
    pub fn one_from_pem(text: &[u8]) -> Result<Self, CertificateError> {
        let mut found = Self::all_from_pem(text)?;
        match (found.len(), found.pop()) {
            (1, Some(certificate)) => Ok(certificate),
            (count, _) => Err(CertificateError::NotOne(count)),
        }
    }

    /// The exact DER bytes.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// A `CERTIFICATE` block.
    #[must_use]
    pub fn to_pem(&self) -> String {
        pem::encode_block("CERTIFICATE", &self.der)
    }

    /// Whom the certificate names.
    #[must_use]
    pub fn subject(&self) -> &Name {
        &self.subject
    }

    /// Who signed it.
    #[must_use]
    pub fn issuer(&self) -> &Name {
        &self.issuer
    }

    /// The serial number's magnitude, big-endian without leading zeros.
    #[must_use]
    pub fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// The serial number in decimal, as error texts show it.
    #[must_use]
    pub fn serial_decimal(&self) -> String {
        decimal(&self.serial)
    }

    /// Start of validity.
    #[must_use]
    pub fn not_before(&self) -> SystemTime {
        self.not_before
    }

    /// End of validity, inclusive.
    #[must_use]
    pub fn not_after(&self) -> SystemTime {
        self.not_after
    }

    /// Whether `now` lies within the validity, both ends included.
    #[must_use]
    pub fn is_current(&self, now: SystemTime) -> bool {
        self.not_before <= now && now <= self.not_after
    }

    /// The certified key.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// Subject alternative names.
    #[must_use]
    pub fn alt_names(&self) -> &AltNames {
        &self.extensions.alt_names
    }

    /// Whether BasicConstraints says this is a CA.
    #[must_use]
    pub fn is_ca(&self) -> bool {
        self.extensions.is_ca
    }

    /// Whether there is a well-formed BasicConstraints extension.
    #[must_use]
    pub fn has_basic_constraints(&self) -> bool {
        self.extensions.basic_constraints
    }

    /// The KeyUsage bits; none set when the extension is absent.
    #[must_use]
    pub fn key_usages(&self) -> KeyUsages {
        self.extensions.key_usages
    }

    /// The purposes of ExtendedKeyUsage; empty (any purpose) when the extension is absent.
    #[must_use]
    pub fn purposes(&self) -> &[Purpose] {
        &self.extensions.purposes
    }

    /// Whether the certificate may be used for `purpose`: named, any, or unrestricted.
    #[must_use]
    pub fn permits(&self, purpose: &Purpose) -> bool {
        let purposes = self.purposes();
        purposes.is_empty() || purposes.contains(purpose) || purposes.contains(&Purpose::any())
    }

    /// SubjectKeyIdentifier, empty when absent.
    #[must_use]
    pub fn subject_key_id(&self) -> &[u8] {
        &self.extensions.subject_key_id
    }

    /// AuthorityKeyIdentifier's key identifier, empty when absent.
    #[must_use]
    pub fn authority_key_id(&self) -> &[u8] {
        &self.extensions.authority_key_id
    }

    /// Lower-case hex of SHA-256 over the DER: the credential ID of X.509 users.
    #[must_use]
    pub fn fingerprint_sha256(&self) -> String {
        base::hex(digest(&SHA256, &self.der).as_ref())
    }
}

impl Extensions {
    fn collect(parsed: &X509Certificate<'_>) -> Self {
        let mut out = Self::default();
        for extension in parsed.iter_extensions() {
            match extension.parsed_extension() {
                ParsedExtension::SubjectAlternativeName(names) => out.alt_names = AltNames::from_parsed(names),
                ParsedExtension::BasicConstraints(constraints) => {
                    out.basic_constraints = true;
                    out.is_ca = constraints.ca;
                }
                ParsedExtension::KeyUsage(usage) => out.key_usages = KeyUsages(usage.flags),
                ParsedExtension::ExtendedKeyUsage(usage) => out.purposes = purposes(usage),
                ParsedExtension::SubjectKeyIdentifier(id) => out.subject_key_id = id.0.to_vec(),
                ParsedExtension::AuthorityKeyIdentifier(id) => {
                    out.authority_key_id = id.key_identifier.as_ref().map(|id| id.0.to_vec()).unwrap_or_default();
                }
                _ => {}
            }
        }
        out
    }
}

pub(crate) fn purposes(usage: &x509_parser::extensions::ExtendedKeyUsage<'_>) -> Vec<Purpose> {
    let known = [
        (usage.any, "2.5.29.37.0"),
        (usage.server_auth, "1.3.6.1.5.5.7.3.1"),
        (usage.client_auth, "1.3.6.1.5.5.7.3.2"),
        (usage.code_signing, "1.3.6.1.5.5.7.3.3"),
        (usage.email_protection, "1.3.6.1.5.5.7.3.4"),
        (usage.time_stamping, "1.3.6.1.5.5.7.3.8"),
        (usage.ocsp_signing, "1.3.6.1.5.5.7.3.9"),
    ];
    let named = known.into_iter().filter(|(set, _)| *set).map(|(_, oid)| Purpose(oid.to_owned()));
    named.chain(usage.other.iter().map(|oid| Purpose(oid.to_id_string()))).collect()
}

fn system_time(time: ASN1Time) -> SystemTime {
    // Times before 1970 only ever mean "long past"; the epoch says that as well.
    UNIX_EPOCH + Duration::from_secs(u64::try_from(time.timestamp()).unwrap_or(0))
}

/// Upper-case hex pairs joined by colons, as key identifiers are shown.
#[must_use]
pub fn colon_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

/// A big-endian number in decimal, by repeated division of nine-digit limbs.
fn decimal(magnitude: &[u8]) -> String {
    const LIMB: u64 = 1_000_000_000;
    let mut limbs: Vec<u64> = vec![0];
    for byte in magnitude {
        let mut carry = u64::from(*byte);
        for limb in &mut limbs {
            let value = *limb * 256 + carry;
            *limb = value % LIMB;
            carry = value / LIMB;
        }
        if carry > 0 {
            limbs.push(carry);
        }
    }
    let mut limbs = limbs.into_iter().rev();
    let head = limbs.next().unwrap_or(0).to_string();
    limbs.fold(head, |out, limb| format!("{out}{limb:09}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_print_in_decimal() {
        assert_eq!(decimal(&[]), "0");
        assert_eq!(decimal(&[1, 0]), "256");
        assert_eq!(decimal(&[0xff; 16]), u128::MAX.to_string());
        assert_eq!(decimal(&1_000_000_000_000_000_007_u64.to_be_bytes()), "1000000000000000007");
        assert_eq!(colon_hex(&[0xab, 1]), "AB:01");
    }

    #[test]
    fn garbage_is_refused() {
        assert!(matches!(Certificate::from_der(b"x"), Err(CertificateError::Malformed(_))));
        assert_eq!(Certificate::one_from_pem(b"").unwrap_err().to_string(), "expected 1 certificate, found 0");
    }
}
