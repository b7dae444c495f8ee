//! Tokens: what is signed verifies, and no header trick gets past the key's own type.

use super::*;
use crate::key::KeyAlgorithm;

fn keys() -> Vec<PrivateKey> {
    [KeyAlgorithm::Rsa2048, KeyAlgorithm::EcdsaP256, KeyAlgorithm::EcdsaP384]
        .into_iter()
        .map(|algorithm| PrivateKey::generate(algorithm).unwrap())
        .collect()
}

#[test]
fn signed_tokens_verify_with_their_own_key_only() {
    let keys = keys();
    for (index, key) in keys.iter().enumerate() {
        for _ in 0..20 {
            let token = sign(key, &json!({ "sub": "x" })).unwrap();
            let parsed = UnverifiedToken::parse(&token).unwrap();
            assert_eq!(parsed.key_id(), key.public_key().key_id());
            for (other, candidate) in keys.iter().enumerate() {
                let claims = parsed.verify(candidate.public_key()).ok();
                assert_eq!(claims.is_some(), index == other);
                assert!(claims.is_none_or(|claims| claims["sub"] == "x"));
            }
        }
    }
}

#[test]
fn tampering_and_header_tricks_are_refused() {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let token = sign(&key, &json!({ "sub": "x" })).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let swapped = format!("{}.{}.{}", parts[0], encode_json(&json!({ "sub": "y" })), parts[2]);
    assert!(matches!(UnverifiedToken::parse(&swapped).unwrap().verify(key.public_key()), Err(JwsError::Signature)));
    let with_header = |header: Value| format!("{}.{}.{}", encode_json(&header), parts[1], parts[2]);
    let cases = [
        (with_header(json!({ "alg": "none" })), "unexpected signature algorithm \"none\""),
        (with_header(json!({ "alg": "HS256" })), "unexpected signature algorithm \"HS256\""),
        (with_header(json!({ "alg": "ES256", "crit": ["b64"] })), "unsupported critical header"),
        (format!("{}.{}", parts[0], parts[1]), "malformed JWS: must have three parts"),
        (format!("{token}.x"), "malformed JWS: must have three parts"),
        ("!.!.!".to_owned(), "malformed JWS: not base64url"),
        ("a".repeat(MAX_TOKEN_BYTES + 1), "malformed JWS: token is too long"),
    ];
    for (text, expected) in cases {
        assert_eq!(UnverifiedToken::parse(&text).unwrap_err().to_string(), expected);
    }
    let mismatch = UnverifiedToken::parse(&with_header(json!({ "alg": "RS256" }))).unwrap();
    assert!(mismatch.verify(key.public_key()).is_err());
}

#[test]
fn detached_signatures_bind_content_id_and_secret() {
    let signature = sign_detached("content", "abcdef", "0123456789abcdef");
    assert!(verify_detached(&signature, "content", "abcdef", "0123456789abcdef"));
    for (content, id, secret) in
        [("other", "abcdef", "0123456789abcdef"), ("content", "abcdeg", "0123456789abcdef"), ("content", "abcdef", "x")]
    {
        assert!(!verify_detached(&signature, content, id, secret));
    }
    assert!(signature.starts_with("eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9.."));
}
