//! Public keys as SubjectPublicKeyInfo: PEM in and out, key IDs, and the signature checks of X.509.

use std::fmt;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::certificate::Certificate;
use crate::der::{self, Reader};
use crate::key::{KeyError, PrivateKey};
use crate::{oid, pem};

/// The elliptic curves Kubernetes tools produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// NIST P-256.
    P256,
    /// NIST P-384.
    P384,
    /// NIST P-521.
    P521,
}

impl Curve {
    pub(crate) const ALL: [Self; 3] = [Self::P256, Self::P384, Self::P521];

    pub(crate) const fn oid(self) -> &'static [u8] {
        match self {
            Self::P256 => oid::P256,
            Self::P384 => oid::P384,
            Self::P521 => oid::P521,
        }
    }

    pub(crate) fn from_oid(found: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|curve| curve.oid() == found)
    }

    /// Bytes of one coordinate.
    pub(crate) const fn coordinate_bytes(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::P521 => "P-521",
        }
    }
}

/// What a public key consists of; numbers are big-endian without leading zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicKeyKind {
    /// RSA: modulus and exponent.
    Rsa {
        /// n.
        modulus: Vec<u8>,
        /// e.
        exponent: Vec<u8>,
    },
    /// A point on a curve, coordinates at full width.
    Ec {
        /// The curve.
        curve: Curve,
        /// x, padded to the curve's width.
        x: Vec<u8>,
        /// y, padded to the curve's width.
        y: Vec<u8>,
    },
    /// Ed25519: the 32-byte key.
    Ed25519(Vec<u8>),
}

/// A public key with its PKIX encoding.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    spki: Vec<u8>,
    kind: PublicKeyKind,
}

impl PublicKey {
    /// Parses a DER SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// [`KeyError::Unsupported`] for other algorithms than RSA, P-256, P-384, P-521 and Ed25519.
    pub fn from_spki(spki: &[u8]) -> Result<Self, KeyError> {
        let kind = parse_spki(spki).ok_or_else(|| KeyError::Unsupported("public key".to_owned()))?;
        Ok(Self { spki: spki.to_vec(), kind })
    }

    /// Builds the key from its numbers, as a JWK carries them.
    #[must_use]
    pub fn from_kind(kind: PublicKeyKind) -> Self {
        let spki = encode_spki(&kind);
        Self { spki, kind }
    }

    /// Every public key in PEM text: `PUBLIC KEY`, `RSA PUBLIC KEY` and `CERTIFICATE` blocks, and the public half of private
    /// keys (upstream's `--service-account-key-file` takes all of these).
    ///
    /// # Errors
    /// [`KeyError::NoKey`] when the text holds none.
    pub fn all_from_pem(text: &[u8]) -> Result<Vec<Self>, KeyError> {
        let keys: Vec<Self> = pem::parse_blocks(text).iter().filter_map(from_block).collect();
        if keys.is_empty() { Err(KeyError::NoKey) } else { Ok(keys) }
    }

    /// The DER SubjectPublicKeyInfo.
    #[must_use]
    pub fn spki(&self) -> &[u8] {
        &self.spki
    }

    /// The numbers of the key.
    #[must_use]
    pub fn kind(&self) -> &PublicKeyKind {
        &self.kind
    }

    /// A `PUBLIC KEY` block.
    #[must_use]
    pub fn to_pem(&self) -> String {
        pem::encode_block("PUBLIC KEY", &self.spki)
    }

    /// The `kid` of service account tokens: unpadded base64url of SHA-256 over the PKIX DER.
    #[must_use]
    pub fn key_id(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.spki_sha256())
    }

    /// SHA-256 over the PKIX DER; in hex it is kubeadm's `--discovery-token-ca-cert-hash`.
    #[must_use]
    pub fn spki_sha256(&self) -> Vec<u8> {
        digest(&SHA256, &self.spki).as_ref().to_vec()
    }

    /// The subject key identifier: SHA-1 of the key bits (RFC 5280 section 4.2.1.2, method 1).
    #[must_use]
    pub fn subject_key_id(&self) -> Vec<u8> {
        let bits = Reader::new(&self.spki).enter(der::SEQUENCE).and_then(|mut spki| {
            spki.expect(der::SEQUENCE)?;
            spki.expect(der::BIT_STRING)?.get(1..)
        });
        digest(&SHA1_FOR_LEGACY_USE_ONLY, bits.unwrap_or_default()).as_ref().to_vec()
    }

    /// Checks a signature by which somebody shows to hold the key: of Ed25519 over the message, of others over its SHA-256,
    /// as ECDSA in ASN.1 or RSA-PSS.
    #[must_use]
    pub fn verify_possession(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: Option<&'static dyn VerificationAlgorithm> = match &self.kind {
            PublicKeyKind::Rsa { .. } => Some(&signature::RSA_PSS_2048_8192_SHA256),
            PublicKeyKind::Ec { curve, .. } => ecdsa_algorithm(*curve, oid::ECDSA_SHA256),
            PublicKeyKind::Ed25519(_) => Some(&signature::ED25519),
        };
        algorithm.is_some_and(|algorithm| self.verify_with(algorithm, message, signature))
    }

    /// Checks an X.509 or PKCS#10 signature given its DER AlgorithmIdentifier content's OID. SHA-1 is refused.
    pub(crate) fn verify_x509(&self, algorithm: &[u8], message: &[u8], signature: &[u8]) -> bool {
        self.x509_algorithm(algorithm).is_some_and(|algorithm| self.verify_with(algorithm, message, signature))
    }

    pub(crate) fn verify_with(
        &self,
        algorithm: &'static dyn VerificationAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let bytes = match &self.kind {
            PublicKeyKind::Ed25519(raw) => raw,
            PublicKeyKind::Rsa { .. } | PublicKeyKind::Ec { .. } => &self.spki,
        };
        UnparsedPublicKey::new(algorithm, bytes).verify(message, signature).is_ok()
    }

    fn x509_algorithm(&self, algorithm: &[u8]) -> Option<&'static dyn VerificationAlgorithm> {
        match (&self.kind, algorithm) {
            (PublicKeyKind::Rsa { .. }, oid::RSA_SHA256) => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
            (PublicKeyKind::Rsa { .. }, oid::RSA_SHA384) => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
            (PublicKeyKind::Rsa { .. }, oid::RSA_SHA512) => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
            (PublicKeyKind::Ec { curve, .. }, _) => ecdsa_algorithm(*curve, algorithm),
            (PublicKeyKind::Ed25519(_), oid::ED25519) => Some(&signature::ED25519),
            _ => None,
        }
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicKey").field(&self.key_id()).finish()
    }
}

fn ecdsa_algorithm(curve: Curve, algorithm: &[u8]) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match (curve, algorithm) {
        (Curve::P256, oid::ECDSA_SHA256) => &signature::ECDSA_P256_SHA256_ASN1,
        (Curve::P256, oid::ECDSA_SHA384) => &signature::ECDSA_P256_SHA384_ASN1,
        (Curve::P256, oid::ECDSA_SHA512) => &signature::ECDSA_P256_SHA512_ASN1,
        (Curve::P384, oid::ECDSA_SHA256) => &signature::ECDSA_P384_SHA256_ASN1,
        (Curve::P384, oid::ECDSA_SHA384) => &signature::ECDSA_P384_SHA384_ASN1,
        (Curve::P384, oid::ECDSA_SHA512) => &signature::ECDSA_P384_SHA512_ASN1,
        (Curve::P521, oid::ECDSA_SHA256) => &signature::ECDSA_P521_SHA256_ASN1,
        (Curve::P521, oid::ECDSA_SHA384) => &signature::ECDSA_P521_SHA384_ASN1,
        (Curve::P521, oid::ECDSA_SHA512) => &signature::ECDSA_P521_SHA512_ASN1,
        _ => return None,
    })
}

fn from_block(block: &pem::PemBlock) -> Option<PublicKey> {
    match block.label.as_str() {
        "PUBLIC KEY" => PublicKey::from_spki(&block.der).ok(),
        "RSA PUBLIC KEY" => {
            let (modulus, exponent) = rsa_numbers(&block.der)?;
            Some(PublicKey::from_kind(PublicKeyKind::Rsa { modulus, exponent }))
        }
        "CERTIFICATE" => Certificate::from_der(&block.der).ok().map(|certificate| certificate.public_key().clone()),
        _ => PrivateKey::from_block(block)?.ok().map(|key| key.public_key().clone()),
    }
}

fn rsa_numbers(der_bytes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut numbers = Reader::new(der_bytes).enter(der::SEQUENCE)?;
    Some((numbers.unsigned()?.to_vec(), numbers.unsigned()?.to_vec()))
}

fn parse_spki(spki: &[u8]) -> Option<PublicKeyKind> {
    let mut whole = Reader::new(spki);
    let mut fields = whole.enter(der::SEQUENCE)?;
    let mut algorithm = fields.enter(der::SEQUENCE)?;
    let algorithm_oid = algorithm.expect(der::OID)?;
    let (0, bits) = fields.expect(der::BIT_STRING)?.split_first()? else { return None };
    if !whole.is_empty() || !fields.is_empty() {
        return None;
    }
    match algorithm_oid {
        oid::RSA => rsa_numbers(bits).map(|(modulus, exponent)| PublicKeyKind::Rsa { modulus, exponent }),
        oid::EC_PUBLIC_KEY => {
            let curve = Curve::from_oid(algorithm.expect(der::OID)?)?;
            let (4, point) = bits.split_first()? else { return None };
            let (x, y) = point.split_at_checked(curve.coordinate_bytes())?;
            (x.len() == y.len()).then(|| PublicKeyKind::Ec { curve, x: x.to_vec(), y: y.to_vec() })
        }
        oid::ED25519 => (bits.len() == 32).then(|| PublicKeyKind::Ed25519(bits.to_vec())),
        _ => None,
    }
}

fn encode_spki(kind: &PublicKeyKind) -> Vec<u8> {
    let oid_element = |content| der::element(der::OID, content);
    let (algorithm, bits) = match kind {
        PublicKeyKind::Rsa { modulus, exponent } => (
            der::sequence(&[&oid_element(oid::RSA), &der::element(der::NULL, &[])]),
            der::sequence(&[&der::unsigned_integer(modulus), &der::unsigned_integer(exponent)]),
        ),
        PublicKeyKind::Ec { curve, x, y } => (
            der::sequence(&[&oid_element(oid::EC_PUBLIC_KEY), &oid_element(curve.oid())]),
            [&[4], x.as_slice(), y.as_slice()].concat(),
        ),
        PublicKeyKind::Ed25519(raw) => (der::sequence(&[&oid_element(oid::ED25519)]), raw.clone()),
    };
    der::sequence(&[&algorithm, &der::bit_string(&bits)])
}
