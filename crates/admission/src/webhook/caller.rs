//! Who brings a question to a webhook.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::ImageReviewer;

/// Where a webhook is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// At a URL.
    Url(String),
    /// It is a service.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
        /// The path that is asked.
        path: String,
    },
}

/// The port of a service where a configuration names none.
const DEFAULT_PORT: u16 = 443;

impl Address {
    /// A service as configurations name it; validation has seen to the port.
    #[must_use]
    pub fn of_service(namespace: &str, name: &str, port: Option<i32>, path: Option<&str>) -> Self {
        Self::Service {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            port: port.and_then(|port| u16::try_from(port).ok()).unwrap_or(DEFAULT_PORT),
            path: path.unwrap_or_default().to_owned(),
        }
    }
}

/// A webhook as it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Where it is.
    pub address: Address,
    /// Whose certificates are trusted, in PEM form; the machine's authorities where it is empty.
    pub ca_bundle: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The webhook cannot be reached as it is configured.
    #[error("could not get REST client: {0}")]
    Client(String),
    /// It could not be reached, or gave no good answer.
    #[error("failed to call webhook: {text}")]
    Call {
        /// What happened.
        text: String,
        /// The code of an answer that was a failure.
        code: Option<u16>,
    },
}

impl CallError {
    /// The code that metrics have.
    pub(super) fn code(&self) -> u16 {
        match self {
            Self::Call { code: Some(code), .. } => *code,
            _ => 503,
        }
    }
}

/// Brings questions to webhooks.
#[async_trait]
pub trait Caller: Send + Sync {
    /// Asks by a POST of JSON within a time; gives the body of the answer, which is of a bounded size.
    async fn call(&self, target: &Target, question: Bytes, limit: Duration) -> Result<Bytes, CallError>;
}

/// Who brings the questions of each plugin: they may have credentials of their own.
#[derive(Clone)]
pub struct Callers {
    /// Of `MutatingAdmissionWebhook`.
    pub mutating: Arc<dyn Caller>,
    /// Of `ValidatingAdmissionWebhook`.
    pub validating: Arc<dyn Caller>,
    /// Whom `ImagePolicyWebhook` asks, where it is configured.
    pub images: Option<Arc<dyn ImageReviewer>>,
}

impl Callers {
    /// Nobody is reached.
    #[must_use]
    pub fn none() -> Self {
        Self { mutating: Arc::new(NoCaller), validating: Arc::new(NoCaller), images: None }
    }
}

/// Reaches nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCaller;

#[async_trait]
impl Caller for NoCaller {
    async fn call(&self, _: &Target, _: Bytes, _: Duration) -> Result<Bytes, CallError> {
        Err(CallError::Client("there is no network".to_owned()))
    }
}
