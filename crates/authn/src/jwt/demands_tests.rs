//! What tokens have to say.

use serde_json::json;

use super::*;

const NOW: u64 = 1_767_225_600;

fn token(header: &Json, claims: &Json) -> String {
    let part = |value: &Json| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{}", part(header), part(claims), URL_SAFE_NO_PAD.encode("signature"))
}

#[test]
fn issuers_are_read_one_way() {
    let named = |claims: &str| {
        unverified_issuer(&format!("{0}.{1}.{0}", URL_SAFE_NO_PAD.encode("{}"), URL_SAFE_NO_PAD.encode(claims)))
    };
    for (claims, expected) in [
        (r#"{"iss": "https://a"}"#, Some("https://a")),
        (r#"{"iss": "accounts.google.com"}"#, Some("https://accounts.google.com")),
        (r#"{"iss": "https:\/\/\u0061"}"#, Some("https://a")),
        (r#"{"ISS": "https://a"}"#, None),
        (r#"{"iss": ["https://a"]}"#, None),
        (r#"[]"#, None),
        ("", None),
    ] {
        assert_eq!(named(claims).as_deref(), expected, "{claims}");
    }
    // Whoever names two is taken at the last word, here and where the token is checked.
    let twice = r#"{"iss": "https://a", "iss": "https://b", "aud": "me", "exp": 9999999999}"#;
    assert_eq!(named(twice).as_deref(), Some("https://b"));
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let whole = format!("{}.{}.{}", part(r#"{"alg": "RS256"}"#), part(twice), part("x"));
    let demands = Demands { audiences: vec!["me".to_owned()], algorithms: vec![Algorithm::Rs256] };
    let now = UNIX_EPOCH + Duration::from_secs(NOW);
    assert!(demands.check(&whole, "https://b", now).is_ok());
    let error = demands.check(&whole, "https://a", now).expect_err("another issuer's");
    assert_eq!(error, "oidc: id token issued by a different provider, expected \"https://a\" got \"https://b\"");
}

#[test]
fn tokens_say_for_whom_when_and_how() {
    let one = |audiences: &[&str]| Demands {
        audiences: audiences.iter().map(|&own| own.to_owned()).collect(),
        algorithms: vec![Algorithm::Rs256],
    };
    let claims = |changes: Json| {
        let mut claims = json!({"iss": "https://a", "aud": "me", "exp": NOW + 60});
        claims.as_object_mut().expect("members").extend(changes.as_object().expect("members").clone());
        claims
    };
    for (audiences, alg, changes, expected) in [
        (&["me"][..], "RS256", json!({}), Ok(())),
        (&["me"], "RS256", json!({"aud": ["you", "me"]}), Ok(())),
        (&["you", "me"], "RS256", json!({}), Ok(())),
        (&["me"], "RS256", json!({"exp": NOW}), Ok(())),
        (&["me"], "RS256", json!({"nbf": NOW + 60}), Ok(())),
        (&["you"], "RS256", json!({}), Err("oidc: expected audience \"you\" got [\"me\"]")),
        (&["b", "a"], "RS256", json!({"aud": ["c"]}), Err("oidc: expected audience in [\"a\" \"b\"] got [\"c\"]")),
        (&["me"], "RS256", json!({"aud": null}), Err("oidc: expected audience \"me\" got []")),
        (
            &["me"],
            "RS256",
            json!({"aud": 1}),
            Err("oidc: failed to unmarshal claims: aud is neither a text nor a list of texts"),
        ),
        (
            &["me"],
            "RS256",
            json!({"exp": NOW - 1}),
            Err("oidc: token is expired (Token Expiry: 2025-12-31 23:59:59 +0000 UTC)"),
        ),
        (
            &["me"],
            "RS256",
            json!({"exp": null}),
            Err("oidc: token is expired (Token Expiry: 0001-01-01 00:00:00 +0000 UTC)"),
        ),
        (&["me"], "RS256", json!({"exp": "soon"}), Err("oidc: failed to unmarshal claims: exp is not a time")),
        (
            &["me"],
            "RS256",
            json!({"nbf": NOW + 61}),
            Err(
                "oidc: current time 2026-01-01 00:00:00 +0000 UTC before the nbf (not before) time: 2026-01-01 00:01:01 \
                 +0000 UTC",
            ),
        ),
        (
            &["me"],
            "ES256",
            json!({}),
            Err("oidc: id token signed with unsupported algorithm, expected [\"RS256\"] got \"ES256\""),
        ),
        (
            &["me"],
            "none",
            json!({}),
            Err("oidc: id token signed with unsupported algorithm, expected [\"RS256\"] got \"none\""),
        ),
        (
            &["me"],
            "HS256",
            json!({}),
            Err("oidc: id token signed with unsupported algorithm, expected [\"RS256\"] got \"HS256\""),
        ),
    ] {
        let token = token(&json!({"alg": alg}), &claims(changes.clone()));
        let outcome = one(audiences).check(&token, "https://a", UNIX_EPOCH + Duration::from_secs(NOW)).map(|_| ());
        assert_eq!(outcome, expected.map_err(str::to_owned), "{audiences:?} {alg} {changes}");
    }
}
