//! What the header of a signature may say: no more than upstream lets it, so that every verifier understands it.

use api_machinery::quote::go_quote;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use crate::error::SignerError;

const FIELDS: [&str; 3] = ["alg", "kid", "typ"];
/// How tokens of service accounts are signed.
const ALGORITHMS: [&str; 4] = ["RS256", "ES256", "ES384", "ES512"];
pub(crate) const MAX_KEY_ID_BYTES: usize = 1024;

/// The key ID of a header in base64url.
pub(crate) fn key_id(header: &str) -> Result<String, SignerError> {
    let wrong = |why: String| SignerError::Header(why);
    let bytes = URL_SAFE_NO_PAD.decode(header).map_err(|error| wrong(format!("while unwrapping header: {error}")))?;
    let fields: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|error| wrong(format!("while parsing header JSON: {error}")))?;
    if let Some(name) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(wrong(format!("while parsing header JSON: json: unknown field {}", go_quote(name))));
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("typ") != "JWT" {
        return Err(wrong("bad type".to_owned()));
    }
    let key_id = text("kid");
    if key_id.is_empty() {
        return Err(wrong("key id missing".to_owned()));
    }
    if key_id.len() > MAX_KEY_ID_BYTES {
        return Err(wrong("key id longer than 1 kb".to_owned()));
    }
    if !ALGORITHMS.contains(&text("alg")) {
        return Err(wrong(format!("bad signing algorithm {}", go_quote(text("alg")))));
    }
    Ok(key_id.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn headers_say_what_they_must_and_nothing_else() {
        let long = "k".repeat(MAX_KEY_ID_BYTES + 1);
        for (header, expected) in [
            (json!({"typ": "JWT", "alg": "ES256", "kid": "k"}), Ok("k")),
            (json!({"typ": "JWT", "alg": "RS256", "kid": "k"}), Ok("k")),
            (json!({"alg": "ES256", "kid": "k"}), Err("while validating header: bad type")),
            (json!({"typ": "JWT", "alg": "ES256"}), Err("while validating header: key id missing")),
            (
                json!({"typ": "JWT", "alg": "ES256", "kid": long}),
                Err("while validating header: key id longer than 1 kb"),
            ),
            (
                json!({"typ": "JWT", "alg": "none", "kid": "k"}),
                Err("while validating header: bad signing algorithm \"none\""),
            ),
            (
                json!({"typ": "JWT", "alg": "EdDSA", "kid": "k"}),
                Err("while validating header: bad signing algorithm \"EdDSA\""),
            ),
            (
                json!({"typ": "JWT", "alg": "ES256", "kid": "k", "jku": "https://x"}),
                Err("while validating header: while parsing header JSON: json: unknown field \"jku\""),
            ),
        ] {
            let outcome = key_id(&URL_SAFE_NO_PAD.encode(header.to_string())).map_err(|error| error.to_string());
            assert_eq!(outcome.as_deref().map_err(String::as_str), expected, "{header}");
        }
        assert!(key_id("!").is_err() && key_id("").is_err());
    }
}
