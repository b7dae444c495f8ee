//! Signed tokens (JWS compact form): service account tokens, ID tokens, and the bootstrap signature of cluster-info.
//!
//! The header never decides alone how a token is checked: the algorithm must fit the key's own type, `none` and the
//! symmetric algorithms are unknown to the verifier of public-key tokens, and critical extensions are refused.

use std::fmt;

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{self, VerificationAlgorithm};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use crate::der::{self, Reader};
use crate::key::{KeyError, PrivateKey};
use crate::public_key::{Curve, PublicKey, PublicKeyKind};

/// Longest token looked at; far above any real one, far below what would make parsing costly.
pub const MAX_TOKEN_BYTES: usize = 64 * 1024;

/// Why a token was not made or not accepted.
#[derive(Debug, thiserror::Error)]
pub enum JwsError {
    /// Not three base64url parts with a JSON header.
    #[error("malformed JWS: {0}")]
    Malformed(&'static str),
    /// An algorithm outside the asymmetric set, `none` above all.
    #[error("unexpected signature algorithm {0:?}")]
    Algorithm(String),
    /// The header demands something this verifier does not know.
    #[error("unsupported critical header")]
    Critical,
    /// The signature does not match this key.
    #[error("error in cryptographic primitive")]
    Signature,
    /// Signing failed.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// The signature algorithms of RFC 7518 and 8037 that use key pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// EdDSA with Ed25519.
    EdDsa,
    /// ECDSA P-256 and SHA-256.
    Es256,
    /// ECDSA P-384 and SHA-384.
    Es384,
    /// ECDSA P-521 and SHA-512.
    Es512,
    /// RSASSA-PSS and SHA-256.
    Ps256,
    /// RSASSA-PSS and SHA-384.
    Ps384,
    /// RSASSA-PSS and SHA-512.
    Ps512,
    /// RSASSA-PKCS1-v1_5 and SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 and SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 and SHA-512.
    Rs512,
}

impl Algorithm {
    const NAMES: [(&'static str, Self); 10] = [
        ("EdDSA", Self::EdDsa),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("ES512", Self::Es512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
    ];

    /// The `alg` value.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, algorithm)| *algorithm == self).map_or("", |(name, _)| name)
    }

    /// The algorithm of an `alg` value.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, algorithm)| algorithm)
    }

    /// What a key of this kind signs service account tokens with.
    #[must_use]
    pub fn for_key(key: &PublicKey) -> Self {
        match key.kind() {
            PublicKeyKind::Rsa { .. } => Self::Rs256,
            PublicKeyKind::Ec { curve: Curve::P256, .. } => Self::Es256,
            PublicKeyKind::Ec { curve: Curve::P384, .. } => Self::Es384,
            PublicKeyKind::Ec { curve: Curve::P521, .. } => Self::Es512,
            PublicKeyKind::Ed25519(_) => Self::EdDsa,
        }
    }

    /// The verifier, if `key` is of the algorithm's own type.
    fn verifier(self, key: &PublicKey) -> Option<&'static dyn VerificationAlgorithm> {
        Some(match (key.kind(), self) {
            (PublicKeyKind::Rsa { .. }, Self::Rs256) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (PublicKeyKind::Rsa { .. }, Self::Rs384) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (PublicKeyKind::Rsa { .. }, Self::Rs512) => &signature::RSA_PKCS1_2048_8192_SHA512,
            (PublicKeyKind::Rsa { .. }, Self::Ps256) => &signature::RSA_PSS_2048_8192_SHA256,
            (PublicKeyKind::Rsa { .. }, Self::Ps384) => &signature::RSA_PSS_2048_8192_SHA384,
            (PublicKeyKind::Rsa { .. }, Self::Ps512) => &signature::RSA_PSS_2048_8192_SHA512,
            (PublicKeyKind::Ec { curve: Curve::P256, .. }, Self::Es256) => &signature::ECDSA_P256_SHA256_FIXED,
            (PublicKeyKind::Ec { curve: Curve::P384, .. }, Self::Es384) => &signature::ECDSA_P384_SHA384_FIXED,
            (PublicKeyKind::Ec { curve: Curve::P521, .. }, Self::Es512) => &signature::ECDSA_P521_SHA512_FIXED,
            (PublicKeyKind::Ed25519(_), Self::EdDsa) => &signature::ED25519,
            _ => return None,
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Signs `claims` with `key`; the header holds `alg` and `kid` only.
///
/// # Errors
/// [`JwsError::Key`] when signing fails.
pub fn sign(key: &PrivateKey, claims: &Value) -> Result<String, JwsError> {
    let algorithm = Algorithm::for_key(key.public_key());
    let header = json!({ "alg": algorithm.name(), "kid": key.public_key().key_id() });
    let input = format!("{}.{}", encode_json(&header), encode_json(claims));
    let signature = raw_signature(key, input.as_bytes())?;
    Ok(format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// A signature over the first two parts of a token, as its last part has it.
///
/// # Errors
/// [`JwsError::Key`] when signing fails.
pub fn raw_signature(key: &PrivateKey, input: &[u8]) -> Result<Vec<u8>, JwsError> {
    let signature = key.sign(input)?;
    Ok(match key.public_key().kind() {
        PublicKeyKind::Ec { curve, .. } => {
            fixed_width(&signature, curve.coordinate_bytes()).ok_or(KeyError::Crypto("signing"))?
        }
        PublicKeyKind::Rsa { .. } | PublicKeyKind::Ed25519(_) => signature,
    })
}

fn encode_json(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// ECDSA signatures are two numbers: ASN.1 in certificates, both at full width side by side in tokens.
fn fixed_width(signature: &[u8], width: usize) -> Option<Vec<u8>> {
    let mut numbers = Reader::new(signature).enter(der::SEQUENCE)?;
    let mut out = Vec::with_capacity(2 * width);
    for number in [numbers.unsigned()?, numbers.unsigned()?] {
        out.extend(std::iter::repeat_n(0, width.checked_sub(number.len())?));
        out.extend_from_slice(number);
    }
    Some(out)
}

/// A token taken apart but not yet believed.
#[derive(Debug, Clone)]
pub struct UnverifiedToken {
    algorithm: Algorithm,
    key_id: String,
    claims: Map<String, Value>,
    input: String,
    signature: Vec<u8>,
}

impl UnverifiedToken {
    /// Takes a compact token apart.
    ///
    /// # Errors
    /// [`JwsError::Malformed`], [`JwsError::Algorithm`] or [`JwsError::Critical`].
    pub fn parse(token: &str) -> Result<Self, JwsError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(JwsError::Malformed("token is too long"));
        }
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(JwsError::Malformed("must have three parts"));
        };
        let (header_object, claims_object) = (decode_object(header)?, decode_object(claims)?);
        if header_object.contains_key("crit") {
            return Err(JwsError::Critical);
        }
        let text = |name: &str| header_object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let algorithm = text("alg");
        Ok(Self {
            algorithm: Algorithm::from_name(&algorithm).ok_or(JwsError::Algorithm(algorithm))?,
            key_id: text("kid"),
            claims: claims_object,
            input: format!("{header}.{claims}"),
            signature: decode(signature)?,
        })
    }

    /// The header's `alg`.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The header's `kid`, empty when absent.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// A claim that nobody has vouched for yet; good for choosing a verifier, nothing else.
    #[must_use]
    pub fn unverified_claim(&self, name: &str) -> Option<&Value> {
        self.claims.get(name)
    }

    /// Checks the signature and hands out the claims.
    ///
    /// # Errors
    /// [`JwsError::Signature`] when the key is of another type or the signature is wrong.
    pub fn verify(&self, key: &PublicKey) -> Result<&Map<String, Value>, JwsError> {
        let algorithm = self.algorithm.verifier(key).ok_or(JwsError::Signature)?;
        if key.verify_with(algorithm, self.input.as_bytes(), &self.signature) {
            Ok(&self.claims)
        } else {
            Err(JwsError::Signature)
        }
    }
}

fn decode(part: &str) -> Result<Vec<u8>, JwsError> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| JwsError::Malformed("not base64url"))
}

fn decode_object(part: &str) -> Result<Map<String, Value>, JwsError> {
    serde_json::from_slice(&decode(part)?).map_err(|_| JwsError::Malformed("not a JSON object"))
}

/// Signs `content` with a bootstrap token: HS256, `kid` the token's ID, the payload left out (`header..signature`), as
/// stored under `jws-kubeconfig-{id}` in the cluster-info ConfigMap.
#[must_use]
pub fn sign_detached(content: &str, token_id: &str, token_secret: &str) -> String {
    let header = encode_json(&json!({ "alg": "HS256", "kid": token_id }));
    let key = hmac::Key::new(hmac::HMAC_SHA256, token_secret.as_bytes());
    let tag = hmac::sign(&key, detached_input(&header, content).as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
}

/// Checks a detached signature made by [`sign_detached`], in constant time.
#[must_use]
pub fn verify_detached(signature: &str, content: &str, token_id: &str, token_secret: &str) -> bool {
    let Some((header, tag)) = signature.split_once("..") else { return false };
    let Ok(fields) = decode_object(header) else { return false };
    let claims = |name: &str, value: &str| fields.get(name).and_then(Value::as_str) == Some(value);
    if !claims("alg", "HS256") || !claims("kid", token_id) || fields.contains_key("crit") {
        return false;
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, token_secret.as_bytes());
    decode(tag).is_ok_and(|tag| hmac::verify(&key, detached_input(header, content).as_bytes(), &tag).is_ok())
}

fn detached_input(header: &str, content: &str) -> String {
    format!("{header}.{}", URL_SAFE_NO_PAD.encode(content))
}

#[cfg(test)]
#[path = "jws_tests.rs"]
mod tests;
