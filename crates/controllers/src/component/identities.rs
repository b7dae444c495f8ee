//! The clients of the controllers: one service account each with `--use-service-account-credentials`, else the
//! process's own credentials under different user agents.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_types::authentication_v1::TokenRequest;
use api_types::core_v1::{Namespace, ServiceAccount};
use bytes::Bytes;
use client::{
    CertSource, Client, ClientConfig, ClientError, ConfigError, Credentials, HttpsTransport, Transport, TransportError,
};
use component_base::serving::Body;
use controller::ClientFor;
use http::{HeaderValue, StatusCode, header};
use tokio::sync::Mutex;
use tokio::time::Instant;

const NAMESPACE: &str = "kube-system";
const TOKEN_SECONDS: i64 = 3600;
/// Tokens are renewed after this share of their life.
const RENEW_AFTER: f64 = 0.8;
/// A shorter life counts as this long, so that tokens are not asked for all the time.
const LEAST_LIFE: Duration = Duration::from_secs(600);
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// What the process itself asks for, with its own credentials in any case.
const OF_PROCESS: &[&str] = &["shared-informers", "metadata-informers", "controller-discovery", "tokens-controller"];

/// Makes the clients of a process.
///
/// # Errors
/// When the connection without the process's certificate cannot be configured.
pub(super) fn clients(process: &Client, service_accounts: bool) -> Result<ClientFor, ConfigError> {
    let anonymous = service_accounts.then(|| without_credentials(process)).transpose()?;
    let process = process.clone();
    Ok(Arc::new(move |identity| {
        let (qps, burst) = rate(identity, process.config());
        let Some((transport, config)) = anonymous.as_ref().filter(|_| !OF_PROCESS.contains(&identity)) else {
            return process.derive(|config| config.with_user_agent_suffix(identity).with_rate(qps, burst));
        };
        let tokens = process.derive(|config| config.with_user_agent_suffix("token-requests"))?;
        let transport = ServiceAccountTransport {
            inner: Arc::clone(transport),
            source: Source { client: tokens, name: identity.to_owned(), held: Mutex::default() },
        };
        let agent = format!("system:serviceaccount:{NAMESPACE}:{identity}");
        let config = config.clone().with_user_agent_suffix(&agent).with_rate(qps, burst);
        Client::with_transport(Arc::new(transport), config, process.cx().clone())
    }))
}

/// Some controllers ask for much more than others; the factors are upstream's.
fn rate(identity: &str, config: &ClientConfig) -> (f64, u32) {
    match identity {
        "namespace-controller" => (config.qps * 20.0, config.burst.saturating_mul(100)),
        "generic-garbage-collector" => (config.qps * 2.0, config.burst),
        "controller-discovery" => (20.0, 200),
        _ => (config.qps, config.burst),
    }
}

fn without_credentials(process: &Client) -> Result<(Arc<dyn Transport>, ClientConfig), ConfigError> {
    let mut config = process.config().clone();
    config.identity = CertSource::None;
    config.credentials = Credentials::None;
    let transport: Arc<dyn Transport> = HttpsTransport::of(&config, process.cx())?;
    Ok((transport, config))
}

/// Puts a service account's token on each request.
struct ServiceAccountTransport {
    inner: Arc<dyn Transport>,
    source: Source,
}

#[async_trait::async_trait]
impl Transport for ServiceAccountTransport {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let token = self.source.token(None).await?;
        let response = self.inner.send(with_token(request.clone(), &token)).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let token = self.source.token(Some(&token)).await?;
        self.inner.send(with_token(request, &token)).await
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

fn with_token(mut request: http::Request<Bytes>, token: &str) -> http::Request<Bytes> {
    if let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {token}")) {
        value.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    request
}

/// Where a service account's tokens come from.
struct Source {
    client: Client,
    name: String,
    held: Mutex<Option<Held>>,
}

struct Held {
    token: String,
    renew_at: Instant,
}

impl Source {
    /// A token that is good for a while and is not the refused one. Whoever comes while one is fetched waits for it.
    async fn token(&self, refused: Option<&str>) -> Result<String, TransportError> {
        let mut held = self.held.lock().await;
        let now = self.client.clock().monotonic();
        if let Some(good) = held.as_ref().filter(|held| now < held.renew_at && refused != Some(held.token.as_str())) {
            return Ok(good.token.clone());
        }
        let fetched = self.fetch_patiently().await.map_err(|error| {
            let text = format!("failed to get token for {NAMESPACE}/{}: {error}", self.name);
            TransportError::Broken(text.into())
        })?;
        Ok(held.insert(fetched).token.clone())
    }

    async fn fetch_patiently(&self) -> Result<Held, ClientError> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..TRIES {
            match self.fetch().await {
                Ok(held) => return Ok(held),
                Err(error) => tracing::warn!(%error, name = self.name, "Getting a token failed, trying again"),
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        self.fetch().await
    }

    async fn fetch(&self) -> Result<Held, ClientError> {
        self.ensure_account().await?;
        let mut request = TokenRequest::default();
        request.metadata.name.clone_from(&self.name);
        request.metadata.namespace = NAMESPACE.to_owned();
        request.spec.expiration_seconds = Some(TOKEN_SECONDS);
        let accounts = self.client.namespaced::<ServiceAccount>(NAMESPACE);
        let answer: TokenRequest = accounts.create_subresource(&self.name, "token", &request).await?;
        let now = api_machinery::time::Time::from(self.client.clock().wall());
        let life = answer.status.expiration_timestamp.since(now).max(LEAST_LIFE);
        let renew_at = self.client.clock().monotonic() + life.mul_f64(RENEW_AFTER);
        Ok(Held { token: answer.status.token, renew_at })
    }

    async fn ensure_account(&self) -> Result<(), ClientError> {
        let accounts = self.client.namespaced::<ServiceAccount>(NAMESPACE);
        if accounts.get_opt(&self.name).await?.is_some() {
            return Ok(());
        }
        let metadata = ObjectMeta { name: self.name.clone(), namespace: NAMESPACE.to_owned(), ..ObjectMeta::default() };
        let account = ServiceAccount { metadata, ..ServiceAccount::default() };
        match accounts.create(&account).await {
            Err(error) if error.is_not_found() => {
                let metadata = ObjectMeta { name: NAMESPACE.to_owned(), ..ObjectMeta::default() };
                let namespace = Namespace { metadata, ..Namespace::default() };
                tolerate_existing(self.client.all::<Namespace>().create(&namespace).await)?;
                tolerate_existing(accounts.create(&account).await)
            }
            outcome => tolerate_existing(outcome),
        }
    }
}

fn tolerate_existing<T>(outcome: Result<T, ClientError>) -> Result<(), ClientError> {
    match outcome {
        Err(error) if !error.is_already_exists() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use client::fake::FakeServer;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn accounts_are_made_once() {
        let server = FakeServer::new();
        let source = Source { client: server.client(), name: "job-controller".into(), held: Mutex::default() };
        source.ensure_account().await.unwrap();
        source.ensure_account().await.unwrap();
        assert_eq!(server.objects("v1/serviceaccounts").len(), 1);
    }

    #[test]
    fn rates_differ_by_identity() {
        let config = ClientConfig::for_server("https://x").with_rate(20.0, 30);
        for (identity, expected) in [
            ("namespace-controller", (400.0, 3000)),
            ("generic-garbage-collector", (40.0, 30)),
            ("job-controller", (20.0, 30)),
        ] {
            assert_eq!(rate(identity, &config), expected, "{identity}");
        }
    }
}
