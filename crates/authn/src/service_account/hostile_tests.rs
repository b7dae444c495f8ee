//! Tokens that one reader takes for another's: who chooses the verifier must read what the verifier reads.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pki::jws::sign;
use pki::{KeyAlgorithm, PrivateKey};
use serde_json::{Value, json};

use super::tests::{ISSUER, Objects};
use super::*;
use crate::authenticator::TokenAuthenticator as _;
use crate::identity::Identity;
use crate::testing::{NOW_SECONDS, clock, uses};

const OTHER: &str = "https://other.example.com";

/// A token with another header or payload than what was signed.
fn forged(token: &str, header: Option<&str>, payload: Option<&str>) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let part = |text: Option<&str>, old: &str| text.map_or(old.to_owned(), |text| URL_SAFE_NO_PAD.encode(text));
    format!("{}.{}.{}", part(header, parts[0]), part(payload, parts[1]), parts[2])
}

async fn check(key: &PrivateKey, token: &str) -> Option<Identity> {
    let (issuers, audiences) = (vec![ISSUER.to_owned()], vec!["api".to_owned()]);
    let objects = Arc::new(Objects::usual());
    let tokens = ServiceAccountTokens::new(
        issuers,
        StaticKeys::shared([key.public_key().clone()]),
        audiences,
        objects,
        clock(0),
        uses(),
    );
    tokens.authenticate_token(token, &[]).await.ok().flatten()
}

/// The payload of a good token.
fn payload() -> Value {
    let own = json!({"namespace": "ns", "serviceaccount": {"name": "app", "uid": "uid-sa"}});
    json!({"iss": ISSUER, "aud": ["api"], "sub": "system:serviceaccount:ns:app", "exp": NOW_SECONDS + 3600,
        "iat": NOW_SECONDS, "nbf": NOW_SECONDS, "kubernetes.io": own})
}

#[tokio::test]
async fn an_issuer_is_read_in_one_way_only() {
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    assert!(check(&key, &sign(&key, &payload()).unwrap()).await.is_some(), "the fixture is good");
    for (name, issuer) in [
        ("ISS", json!(ISSUER)),
        ("Iss", json!(ISSUER)),
        ("iss", json!([ISSUER])),
        ("iss", json!({"a": ISSUER})),
        ("iss", json!(format!("{ISSUER}\0"))),
        ("iss", json!(format!("{ISSUER}/"))),
        ("iss", json!(format!(" {ISSUER}"))),
        ("iss", json!(null)),
        ("iss", json!(OTHER)),
    ] {
        let mut odd = payload();
        let claims = odd.as_object_mut().unwrap();
        claims.remove("iss");
        claims.insert(name.to_owned(), issuer.clone());
        assert!(check(&key, &sign(&key, &odd).unwrap()).await.is_none(), "{name}: {issuer}");
        // Beside an issuer that is not ours the odd one counts for nothing.
        odd.as_object_mut().unwrap().entry("iss").or_insert(json!(OTHER));
        assert!(check(&key, &sign(&key, &odd).unwrap()).await.is_none(), "{name}: {issuer} beside another");
    }
}

#[tokio::test]
async fn no_header_makes_a_strangers_signature_good() {
    let generate = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
    let (key, stranger) = (generate(), generate());
    let own = key.public_key().key_id();
    let token = sign(&stranger, &payload()).unwrap();
    let good = sign(&key, &payload()).unwrap();
    for header in [
        r#"{"alg":"ES256"}"#.to_owned(),
        format!(r#"{{"kid":"{own}","alg":"ES256"}}"#),
        r#"{"alg":"ES256","kid":"../../../dev/null"}"#.to_owned(),
        r#"{"alg":"none"}"#.to_owned(),
        r#"{"alg":"None"}"#.to_owned(),
        r#"{"alg":""}"#.to_owned(),
        format!(r#"{{"alg":"HS256","kid":"{own}"}}"#),
        r#"{"alg":"ES256","alg":"none"}"#.to_owned(),
        r#"{"alg":"ES256","jwk":{"kty":"EC","crv":"P-256","x":"AQAB","y":"AQAB"}}"#.to_owned(),
        r#"{"alg":"ES256","x5u":"https://canary.example.com","jku":"https://canary.example.com"}"#.to_owned(),
    ] {
        for token in [&token, &good] {
            let forged = forged(token, Some(&header), None);
            assert!(check(&key, &forged).await.is_none(), "{header}");
            let (unsigned, _) = forged.rsplit_once('.').unwrap();
            assert!(check(&key, &format!("{unsigned}.")).await.is_none(), "{header} without a signature");
        }
    }
    let twice = format!(r#"{{"iss":"{OTHER}","iss":"{ISSUER}","sub":"x"}}"#);
    for payload in ["[".repeat(5_000), "{\"a\":".repeat(5_000), twice] {
        assert!(check(&key, &forged(&good, None, Some(&payload))).await.is_none());
        assert!(check(&key, &forged(&good, Some(&payload), None)).await.is_none());
    }
}
