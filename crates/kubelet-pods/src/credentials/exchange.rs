//! What a program is asked on its standard input, and answers on its standard output.

use std::collections::BTreeMap;
use std::time::Duration;

use api_machinery::time::GoDuration;
use node_api::cri::v1::AuthConfig;
use serde_json::{Value, json};

/// A version of the exchange; all say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiVersion {
    V1,
    V1beta1,
    V1alpha1,
}

impl ApiVersion {
    pub(super) const ALL: [Self; 3] = [Self::V1, Self::V1beta1, Self::V1alpha1];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1 => "credentialprovider.kubelet.k8s.io/v1",
            Self::V1beta1 => "credentialprovider.kubelet.k8s.io/v1beta1",
            Self::V1alpha1 => "credentialprovider.kubelet.k8s.io/v1alpha1",
        }
    }

    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }
}

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
    #[error("error decoding credential provider plugin response from stdout: it is no CredentialProviderResponse")]
    Form,
    #[error(
        "apiVersion from credential plugin response did not match expected apiVersion:{expected}, actual apiVersion:{actual}"
    )]
    Version { expected: &'static str, actual: String },
    #[error("credential provider plugin did not return a valid cacheKeyType: {0:?}")]
    Scope(String),
    #[error("cacheDuration of the credential provider plugin response is invalid")]
    Duration,
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

pub(super) fn request(version: ApiVersion, image: &str, account: Option<&Account>) -> String {
    let mut request = json!({"kind": "CredentialProviderRequest", "apiVersion": version.name(), "image": image});
    if let Some(account) = account {
        request["serviceAccountToken"] = account.token.clone().into();
        if !account.annotations.is_empty() {
            request["serviceAccountAnnotations"] = json!(account.annotations);
        }
    }
    request.to_string()
}

pub(super) fn answer(version: ApiVersion, stdout: &[u8]) -> Result<Answer, AnswerError> {
    let document: Value = serde_json::from_slice(stdout).map_err(|_| AnswerError::Form)?;
    let text = |name: &str| document[name].as_str().unwrap_or_default();
    if text("kind") != "CredentialProviderResponse" {
        return Err(AnswerError::Form);
    }
    if text("apiVersion") != version.name() {
        return Err(AnswerError::Version { expected: version.name(), actual: text("apiVersion").to_owned() });
    }
    let scope = match text("cacheKeyType") {
        "Image" => Scope::Image,
        "Registry" => Scope::Registry,
        "Global" => Scope::Global,
        other => return Err(AnswerError::Scope(other.to_owned())),
    };
    let duration = match &document["cacheDuration"] {
        Value::Null => None,
        Value::String(text) => Some(GoDuration::parse(text).map_err(|_| AnswerError::Duration)?.to_std()),
        _ => return Err(AnswerError::Duration),
    };
    let auth = document["auth"].as_object().into_iter().flatten();
    let auth = auth.map(|(pattern, auth)| {
        let text = |name: &str| auth[name].as_str().unwrap_or_default().to_owned();
        let auth = AuthConfig { username: text("username"), password: text("password"), ..AuthConfig::default() };
        (pattern.clone(), auth)
    });
    Ok(Answer { scope, duration, auth: auth.collect() })
}
