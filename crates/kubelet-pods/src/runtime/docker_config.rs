//! Credentials for registries as Docker writes them down: its files, and secrets of pods that hold such a file.

use std::collections::BTreeMap;

use api_machinery::json::{self, DecodeError};
use api_machinery::reflect::Reflect;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use node_api::cri::v1::AuthConfig;

use form::{DockerConfig, DockerConfigEntry, DockerConfigJson};

/// Why credentials cannot be used; somebody has to write others.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error(transparent)]
    Json(#[from] DecodeError),
    #[error(transparent)]
    Utf8(#[from] std::string::FromUtf8Error),
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    #[error("unable to parse auth field, must be formatted as base64(username:password)")]
    NoPassword,
}

/// Credentials by what they are good for.
pub(super) type Auths = Vec<(String, AuthConfig)>;

/// What `config.json`, or a secret of type `kubernetes.io/dockerconfigjson`, holds.
pub(super) fn read(bytes: &[u8]) -> Result<Auths, CredentialsError> {
    let mut config = DockerConfigJson::default();
    decode(bytes, &mut config)?;
    all(config.auths)
}

/// What `.dockercfg`, or a secret of type `kubernetes.io/dockercfg`, holds.
pub(super) fn read_old(bytes: &[u8]) -> Result<Auths, CredentialsError> {
    let mut config = DockerConfig::default();
    decode(bytes, &mut config)?;
    all(config.auths)
}

/// Members that nobody knows are somebody else's.
fn decode(bytes: &[u8], into: &mut dyn Reflect) -> Result<(), DecodeError> {
    json::decode(bytes, into).map(drop)
}

fn all(auths: BTreeMap<String, DockerConfigEntry>) -> Result<Auths, CredentialsError> {
    auths.into_iter().map(|(server, own)| Ok((server, auth(own)?))).collect()
}

/// What is written in one counts before what is written apart.
fn auth(own: DockerConfigEntry) -> Result<AuthConfig, CredentialsError> {
    let DockerConfigEntry { username, password, auth, .. } = own;
    if auth.is_empty() {
        return Ok(AuthConfig { username, password, ..AuthConfig::default() });
    }
    let auth = auth.trim();
    // Some leave the padding out.
    let engine = if auth.ends_with('=') { STANDARD } else { STANDARD_NO_PAD };
    let decoded = String::from_utf8(engine.decode(auth)?)?;
    let (username, password) = decoded.split_once(':').ok_or(CredentialsError::NoPassword)?;
    Ok(AuthConfig { username: username.to_owned(), password: password.to_owned(), ..AuthConfig::default() })
}

/// Prefix of the names of the types.
const PACKAGE: &str = "io.k8s.kubernetes.pkg.credentialprovider";

mod form {
    use std::collections::BTreeMap;

    use api_machinery::api;

    /// `config.json`.
    #[api]
    pub(super) struct DockerConfigJson {
        /// Credentials by registry.
        #[field(0)]
        pub(super) auths: BTreeMap<String, DockerConfigEntry>,
    }

    /// `.dockercfg`, which has nothing but credentials.
    #[api]
    pub(super) struct DockerConfig {
        /// Credentials by registry.
        #[field(0, rest)]
        pub(super) auths: BTreeMap<String, DockerConfigEntry>,
    }

    /// Credentials for a registry.
    #[api]
    pub(super) struct DockerConfigEntry {
        /// As whom to pull.
        #[field(0)]
        pub(super) username: String,
        /// With what.
        #[field(0, secret)]
        pub(super) password: String,
        /// Of whoever it is; nobody reads it.
        #[field(0)]
        pub(super) email: String,
        /// `username:password` in base64.
        #[field(0, secret)]
        pub(super) auth: String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(auths: Result<Auths, CredentialsError>) -> String {
        match auths {
            Ok(auths) => {
                let shown = auths.iter().map(|(server, own)| format!("{server} {}:{}", own.username, own.password));
                shown.collect::<Vec<_>>().join(", ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn both_forms_have_the_same_entries() {
        let entry = "json: cannot unmarshal bool into Go struct field DockerConfigEntry.";
        for (auths, expected) in [
            ("{}", String::new()),
            (r#"{"b.io":{"username":"u","password":"p"},"a.io":{"auth":"YTpi"}}"#, "a.io a:b, b.io u:p".to_owned()),
            (r#"{"a.io":{"username":"u","password":"p","auth":"Zm9vOmJhcg=="}}"#, "a.io foo:bar".to_owned()),
            (r#"{"a.io":{"auth":" Zm9vOmJhcg "}}"#, "a.io foo:bar".to_owned()),
            (r#"{"a.io":{"auth":"YTpiOmM="}}"#, "a.io a:b:c".to_owned()),
            (r#"{"a.io":null,"b.io":{"identitytoken":"t"}}"#, "a.io :, b.io :".to_owned()),
            (r#"{"a.io":{"auth":"cGFudHM="}}"#, CredentialsError::NoPassword.to_string()),
            (r#"{"a.io":{"auth":"!!"}}"#, "Invalid symbol 33, offset 0.".to_owned()),
            (r#"{"a.io":{"auth":"/zph"}}"#, "invalid utf-8 sequence of 1 bytes from index 0".to_owned()),
            (r#"{"a.io":{"email":false}}"#, format!("{entry}auths.email of type string")),
        ] {
            assert_eq!(told(read(format!(r#"{{"auths":{auths},"credsStore":"x"}}"#).as_bytes())), expected, "{auths}");
            // Here they are not within anything.
            let expected = expected.replace("auths.", "");
            assert_eq!(told(read_old(auths.as_bytes())), expected, "{auths}");
        }
    }

    #[test]
    fn a_file_without_credentials_has_none_and_what_is_no_file_is_told() {
        for text in ["{}", "null", r#"{"auths":null}"#] {
            assert_eq!(told(read(text.as_bytes())), "", "{text}");
        }
        assert_eq!(told(read(b"{")), "unexpected end of JSON input");
        let list = "json: cannot unmarshal array into Go value of type credentialprovider.DockerConfig";
        assert!(told(read_old(b"[]")).starts_with(list), "{}", told(read_old(b"[]")));
        let auths = told(read(br#"{"auths":[]}"#));
        assert!(
            auths.starts_with("json: cannot unmarshal array into Go struct field DockerConfigJson.auths"),
            "{auths}"
        );
    }
}
