//! Private keys: generating them, reading the three PEM forms in use (PKCS#1, PKCS#8, SEC1), writing them, signing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use aws_lc_rs::encoding::{AsDer as _, EcPrivateKeyRfc5915Der, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaEncoding, RsaKeyPair,
};

use crate::der::{self, Reader};
use crate::file;
use crate::oid;
use crate::pem::{self, PemBlock};
use crate::public_key::{Curve, PublicKey};

/// Why a key could not be made, read, used or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// No key of a known form in the text.
    #[error("data does not contain a valid RSA, ECDSA or Ed25519 key")]
    NoKey,
    /// A passphrase would be needed.
    #[error("encrypted private keys are not supported")]
    Encrypted,
    /// An algorithm, curve or encoding outside the supported set.
    #[error("unsupported {0}")]
    Unsupported(String),
    /// The numbers in the file do not form a usable key.
    #[error("invalid private key: {0}")]
    Rejected(String),
    /// The crypto library failed.
    #[error("{0} failed")]
    Crypto(&'static str),
    /// Reading or writing the file.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file was read but its content is no good.
    #[error("{path}: {source}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<KeyError>,
    },
}

/// Algorithms that keys can be generated for, those of kubeadm's `encryptionAlgorithm` among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyAlgorithm {
    /// `RSA-2048`, the default.
    #[default]
    Rsa2048,
    /// `RSA-3072`.
    Rsa3072,
    /// `RSA-4096`.
    Rsa4096,
    /// `ECDSA-P256`.
    EcdsaP256,
    /// `ECDSA-P384`.
    EcdsaP384,
    /// P-521, which kubeadm does not offer.
    EcdsaP521,
    /// Ed25519, which kubeadm does not offer.
    Ed25519,
}

impl KeyAlgorithm {
    /// Those of kubeadm, with the names used in configuration files.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("RSA-2048", Self::Rsa2048),
        ("RSA-3072", Self::Rsa3072),
        ("RSA-4096", Self::Rsa4096),
        ("ECDSA-P256", Self::EcdsaP256),
        ("ECDSA-P384", Self::EcdsaP384),
    ];

    /// The algorithm of that configuration name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, algorithm)| algorithm)
    }
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(Curve, Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>, Vec<u8>),
}

/// A private key with its public half. `Debug` shows only the public key's ID.
pub struct PrivateKey {
    pair: Pair,
    public: PublicKey,
}

impl PrivateKey {
    /// A new random key.
    ///
    /// # Errors
    /// [`KeyError::Crypto`] if the library cannot generate it.
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self, KeyError> {
        let rsa = |size| RsaKeyPair::generate(size).map(|pair| Pair::Rsa(Box::new(pair)));
        let ecdsa = |curve| EcdsaKeyPair::generate(signing(curve)).map(|pair| Pair::Ecdsa(curve, Box::new(pair)));
        let pair = match algorithm {
            KeyAlgorithm::Rsa2048 => rsa(KeySize::Rsa2048),
            KeyAlgorithm::Rsa3072 => rsa(KeySize::Rsa3072),
            KeyAlgorithm::Rsa4096 => rsa(KeySize::Rsa4096),
            KeyAlgorithm::EcdsaP256 => ecdsa(Curve::P256),
            KeyAlgorithm::EcdsaP384 => ecdsa(Curve::P384),
            KeyAlgorithm::EcdsaP521 => ecdsa(Curve::P521),
            KeyAlgorithm::Ed25519 => return Self::generate_ed25519(),
        };
        Self::from_pair(pair.map_err(|_| KeyError::Crypto("key generation"))?)
    }

    fn generate_ed25519() -> Result<Self, KeyError> {
        let failed = |_| KeyError::Crypto("key generation");
        let pair = Ed25519KeyPair::generate().map_err(failed)?;
        let pkcs8 = pair.to_pkcs8v1().map_err(failed)?.as_ref().to_vec();
        Self::from_pair(Pair::Ed25519(Box::new(pair), pkcs8))
    }

    /// The first private key in PEM text; certificates and other blocks around it are skipped.
    ///
    /// # Errors
    /// [`KeyError::NoKey`] without one, otherwise what is wrong with it.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        pem::parse_blocks(text).iter().find_map(Self::from_block).unwrap_or(Err(KeyError::NoKey))
    }

    /// Reads a PEM file.
    ///
    /// # Errors
    /// As [`Self::from_pem`], naming the file.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let text = std::fs::read(path).map_err(|source| KeyError::File { path: path.to_owned(), source })?;
        Self::from_pem(&text).map_err(|source| KeyError::Content { path: path.to_owned(), source: Box::new(source) })
    }

    /// Writes the PEM file atomically with mode 0600.
    ///
    /// # Errors
    /// [`KeyError::File`] or an encoding failure.
    pub fn store(&self, path: &Path) -> Result<(), KeyError> {
        file::write_atomically(path, self.to_pem()?.as_bytes(), file::PRIVATE_MODE)
            .map_err(|source| KeyError::File { path: path.to_owned(), source })
    }

    /// `None` when the block is not a private key.
    pub(crate) fn from_block(block: &PemBlock) -> Option<Result<Self, KeyError>> {
        let encrypted = block.has_headers && block.label.ends_with("PRIVATE KEY");
        Some(match block.label.as_str() {
            "ENCRYPTED PRIVATE KEY" => Err(KeyError::Encrypted),
            _ if encrypted => Err(KeyError::Encrypted),
            "RSA PRIVATE KEY" => Self::from_pkcs1(&block.der),
            "EC PRIVATE KEY" => Self::from_sec1(&block.der),
            "PRIVATE KEY" => Self::from_pkcs8(&block.der),
            _ => return None,
        })
    }

    fn from_pkcs1(der_bytes: &[u8]) -> Result<Self, KeyError> {
        let pair = RsaKeyPair::from_der(der_bytes).map_err(|e| KeyError::Rejected(e.to_string()))?;
        Self::from_pair(Pair::Rsa(Box::new(pair)))
    }

    fn from_sec1(der_bytes: &[u8]) -> Result<Self, KeyError> {
        let curve = sec1_curve(der_bytes).ok_or_else(|| KeyError::Unsupported("elliptic curve".to_owned()))?;
        let pair = EcdsaKeyPair::from_private_key_der(signing(curve), der_bytes);
        let pair = pair.map_err(|e| KeyError::Rejected(e.to_string()))?;
        Self::from_pair(Pair::Ecdsa(curve, Box::new(pair)))
    }

    /// Reads a DER PKCS#8 PrivateKeyInfo.
    ///
    /// # Errors
    /// [`KeyError::Unsupported`] or [`KeyError::Rejected`].
    pub fn from_pkcs8(der_bytes: &[u8]) -> Result<Self, KeyError> {
        let rejected = |e: aws_lc_rs::error::KeyRejected| KeyError::Rejected(e.to_string());
        let info = Pkcs8::read(der_bytes).ok_or_else(|| KeyError::Rejected("not a PKCS#8 structure".to_owned()))?;
        let pair = match (info.algorithm, info.parameter.and_then(Curve::from_oid)) {
            (oid::RSA, _) => Pair::Rsa(Box::new(RsaKeyPair::from_pkcs8(der_bytes).map_err(rejected)?)),
            (oid::EC_PUBLIC_KEY, Some(curve)) => {
                let pair = EcdsaKeyPair::from_pkcs8(signing(curve), der_bytes).map_err(rejected)?;
                Pair::Ecdsa(curve, Box::new(pair))
            }
            (oid::ED25519, _) => {
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der_bytes).map_err(rejected)?;
                Pair::Ed25519(Box::new(pair), der_bytes.to_vec())
            }
            _ => return Err(KeyError::Unsupported("private key algorithm".to_owned())),
        };
        Self::from_pair(pair)
    }

    fn from_pair(pair: Pair) -> Result<Self, KeyError> {
        let failed = |_| KeyError::Crypto("public key encoding");
        let spki: PublicKeyX509Der<'_> = match &pair {
            Pair::Rsa(pair) => pair.public_key().as_der(),
            Pair::Ecdsa(_, pair) => pair.public_key().as_der(),
            Pair::Ed25519(pair, _) => pair.public_key().as_der(),
        }
        .map_err(failed)?;
        let public = PublicKey::from_spki(spki.as_ref())?;
        Ok(Self { pair, public })
    }

    /// The public half.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// PEM in the form kubeadm writes: PKCS#1 for RSA, SEC1 for ECDSA, PKCS#8 for Ed25519.
    ///
    /// # Errors
    /// [`KeyError::Crypto`] if the library cannot encode it.
    pub fn to_pem(&self) -> Result<String, KeyError> {
        match &self.pair {
            Pair::Rsa(_) => {
                let wrapped = self.to_pkcs8()?;
                let inner = Pkcs8::read(&wrapped).ok_or(KeyError::Crypto("private key encoding"))?;
                Ok(pem::encode_block("RSA PRIVATE KEY", inner.key))
            }
            Pair::Ecdsa(_, pair) => {
                let sec1: EcPrivateKeyRfc5915Der<'_> =
                    pair.private_key().as_der().map_err(|_| KeyError::Crypto("private key encoding"))?;
                Ok(pem::encode_block("EC PRIVATE KEY", sec1.as_ref()))
            }
            Pair::Ed25519(_, pkcs8) => Ok(pem::encode_block("PRIVATE KEY", pkcs8)),
        }
    }

    /// DER PKCS#8, which TLS libraries take.
    ///
    /// # Errors
    /// [`KeyError::Crypto`] if the library cannot encode it.
    pub fn to_pkcs8(&self) -> Result<Vec<u8>, KeyError> {
        let failed = |_| KeyError::Crypto("private key encoding");
        match &self.pair {
            Pair::Rsa(pair) => {
                let encoded: Pkcs8V1Der<'_> = pair.as_der().map_err(failed)?;
                Ok(encoded.as_ref().to_vec())
            }
            Pair::Ecdsa(_, pair) => Ok(pair.to_pkcs8v1().map_err(failed)?.as_ref().to_vec()),
            Pair::Ed25519(_, pkcs8) => Ok(pkcs8.clone()),
        }
    }

    /// Signs with SHA-256 and RSA, the curve's own hash and ECDSA (ASN.1 form), or Ed25519.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        match &self.pair {
            Pair::Rsa(_) => self.sign_rsa(&RSA_PKCS1_SHA256, message),
            Pair::Ecdsa(_, pair) => {
                let signature = pair.sign(&SystemRandom::new(), message);
                Ok(signature.map_err(|_| KeyError::Crypto("signing"))?.as_ref().to_vec())
            }
            Pair::Ed25519(pair, _) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }

    fn sign_rsa(&self, encoding: &'static dyn RsaEncoding, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let Pair::Rsa(pair) = &self.pair else { return Err(KeyError::Unsupported("key for RSA".to_owned())) };
        let mut signature = vec![0; pair.public_modulus_len()];
        let signed = pair.sign(encoding, &SystemRandom::new(), message, &mut signature);
        signed.map_err(|_| KeyError::Crypto("signing")).map(|()| signature)
    }

    /// The DER AlgorithmIdentifier that names what [`Self::sign`] does.
    pub(crate) fn signature_algorithm(&self) -> Vec<u8> {
        let named = |content| der::element(der::OID, content);
        match &self.pair {
            Pair::Rsa(_) => der::sequence(&[&named(oid::RSA_SHA256), &der::element(der::NULL, &[])]),
            Pair::Ecdsa(Curve::P256, _) => der::sequence(&[&named(oid::ECDSA_SHA256)]),
            Pair::Ecdsa(Curve::P384, _) => der::sequence(&[&named(oid::ECDSA_SHA384)]),
            Pair::Ecdsa(Curve::P521, _) => der::sequence(&[&named(oid::ECDSA_SHA512)]),
            Pair::Ed25519(..) => der::sequence(&[&named(oid::ED25519)]),
        }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("public", &self.public).finish_non_exhaustive()
    }
}

fn signing(curve: Curve) -> &'static EcdsaSigningAlgorithm {
    match curve {
        Curve::P256 => &ECDSA_P256_SHA256_ASN1_SIGNING,
        Curve::P384 => &ECDSA_P384_SHA384_ASN1_SIGNING,
        Curve::P521 => &ECDSA_P521_SHA512_ASN1_SIGNING,
    }
}

struct Pkcs8<'a> {
    algorithm: &'a [u8],
    /// The algorithm's parameter when it is an OID: the curve.
    parameter: Option<&'a [u8]>,
    /// The key in its algorithm's own form.
    key: &'a [u8],
}

impl<'a> Pkcs8<'a> {
    fn read(input: &'a [u8]) -> Option<Self> {
        let mut info = Reader::new(input).enter(der::SEQUENCE)?;
        info.expect(der::INTEGER)?;
        let mut identifier = info.enter(der::SEQUENCE)?;
        let algorithm = identifier.expect(der::OID)?;
        Some(Self { algorithm, parameter: identifier.expect(der::OID), key: info.expect(der::OCTET_STRING)? })
    }
}

/// The curve of a SEC1 key: from its parameters, or, where those are left out, from the length of the scalar.
fn sec1_curve(input: &[u8]) -> Option<Curve> {
    let mut fields = Reader::new(input).enter(der::SEQUENCE)?;
    fields.expect(der::INTEGER)?;
    let scalar = fields.expect(der::OCTET_STRING)?;
    match fields.enter(der::explicit(0)) {
        Some(mut parameters) => Curve::from_oid(parameters.expect(der::OID)?),
        None => Curve::ALL.into_iter().find(|curve| curve.coordinate_bytes() == scalar.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_round_trips_through_both_forms() {
        for (name, algorithm) in KeyAlgorithm::NAMES {
            if matches!(algorithm, KeyAlgorithm::Rsa3072 | KeyAlgorithm::Rsa4096) {
                continue; // slow to generate, the same path as RSA-2048
            }
            let key = PrivateKey::generate(algorithm).unwrap();
            for text in [key.to_pem().unwrap(), pem::encode_block("PRIVATE KEY", &key.to_pkcs8().unwrap())] {
                let read = PrivateKey::from_pem(text.as_bytes()).unwrap();
                assert_eq!(read.public_key(), key.public_key(), "{name}");
            }
            let rebuilt = PublicKey::from_kind(key.public_key().kind().clone());
            assert_eq!(&rebuilt, key.public_key(), "{name}");
            let keys = PublicKey::all_from_pem(key.public_key().to_pem().as_bytes()).unwrap();
            assert_eq!(&keys[0], key.public_key());
            assert!(!format!("{key:?}").contains("PRIVATE"));
        }
    }

    #[test]
    fn bad_files_say_why() {
        let case = |text: &str| PrivateKey::from_pem(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(case("nothing"), "data does not contain a valid RSA, ECDSA or Ed25519 key");
        assert_eq!(case(&pem::encode_block("ENCRYPTED PRIVATE KEY", b"x")), "encrypted private keys are not supported");
        assert_eq!(case(&pem::encode_block("EC PRIVATE KEY", b"x")), "unsupported elliptic curve");
        assert!(case(&pem::encode_block("RSA PRIVATE KEY", b"x")).starts_with("invalid private key"));
        let missing = PrivateKey::load(Path::new("/nonexistent/key.pem")).unwrap_err().to_string();
        assert!(missing.starts_with("/nonexistent/key.pem: "), "{missing}");
    }

    #[test]
    fn stored_files_are_private_and_load_again() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.key");
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        key.store(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(PrivateKey::load(&path).unwrap().public_key(), key.public_key());
    }
}
