//! What connections through proxies tell of themselves, with upstream's names.

use std::io;

use base::{Connecting, Connection, Connector};
use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability};
use tokio::time::Instant;

const STARTED: Desc = Desc::new(
    "apiserver_egress_dialer_dial_start_total",
    "Connections through a proxy that were begun.",
    Stability::Alpha,
)
.labels(&["protocol", "transport"]);
const DURATION: Desc = Desc::new(
    "apiserver_egress_dialer_dial_duration_seconds",
    "How long connecting through a proxy took.",
    Stability::Alpha,
)
.labels(&["protocol", "transport"])
.buckets(&[0.005, 0.025, 0.1, 0.5, 2.5, 12.5]);
const FAILED: Desc = Desc::new(
    "apiserver_egress_dialer_dial_failure_count",
    "Connections through a proxy that failed, by how far they came.",
    Stability::Alpha,
)
.labels(&["protocol", "transport", "stage"]);

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Labels {
    protocol: &'static str,
    transport: &'static str,
}

impl Labels {
    pub(crate) const CONNECT_TCP: Self = Self { protocol: "http_connect", transport: "tcp" };
    pub(crate) const CONNECT_UDS: Self = Self { protocol: "http_connect", transport: "uds" };
    pub(crate) const GRPC_UDS: Self = Self { protocol: "grpc", transport: "uds" };
}

/// How far a connection came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not to the proxy.
    Connect,
    /// To the proxy, and not further.
    Proxy,
}

/// A connection that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) stage: Stage,
    pub(crate) error: io::Error,
}

impl Failed {
    /// It did not come to the proxy.
    pub(crate) fn connecting(error: io::Error) -> Self {
        Self { stage: Stage::Connect, error }
    }

    /// It came no further than to the proxy.
    pub(crate) fn proxying(text: impl Into<String>) -> Self {
        Self { stage: Stage::Proxy, error: io::Error::other(text.into()) }
    }
}

/// Connects through a proxy.
pub(crate) trait Through: std::fmt::Debug + Send + Sync + 'static {
    /// A connection to `address`, `host:port`.
    fn through(&self, address: String) -> impl Future<Output = Result<Connection, Failed>> + Send;
}

/// The families.
#[derive(Clone)]
pub(crate) struct EgressMetrics {
    started: Counters,
    duration: Histograms,
    failed: Counters,
}

impl EgressMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            started: metrics.counters(&STARTED),
            duration: metrics.histograms(&DURATION),
            failed: metrics.counters(&FAILED),
        }
    }

    pub(crate) fn of(&self, labels: Labels) -> Counted {
        Counted { metrics: self.clone(), labels }
    }
}

/// Where the connections through one proxy are counted.
pub(crate) struct Counted {
    metrics: EgressMetrics,
    labels: Labels,
}

/// A connector whose connections are counted.
pub(crate) struct Measured<T> {
    inner: T,
    counted: Counted,
}

impl<T> Measured<T> {
    pub(crate) fn new(inner: T, counted: Counted) -> Self {
        Self { inner, counted }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Measured<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(formatter)
    }
}

impl<T: Through> Connector for Measured<T> {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let (began, Counted { metrics, labels }) = (Instant::now(), &self.counted);
            metrics.started.with(&[labels.protocol, labels.transport]).inc();
            match self.inner.through(base::host_and_port(host, port)).await {
                Ok(connection) => {
                    let duration = metrics.duration.with(&[labels.protocol, labels.transport]);
                    duration.observe(began.elapsed().as_secs_f64());
                    Ok(connection)
                }
                Err(Failed { stage, error }) => {
                    let stage = if stage == Stage::Connect { "connect" } else { "proxy" };
                    metrics.failed.with(&[labels.protocol, labels.transport, stage]).inc();
                    Err(error)
                }
            }
        })
    }

    fn is_direct(&self) -> bool {
        false
    }
}
