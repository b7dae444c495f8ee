//! What the proxy serves of itself: whether it keeps up, to load balancers and probes; and at an address of its own, for people
//! and Prometheus, its metrics, settings and faults. Upstream serves both in the clear and asks nobody who he is.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::json::DecodeError;
use component_base::Lifecycle;
use component_base::debugging::{Contention, Debugging};
use component_base::flags::Options;
use component_base::health::Health as Checks;
use component_base::metrics::Metrics;
use component_base::serving::{ListenError, PortSharing, Request, Response, Security, Server, bind, handler_fn, text};
use component_base::zpages::Zpages;
use http::{HeaderValue, Method, StatusCode, header};

use crate::config_file;
use crate::health::Health;
use crate::metrics::ProxyMetrics;
use crate::options::Settings;
use crate::run::NAME;

/// How soon an address that is taken is tried again, as upstream.
const BIND_RETRY: Duration = Duration::from_secs(5);

/// What is shown of the process at the address for metrics.
pub(crate) struct Pages {
    metrics: Arc<Metrics>,
    slis: Arc<Metrics>,
    /// That the process is there at all.
    checks: Arc<Checks>,
    /// The configuration, as JSON.
    config: String,
    mode: &'static str,
    zpages: Zpages,
    /// `/debug`, with `--profiling`.
    debugging: Option<Debugging>,
}

/// An address that is to be listened at is taken, and that is to end the process.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// The one for health.
    #[error("healthz server failed: failed to start proxy healthz on {0}: {1}")]
    Health(SocketAddr, ListenError),
    /// The one for metrics.
    #[error("starting metrics server failed: listen {0}: {1}")]
    Metrics(SocketAddr, ListenError),
}

impl ServeError {
    /// The reason of the event that tells of it.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Health(..) => "FailedToStartProxierHealthcheck",
            Self::Metrics(..) => "FailedToStartMetricServer",
        }
    }
}

impl Pages {
    /// The pages of the process with its metrics, of which the second are those of health checks.
    ///
    /// # Errors
    /// Never for flags of the proxy's own table.
    pub(crate) fn new(
        options: &Options,
        mode: &'static str,
        (metrics, slis): (&Arc<Metrics>, Arc<Metrics>),
        lifecycle: &Lifecycle,
    ) -> Result<Arc<Self>, DecodeError> {
        Ok(Arc::new(Self {
            metrics: Arc::clone(metrics),
            checks: Checks::new(&slis, Duration::ZERO),
            slis,
            config: config_file::shown(options)?.to_string(),
            mode,
            zpages: Zpages::new(NAME, lifecycle, &["/configz", "/healthz", "/metrics", "/proxyMode"]),
            debugging: options.bool("profiling").then(|| Debugging::new(lifecycle, Contention::Untold)),
        }))
    }

    /// The metrics of the process.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Serves health and metrics, each on its own port.
    ///
    /// # Errors
    /// When an address is taken, and that is to end the process.
    pub(crate) fn serve(
        self: &Arc<Self>,
        settings: &Settings,
        health: &Arc<Health>,
        own: &Arc<ProxyMetrics>,
        lifecycle: &Lifecycle,
    ) -> Result<(), ServeError> {
        let (health, counted) = (Arc::clone(health), Arc::clone(own));
        if let Some(address) = settings.healthz {
            let listening = listen(settings, address, lifecycle, move |request: Request| {
                let answer = health.answer(request.uri().path());
                if let Some(answer) = &answer {
                    counted.answered(request.uri().path(), answer.status());
                }
                async move { answer.unwrap_or_else(not_found) }
            });
            listening.map_err(|error| ServeError::Health(address, error))?;
        }
        let Some(address) = settings.metrics else { return Ok(()) };
        let pages = Arc::clone(self);
        let listening = listen(settings, address, lifecycle, move |request: Request| {
            let pages = Arc::clone(&pages);
            async move { pages.answer(request).await }
        });
        listening.map_err(|error| ServeError::Metrics(address, error))
    }

    async fn answer(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        match (parts.uri.path(), &parts.method) {
            ("/metrics/slis", &Method::DELETE) => {
                self.slis.reset();
                text(StatusCode::OK, "metrics reset\n")
            }
            ("/metrics/slis", _) => self.slis.answer_to(&parts.headers),
            ("/metrics", _) => self.metrics.answer_to(&parts.headers),
            ("/proxyMode", _) => text(StatusCode::OK, self.mode),
            ("/configz", _) => json(&self.config),
            (path, _) if path == "/healthz" || path.starts_with("/healthz/") => {
                self.checks.answer(path, parts.uri.query()).await.unwrap_or_else(not_found)
            }
            (path, method) => match &self.debugging {
                Some(debugging) if Debugging::serves(path) => debugging.answer(path, method, body).await,
                _ => self.zpages.answer(path, &parts.headers).unwrap_or_else(not_found),
            },
        }
    }
}

fn json(document: &str) -> Response {
    let mut response = text(StatusCode::OK, document.to_owned());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// Listens at an address. One that is taken is tried again later, unless that is to end the process.
fn listen<F, A>(settings: &Settings, address: SocketAddr, lifecycle: &Lifecycle, handler: F) -> Result<(), ListenError>
where
    F: Fn(Request) -> A + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    let server = Server::new(Arc::new(handler_fn(handler)), Security::Plain);
    match bind(address, PortSharing::Exclusive) {
        Ok(listener) => {
            let spawned = server.spawn(lifecycle.tasks(), listener);
            spawned.map_err(|source| ListenError { address, source })?;
        }
        Err(error) if settings.hard_bind => return Err(error),
        Err(error) => {
            tracing::error!(%error, %address, "Listening failed, trying again");
            let tasks = lifecycle.tasks().clone();
            lifecycle.tasks().spawn_cancellable("listen", async move {
                loop {
                    tokio::time::sleep(BIND_RETRY).await;
                    let Ok(listener) = bind(address, PortSharing::Exclusive) else { continue };
                    if let Err(error) = server.spawn(&tasks, listener) {
                        tracing::error!(%error, %address, "Serving failed");
                    }
                    return;
                }
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use base::{Rng, TokioClock};
    use component_base::flags;
    use component_base::metrics::MetricsOptions;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::options::FLAGS;

    /// A process with these flags, and whether it serves.
    fn served(arguments: &[String]) -> (Lifecycle, Result<(), ServeError>) {
        let options = flags::parse(FLAGS, arguments.iter().cloned()).unwrap();
        let settings = Settings::from_options(&options, "host").unwrap();
        let lifecycle = Lifecycle::new("kube-proxy", TokioClock::shared(), Rng::seeded(1));
        let metrics = || Metrics::new(MetricsOptions::default());
        let own = ProxyMetrics::new(&metrics());
        let pages = Pages::new(&options, "nftables", (&metrics(), metrics()), &lifecycle).unwrap();
        let health = Health::new(lifecycle.clock().clone(), Duration::from_secs(60));
        let outcome = pages.serve(&settings, &health, &own, &lifecycle);
        (lifecycle, outcome)
    }

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn pages_are_where_upstream_has_them() {
        for (profiling, debugging) in [(true, "200"), (false, "404")] {
            // A port that was free a moment ago.
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let given = [
                "--healthz-port=0".to_owned(),
                format!("--metrics-bind-address={free}"),
                format!("--profiling={profiling}"),
            ];
            let (lifecycle, outcome) = served(&given);
            outcome.unwrap();
            for (request, status, content) in [
                ("GET /proxyMode", "200", "nftables"),
                ("GET /healthz", "200", "ok"),
                ("GET /healthz/ping", "200", "ok"),
                ("GET /metrics/slis", "200", "kubernetes_healthcheck{name=\"ping\",type=\"healthz\"} 1"),
                ("DELETE /metrics/slis", "200", "metrics reset\n"),
                ("GET /configz", "200", "kubeproxy.config.k8s.io"),
                ("GET /debug/pprof/", debugging, ""),
                ("GET /debug/flags/", debugging, ""),
                ("GET /livez", "404", "404 page not found"),
                ("GET /else", "404", "404 page not found"),
            ] {
                let answer = ask(free, request).await;
                let head = format!("HTTP/1.1 {status} ");
                assert!(answer.starts_with(&head) && answer.contains(content), "{request} {profiling}: {answer}");
            }
            assert!(!ask(free, "GET /metrics/slis").await.contains("ping"), "they were forgotten");
            lifecycle.tasks().shutdown(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test]
    async fn a_taken_address_ends_the_process_where_that_is_asked_for() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        for (other_off, flag, reason) in [
            ("--metrics-port=0", "--healthz-bind-address", "FailedToStartProxierHealthcheck"),
            ("--healthz-port=0", "--metrics-bind-address", "FailedToStartMetricServer"),
        ] {
            for is_hard in [true, false] {
                let hard = format!("--bind-address-hard-fail={is_hard}");
                let (lifecycle, outcome) = served(&[other_off.to_owned(), hard, format!("{flag}={address}")]);
                let told = outcome.as_ref().err().map(ServeError::reason);
                assert_eq!(told, is_hard.then_some(reason), "{flag} {is_hard}: {outcome:?}");
                lifecycle.tasks().shutdown(Duration::from_secs(1)).await;
            }
        }
    }
}
