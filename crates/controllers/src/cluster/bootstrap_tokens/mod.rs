//! Bootstrap tokens as the controllers see them: Secrets in `kube-system` that let machines join for a while. The
//! signer vouches for `kube-public/cluster-info` with them, the cleaner deletes those that have expired.
//!
//! Both are off unless `--controllers` names them, as upstream. See
//! <https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/>.

pub(crate) mod cleaner;
pub(crate) mod signer;

use api_machinery::time::Time;
use api_types::core_v1::Secret;
use api_types::core_v1::constants::secret_type::BOOTSTRAP_KUBERNETES_IO_TOKEN as TOKEN_TYPE;
use client::Scope;

const NAMESPACE: &str = "kube-system";
const NAME_PREFIX: &str = "bootstrap-token-";
const ID_CHARACTERS: usize = 6;
const EXPIRATION: &str = "expiration";

/// The Secrets that hold bootstrap tokens.
fn token_secrets() -> Scope {
    Scope { namespace: NAMESPACE.to_owned(), ..Scope::fields(&format!("type={TOKEN_TYPE}")) }
}

/// A value of the Secret as text; empty where it is absent or no text.
fn text<'a>(secret: &'a Secret, key: &str) -> &'a str {
    secret.data.get(key).and_then(|value| std::str::from_utf8(&value.0).ok()).unwrap_or_default()
}

/// When the token expires: never, or at a time. One that cannot be read is long past.
fn expiration(secret: &Secret) -> Option<Time> {
    let expiration = secret.data.get(EXPIRATION).filter(|value| !value.0.is_empty())?;
    let read = std::str::from_utf8(&expiration.0).ok().and_then(|text| Time::parse(text).ok());
    Some(read.unwrap_or_default())
}

/// Whether the token has expired.
fn is_expired(secret: &Secret, now: Time) -> bool {
    expiration(secret).is_some_and(|expiration| expiration <= now)
}

/// ID and secret of a token that may sign.
fn signing_token(secret: &Secret, now: Time) -> Option<(&str, &str)> {
    let id = secret.metadata.name.strip_prefix(NAME_PREFIX)?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let key = text(secret, "token-secret");
    let usable = secret.type_ == TOKEN_TYPE
        && id.len() == ID_CHARACTERS
        && id.bytes().all(plain)
        && text(secret, "token-id") == id
        && !key.is_empty()
        && !is_expired(secret, now)
        && text(secret, "usage-bootstrap-signing") == "true";
    usable.then_some((id, key))
}

/// Tokens for tests.
#[cfg(test)]
mod fixtures {
    use api_machinery::reflect::ByteString;

    use super::*;

    /// A token that may sign, changed by these values; one without a value is left out.
    pub(super) fn token(id: &str, changes: &[(&str, Option<&str>)]) -> Secret {
        let mut secret = Secret { type_: TOKEN_TYPE.into(), ..Secret::default() };
        secret.metadata.name = format!("{NAME_PREFIX}{id}");
        secret.metadata.namespace = NAMESPACE.into();
        let usual = [("token-id", id), ("token-secret", "0123456789abcdef"), ("usage-bootstrap-signing", "true")];
        let changes = usual.map(|(key, value)| (key, Some(value))).into_iter().chain(changes.iter().copied());
        for (key, value) in changes {
            match value {
                Some(value) => secret.data.insert(key.into(), ByteString(value.as_bytes().to_vec())),
                None => secret.data.remove(key),
            };
        }
        secret
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::token;
    use super::*;
    use crate::workloads::fixtures::at;

    /// A name, changes of the token, and whether it signs.
    type Case<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)], bool);

    #[test]
    fn only_whole_and_current_tokens_sign() {
        let now = at(1_000_000_000);
        let past = "2001-09-09T01:46:40Z";
        let cases: [Case<'_>; 9] = [
            ("whole", &[], true),
            ("expires later", &[(EXPIRATION, Some("2001-09-09T01:46:41Z"))], true),
            ("expires now", &[(EXPIRATION, Some(past))], false),
            ("unreadable expiration", &[(EXPIRATION, Some("soon"))], false),
            ("empty expiration", &[(EXPIRATION, Some(""))], true),
            ("no secret", &[("token-secret", None)], false),
            ("another ID", &[("token-id", Some("fedcba"))], false),
            ("not for signing", &[("usage-bootstrap-signing", Some("yes"))], false),
            ("not said to be for signing", &[("usage-bootstrap-signing", None)], false),
        ];
        for (name, changes, expected) in cases {
            assert_eq!(signing_token(&token("abcdef", changes), now).is_some(), expected, "{name}");
        }
        for id in ["abcde", "ABCDEF", "abcdefg"] {
            assert_eq!(signing_token(&token(id, &[]), now), None, "{id}");
        }
    }
}
