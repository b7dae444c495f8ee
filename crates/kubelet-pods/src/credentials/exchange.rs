//! What a program is asked on its standard input, and answers on its standard output.

use std::collections::BTreeMap;
use std::time::Duration;

use api_machinery::json;
use api_machinery::object::Kind as _;
use api_machinery::time::GoDuration;
use api_types::Document;
use api_types::credentialprovider_v1::{CredentialProviderRequest, CredentialProviderResponse, cache_key_type};
use node_api::cri::v1::AuthConfig;

/// What an answer is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Image,
    Registry,
    Global,
}

/// What a program has for an image.
#[derive(Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) scope: Scope,
    /// How long it is good; `None` for as long as the configuration says.
    pub(super) duration: Option<Duration>,
    /// By what they are good for.
    pub(super) auth: BTreeMap<String, AuthConfig>,
}

/// Why an answer is none. The text may not hold what the program said: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerError {
    #[error("error decoding credential provider plugin response from stdout")]
    Form,
    #[error(
        "apiVersion from credential plugin response did not match expected apiVersion:{expected}, actual apiVersion:{actual}"
    )]
    Version { expected: String, actual: String },
    #[error("credential provider plugin did not return a valid cacheKeyType: {0:?}")]
    Scope(String),
    #[error(
        "credential provider plugin returned the service account token as the password, for which the provider must use cacheType: Token"
    )]
    Token,
}

/// The account of a pod, as far as a provider is told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) token: String,
}

/// The question in a version of the exchange. It ends with a line, as programs in shell read them.
pub(super) fn request(version: &str, image: &str, account: Option<&Account>) -> String {
    let account = account.cloned().unwrap_or_default();
    let request = CredentialProviderRequest {
        image: image.to_owned(),
        service_account_token: account.token,
        service_account_annotations: account.annotations,
    };
    json::encode_typed(CredentialProviderRequest::TYPE.kind, version, &request) + "\n"
}

/// The answer, in the version of the question.
pub(super) fn answer(version: &str, stdout: &[u8]) -> Result<Answer, AnswerError> {
    let text = std::str::from_utf8(stdout).map_err(|_| AnswerError::Form)?;
    let document = Document::read_json(text).map_err(|_| AnswerError::Form)?;
    let actual = &document.type_meta().api_version;
    if actual != version {
        return Err(AnswerError::Version { expected: version.to_owned(), actual: actual.clone() });
    }
    let mut response = CredentialProviderResponse::default();
    let known = document.version(CredentialProviderResponse::TYPE.kind, &[version]);
    known.and_then(|_| document.decode(&mut response)).map_err(|_| AnswerError::Form)?;
    let scope = match response.cache_key_type.as_str() {
        cache_key_type::IMAGE => Scope::Image,
        cache_key_type::REGISTRY => Scope::Registry,
        cache_key_type::GLOBAL => Scope::Global,
        _ => return Err(AnswerError::Scope(response.cache_key_type)),
    };
    let duration = response.cache_duration.map(GoDuration::to_std);
    let auth = response.auth.into_iter().map(|(pattern, own)| {
        (pattern, AuthConfig { username: own.username, password: own.password, ..AuthConfig::default() })
    });
    Ok(Answer { scope, duration, auth: auth.collect() })
}

#[cfg(test)]
mod tests {
    use api_types::credentialprovider_v1::{API_VERSION, API_VERSIONS};

    use super::*;

    #[test]
    fn questions_have_upstreams_bytes() {
        let account = Account {
            annotations: BTreeMap::from([("b".to_owned(), "<2>".to_owned()), ("a".to_owned(), "1".to_owned())]),
            token: "t".into(),
            ..Account::default()
        };
        assert_eq!(
            request(API_VERSION, "a.io/b", Some(&account)),
            "{\"kind\":\"CredentialProviderRequest\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\"image\":\"a.io/b\",\
             \"serviceAccountToken\":\"t\",\"serviceAccountAnnotations\":{\"a\":\"1\",\"b\":\"\\u003c2\\u003e\"}}\n"
        );
        assert_eq!(
            request(API_VERSIONS[1], "a.io/b", None),
            "{\"kind\":\"CredentialProviderRequest\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1beta1\",\
             \"image\":\"a.io/b\"}\n"
        );
    }

    #[test]
    fn answers_are_read_in_every_version() {
        for version in API_VERSIONS {
            let text = format!(
                r#"{{"apiVersion":"{version}","kind":"CredentialProviderResponse","cacheKeyType":"Global",
                    "cacheDuration":"1m","auth":{{"a.io":{{"username":"u","password":"p"}}}}}}"#
            );
            let Ok(answer) = answer(version, text.as_bytes()) else { panic!("{version}") };
            assert_eq!((answer.scope, answer.duration), (Scope::Global, Some(Duration::from_secs(60))));
            let own = &answer.auth["a.io"];
            assert_eq!((own.username.as_str(), own.password.as_str()), ("u", "p"));
        }
    }

    #[test]
    fn what_is_wrong_with_an_answer_is_told_without_what_it_says() {
        let typed = |kind: &str, rest: &str| format!(r#"{{"apiVersion":"{API_VERSION}","kind":"{kind}"{rest}}}"#);
        let response = |rest: &str| typed("CredentialProviderResponse", rest);
        let form = "error decoding credential provider plugin response from stdout";
        let version = "apiVersion from credential plugin response did not match expected \
                       apiVersion:credentialprovider.kubelet.k8s.io/v1, actual apiVersion:";
        for (text, expected) in [
            (String::new(), form.to_owned()),
            ("[]".to_owned(), form.to_owned()),
            (typed("Status", ""), form.to_owned()),
            ("{}".to_owned(), version.to_owned()),
            (r#"{"apiVersion":"v1","kind":"Status"}"#.to_owned(), format!("{version}v1")),
            (response(r#","cacheKeyType":"Image","token":"secret""#), form.to_owned()),
            (response(r#","cacheKeyType":"Image","cacheKeyType":"Image""#), form.to_owned()),
            (response(r#","cacheKeyType":"Image","auth":{"a.io":"secret"}"#), form.to_owned()),
            (response(r#","cacheKeyType":"Image","cacheDuration":"secret""#), form.to_owned()),
            (response(""), "credential provider plugin did not return a valid cacheKeyType: \"\"".to_owned()),
            (
                response(r#","cacheKeyType":"Pod""#),
                "credential provider plugin did not return a valid cacheKeyType: \"Pod\"".to_owned(),
            ),
        ] {
            let told = answer(API_VERSION, text.as_bytes()).err().map(|error| error.to_string());
            assert_eq!(told, Some(expected), "{text}");
        }
    }
}
