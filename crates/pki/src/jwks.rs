//! Key sets and the discovery document of the service account issuer (OIDC discovery), and reading other issuers' key sets.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::jws::Algorithm;
use crate::public_key::{Curve, PublicKey, PublicKeyKind};

/// Keys taken from one foreign key set; the rest is ignored.
pub const MAX_KEYS: usize = 100;

/// A key set with the ID and algorithm of each key.
#[must_use]
pub fn key_set(keys: &[WebKey]) -> Value {
    json!({ "keys": keys.iter().map(web_key).collect::<Vec<_>>() })
}

fn web_key(own: &WebKey) -> Value {
    let key = &own.key;
    let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let mut out = match key.kind() {
        PublicKeyKind::Rsa { modulus, exponent } => json!({ "kty": "RSA", "n": text(modulus), "e": text(exponent) }),
        PublicKeyKind::Ec { curve, x, y } => {
            json!({ "kty": "EC", "crv": curve.name(), "x": text(x), "y": text(y) })
        }
        PublicKeyKind::Ed25519(raw) => json!({ "kty": "OKP", "crv": "Ed25519", "x": text(raw) }),
    };
    if let Some(fields) = out.as_object_mut() {
        fields.insert("use".to_owned(), "sig".into());
        fields.insert("kid".to_owned(), own.key_id.clone().into());
        fields.insert("alg".to_owned(), Algorithm::for_key(key).name().into());
    }
    out
}

/// The document at `/.well-known/openid-configuration`.
#[must_use]
pub fn discovery_document(issuer: &str, jwks_uri: &str, keys: &[WebKey]) -> Value {
    let mut algorithms: Vec<&str> = keys.iter().map(|own| Algorithm::for_key(&own.key).name()).collect();
    algorithms.sort_unstable();
    algorithms.dedup();
    json!({
        "issuer": issuer,
        "jwks_uri": jwks_uri,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": algorithms,
    })
}

/// A key of a key set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebKey {
    /// The issuer's name for the key; empty when it gives none.
    pub key_id: String,
    /// The key.
    pub key: PublicKey,
}

impl WebKey {
    /// A key under the name that it has by itself.
    #[must_use]
    pub fn of(key: PublicKey) -> Self {
        Self { key_id: key.key_id(), key }
    }
}

/// The usable signature keys of a key set; entries of unknown types or for encryption are skipped. `None` when the document
/// is not a key set.
#[must_use]
pub fn parse_key_set(document: &[u8]) -> Option<Vec<WebKey>> {
    let document: Value = serde_json::from_slice(document).ok()?;
    let keys = document.get("keys")?.as_array()?;
    Some(keys.iter().filter_map(parse_web_key).take(MAX_KEYS).collect())
}

fn parse_web_key(entry: &Value) -> Option<WebKey> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str| URL_SAFE_NO_PAD.decode(text(name).trim_end_matches('=')).ok();
    if !matches!(text("use"), "" | "sig") {
        return None;
    }
    let trimmed = |bytes: Vec<u8>| bytes.into_iter().skip_while(|byte| *byte == 0).collect::<Vec<u8>>();
    let kind = match text("kty") {
        "RSA" => PublicKeyKind::Rsa { modulus: trimmed(number("n")?), exponent: trimmed(number("e")?) },
        "EC" => {
            let curve = Curve::ALL.into_iter().find(|curve| curve.name() == text("crv"))?;
            let (x, y) = (number("x")?, number("y")?);
            if x.len() != curve.coordinate_bytes() || y.len() != curve.coordinate_bytes() {
                return None;
            }
            PublicKeyKind::Ec { curve, x, y }
        }
        "OKP" if text("crv") == "Ed25519" => PublicKeyKind::Ed25519(number("x").filter(|x| x.len() == 32)?),
        _ => return None,
    };
    Some(WebKey { key_id: text("kid").to_owned(), key: PublicKey::from_kind(kind) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KeyAlgorithm, PrivateKey};

    #[test]
    fn our_own_key_set_reads_back() {
        let keys: Vec<WebKey> = [KeyAlgorithm::Rsa2048, KeyAlgorithm::EcdsaP256, KeyAlgorithm::EcdsaP384]
            .into_iter()
            .map(|algorithm| WebKey::of(PrivateKey::generate(algorithm).unwrap().public_key().clone()))
            .collect();
        let read = parse_key_set(key_set(&keys).to_string().as_bytes()).unwrap();
        assert_eq!(read, keys);
        let document = discovery_document("https://i", "https://i/openid/v1/jwks", &keys);
        assert_eq!(document["id_token_signing_alg_values_supported"], json!(["ES256", "ES384", "RS256"]));
    }

    #[test]
    fn foreign_entries_that_cannot_be_used_are_skipped() {
        let document = json!({ "keys": [
            { "kty": "oct", "k": "AA" },
            { "kty": "RSA", "use": "enc", "n": "AQ", "e": "AQAB" },
            { "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA" },
            { "kty": "OKP", "crv": "Ed25519", "x": "AA" },
        ] });
        assert_eq!(parse_key_set(document.to_string().as_bytes()).unwrap(), []);
        assert_eq!(parse_key_set(b"[]"), None);
    }
}
