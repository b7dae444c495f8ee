//! Continue tokens, in upstream's form: other components take them apart.

use api_machinery::json;
use api_machinery::value::Value;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{DecodeError, Engine as _};

const VERSION: &str = "meta.k8s.io/v1";
/// The longest token that is looked at; a key is far shorter.
const MAX_TOKEN_BYTES: usize = 4_096;

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The revision of the first page; -1 for "whatever is newest".
    pub revision: i64,
    /// The first key of the next page, relative to the list's prefix.
    pub start: String,
}

impl Token {
    /// The token as clients get it.
    #[must_use]
    pub fn encode(&self) -> String {
        let start = json::encode_value(&Value::from(self.start.as_str()));
        base64_url(format!("{{\"v\":\"{VERSION}\",\"rv\":{},\"start\":{start}}}", self.revision).as_bytes())
    }

    /// Reads a token.
    ///
    /// # Errors
    /// It is none that a list has given; the inner text of upstream's `invalid continue token`.
    pub fn decode(text: &str) -> Result<Self, String> {
        let invalid = |why: &str| format!("continue key is not valid: {why}");
        if text.len() > MAX_TOKEN_BYTES {
            return Err(invalid("too long"));
        }
        let bytes = from_base64_url(text).map_err(|at| invalid(&format!("illegal base64 data at input byte {at}")))?;
        let token = json::parse_value(&String::from_utf8_lossy(&bytes)).map_err(|error| invalid(&error.to_string()))?;
        let version = token.get("v").and_then(Value::as_str).unwrap_or_default();
        if version != VERSION {
            return Err(invalid(&format!("server does not recognize this encoded version {version}")));
        }
        let revision = token.get("rv").and_then(Value::as_i64).unwrap_or_default();
        if revision == 0 {
            return Err(invalid(&format!("incorrect encoded start resourceVersion (version {VERSION})")));
        }
        let start = token.get("start").and_then(Value::as_str).unwrap_or_default();
        if start.is_empty() {
            return Err(invalid(&format!("encoded start key empty (version {VERSION})")));
        }
        if !is_clean(start) {
            return Err(invalid(start));
        }
        Ok(Self { revision, start: start.to_owned() })
    }
}

/// Whether a key names something below its prefix and nothing else.
fn is_clean(start: &str) -> bool {
    !start.starts_with('/') && start.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn base64_url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads URL-safe base64 without padding; the error is the place of the first bad byte.
fn from_base64_url(text: &str) -> Result<Vec<u8>, usize> {
    URL_SAFE_NO_PAD.decode(text).map_err(|error| match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
        DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => text.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_round_trip_in_upstreams_form() {
        let token = Token { revision: 42, start: "default/web\0".into() };
        let text = token.encode();
        assert!(!text.contains('='));
        assert_eq!(
            String::from_utf8(from_base64_url(&text).unwrap()).unwrap(),
            r#"{"v":"meta.k8s.io/v1","rv":42,"start":"default/web\u0000"}"#
        );
        assert_eq!(Token::decode(&text), Ok(token));
    }

    #[test]
    fn bad_tokens_say_why() {
        let of = |json: &str| base64_url(json.as_bytes());
        let cases = [
            ("!", "illegal base64 data at input byte 0"),
            (&of("{"), "continue key is not valid: unexpected end of JSON input"),
            (&of("x"), "continue key is not valid: invalid character 'x' looking for beginning of value"),
            (&of(r#"{"v":"v0","rv":1,"start":"a"}"#), "server does not recognize this encoded version v0"),
            (&of(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#), "incorrect encoded start resourceVersion"),
            (&of(r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#), "encoded start key empty"),
            (&of(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}"#), "continue key is not valid: ../x"),
            (&of(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}"#), "continue key is not valid: a//b"),
        ];
        for (text, expected) in cases {
            let error = Token::decode(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
