//! A service that is asked by a POST to one address: webhooks of authorization, authentication and audit, whose
//! address and credentials a kubeconfig file states.

use std::path::Path;
use std::time::Duration;

use base::Backoff;
use bytes::Bytes;
use http::Method;

use crate::client::Client;
use crate::config::{ClientConfig, ConfigError};
use crate::cx::ClientCx;
use crate::error::ClientError;
use crate::request::{JSON, Request};

/// How long a question may take unless its configuration says otherwise, as upstream.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a question is put at most, as upstream.
const TRIES: usize = 5;
const FACTOR: f64 = 1.5;
const JITTER: f64 = 0.2;
/// No wait grows beyond this; of five tries from 500 ms none does.
const LAST_DELAY: Duration = Duration::from_secs(120);

/// Which failures are worth another try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookRetry {
    /// Broken connections, 429, 500 and 504, and whatever says when to come again.
    Passing,
    /// All.
    Any,
}

impl WebhookRetry {
    fn covers(self, error: &ClientError) -> bool {
        match self {
            Self::Any => true,
            Self::Passing => match error {
                ClientError::Transport { source, .. } => source.is_connection_lost() || source.is_timeout(),
                ClientError::Api(answer) => matches!(answer.code, 429 | 500 | 504) || error.retry_after().is_some(),
                _ => false,
            },
        }
    }
}

/// One service.
#[derive(Clone)]
pub struct Webhook {
    client: Client,
    path: &'static str,
    first_delay: Duration,
    retry: WebhookRetry,
}

impl Webhook {
    /// The service that the current context of a file names. `timeout` bounds one try; `first_delay` is the first
    /// wait between two.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub fn new(
        config: ClientConfig,
        timeout: Option<Duration>,
        first_delay: Duration,
        retry: WebhookRetry,
        cx: ClientCx,
    ) -> Result<Self, ConfigError> {
        let config = config.with_rate(-1.0, 0).with_timeout(timeout.unwrap_or(DEFAULT_TIMEOUT));
        // What the file says of the path is put in front of this one.
        let path = if config.endpoint()?.prefix.is_empty() { "/" } else { "" };
        Ok(Self { client: Client::new(config, cx)?, path, first_delay, retry })
    }

    /// What a kubeconfig file says of a service, for a component of this name.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn config(file: &Path, component: &str) -> Result<ClientConfig, ConfigError> {
        Ok(ClientConfig::from_kubeconfig_file(file)?.with_component(component))
    }

    /// Puts a question in JSON, and again where that failed in a way that is worth it; gives the answer's body.
    /// `tried` is told of each try, and how long it took.
    ///
    /// # Errors
    /// Those of the last try.
    pub async fn ask(
        &self,
        question: Bytes,
        tried: impl Fn(Result<(), &ClientError>, Duration) + Send + Sync,
    ) -> Result<Bytes, ClientError> {
        let mut pause = Backoff::new(self.first_delay, FACTOR, LAST_DELAY, JITTER);
        let mut left = TRIES;
        loop {
            left -= 1;
            let began = self.client.clock().monotonic();
            let request =
                Request::new(Method::POST, self.path).accept("application/json, */*").body(JSON, question.clone());
            let outcome = self.client.send(request).await;
            tried(outcome.as_ref().map(|_| ()), self.client.clock().monotonic() - began);
            match outcome {
                Ok(answer) => return Ok(answer.body),
                Err(error) if left == 0 || !self.retry.covers(&error) => return Err(error),
                Err(error) => tracing::debug!(%error, "A webhook is asked again"),
            }
            tokio::time::sleep(pause.step(self.client.rng())).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use async_trait::async_trait;
    use base::{Rng, TaskGroup, TokioClock};
    use component_base::serving;

    use super::*;
    use crate::transport::{Body, Transport, TransportError};

    /// Answers everything with one code, or breaks the connection.
    struct Answers(u16, AtomicUsize);

    #[async_trait]
    impl Transport for Answers {
        fn server(&self) -> &str {
            "https://webhook"
        }
        async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
            self.1.fetch_add(1, SeqCst);
            assert_eq!(request.uri().to_string(), "/authorize?timeout=30s");
            match self.0 {
                0 => Err(TransportError::Broken("reset".into())),
                1 => Err(TransportError::Dial {
                    address: "webhook".to_owned(),
                    source: std::io::ErrorKind::ConnectionRefused.into(),
                }),
                code => {
                    let mut response = http::Response::new(serving::full("{}"));
                    *response.status_mut() = http::StatusCode::from_u16(code).expect("a code");
                    Ok(response)
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_may_pass_is_tried_again() {
        for (code, retry, tries) in [
            (200, WebhookRetry::Passing, 1),
            (0, WebhookRetry::Passing, TRIES),
            (1, WebhookRetry::Passing, 1),
            (500, WebhookRetry::Passing, TRIES),
            (504, WebhookRetry::Passing, TRIES),
            (429, WebhookRetry::Passing, TRIES),
            (503, WebhookRetry::Passing, 1),
            (403, WebhookRetry::Passing, 1),
            (403, WebhookRetry::Any, TRIES),
            (1, WebhookRetry::Any, TRIES),
        ] {
            let transport = Arc::new(Answers(code, AtomicUsize::new(0)));
            let cx = ClientCx::new(TokioClock::shared(), Rng::seeded(1), TaskGroup::new("test"));
            let config =
                ClientConfig::for_server("https://webhook/authorize").with_rate(-1.0, 0).with_timeout(DEFAULT_TIMEOUT);
            let client = Client::with_transport(Arc::clone(&transport) as _, config, cx).expect("a client");
            let webhook = Webhook { client, path: "", first_delay: Duration::from_millis(500), retry };
            let told = AtomicUsize::new(0);
            let outcome = webhook
                .ask(Bytes::new(), |_, _| {
                    told.fetch_add(1, SeqCst);
                })
                .await;
            assert_eq!(outcome.is_ok(), code == 200, "{code}");
            assert_eq!((transport.1.load(SeqCst), told.load(SeqCst)), (tries, tries), "{code}");
        }
    }
}
