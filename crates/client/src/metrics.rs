//! The `rest_client_*` metrics: what a process asks of API servers, with upstream's names, labels and buckets; and how many
//! events it could not tell, which upstream does not count.

use std::sync::Arc;
use std::time::Duration;

use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability};
use http::{HeaderMap, Method, StatusCode, header};

use crate::exec::PluginMetrics;

const SECONDS: &[f64] = &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
const BYTES: &[f64] =
    &[64.0, 256.0, 512.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0];

const fn desc(name: &'static str, help: &'static str) -> Desc {
    Desc::new(name, help, Stability::Alpha).labels(&["verb", "host"])
}

const DURATION: Desc =
    desc("rest_client_request_duration_seconds", "How long requests took, tries together.").buckets(SECONDS);
const RATE_LIMITED: Desc =
    desc("rest_client_rate_limiter_duration_seconds", "How long requests waited for their turn.").buckets(SECONDS);
const REQUEST_SIZE: Desc = desc("rest_client_request_size_bytes", "The size of requests.").buckets(BYTES);
const RESPONSE_SIZE: Desc = desc("rest_client_response_size_bytes", "The size of responses.").buckets(BYTES);
const REQUESTS: Desc =
    Desc::new("rest_client_requests_total", "Requests, by status code, method and host.", Stability::Alpha)
        .labels(&["code", "method", "host"]);
const RETRIES: Desc = Desc::new(
    "rest_client_request_retries_total",
    "Requests that were sent again, by status code, verb and host.",
    Stability::Alpha,
)
.labels(&["code", "verb", "host"]);

const EVENTS_DROPPED: Desc = Desc::new(
    "event_recorder_dropped_events_total",
    "Events that were not written, by the component that they are from and why: no room to wait, or no answer.",
    Stability::Alpha,
)
.labels(&["component", "cause"]);

/// What stands for the code where there was no answer.
const NO_ANSWER: &str = "<error>";

/// The families, made once for a registry and shared by all clients of the process.
pub struct RequestMetrics {
    duration: Histograms,
    rate_limited: Histograms,
    request_size: Histograms,
    response_size: Histograms,
    requests: Counters,
    retries: Counters,
    events_dropped: Counters,
    plugins: PluginMetrics,
}

impl RequestMetrics {
    /// Registers the families.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Arc<Self> {
        Arc::new(Self {
            duration: metrics.histograms(&DURATION),
            rate_limited: metrics.histograms(&RATE_LIMITED),
            request_size: metrics.histograms(&REQUEST_SIZE),
            response_size: metrics.histograms(&RESPONSE_SIZE),
            requests: metrics.counters(&REQUESTS),
            retries: metrics.counters(&RETRIES),
            events_dropped: metrics.counters(&EVENTS_DROPPED),
            plugins: PluginMetrics::new(metrics),
        })
    }

    /// A request with a body of so many bytes got an answer, or none.
    #[expect(clippy::cast_precision_loss, reason = "sizes of messages are small")]
    pub(crate) fn tried(&self, method: &Method, host: &str, sent: usize, answer: Option<(StatusCode, &HeaderMap)>) {
        let code = code(answer.map(|(status, _)| status));
        self.requests.with(&[&code, method.as_str(), host]).inc();
        let Some((_, headers)) = answer else { return };
        self.request_size.with(&[method.as_str(), host]).observe(sent as f64);
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if let Some(length) = length {
            self.response_size.with(&[method.as_str(), host]).observe(length as f64);
        }
    }

    /// Where credential plugins are counted.
    pub(crate) fn plugins(&self) -> &PluginMetrics {
        &self.plugins
    }

    /// A request is sent again.
    pub(crate) fn retried(&self, method: &Method, host: &str, status: Option<StatusCode>) {
        self.retries.with(&[&code(status), method.as_str(), host]).inc();
    }

    /// An event of a component will not be written.
    pub(crate) fn event_dropped(&self, component: &str, cause: &str) {
        self.events_dropped.with(&[component, cause]).inc();
    }

    /// A request waited for its turn.
    pub(crate) fn waited(&self, method: &Method, host: &str, waited: Duration) {
        self.rate_limited.with(&[method.as_str(), host]).observe(waited.as_secs_f64());
    }

    /// A request has come to its end.
    pub(crate) fn done(&self, method: &Method, host: &str, took: Duration) {
        self.duration.with(&[method.as_str(), host]).observe(took.as_secs_f64());
    }
}

fn code(status: Option<StatusCode>) -> String {
    status.map_or_else(|| NO_ANSWER.to_owned(), |status| status.as_u16().to_string())
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Pod;
    use component_base::metrics::MetricsOptions;

    use super::*;
    use crate::fake::FakeServer;
    use crate::{Client, ClientConfig};

    #[tokio::test(start_paused = true)]
    async fn requests_are_counted_by_what_became_of_them() {
        let metrics = Metrics::new(MetricsOptions::default());
        let server = FakeServer::new();
        let cx = server.client().cx().clone().with_metrics(RequestMetrics::new(&metrics));
        let config = ClientConfig::for_server("https://fake").with_rate(-1.0, 1);
        let client = Client::with_transport(server.transport(), config, cx).unwrap();
        let pods = client.namespaced::<Pod>("ns");
        assert!(pods.get("none").await.is_err());
        let mut pod = Pod::default();
        pod.metadata.name = "p".into();
        client.derive(|config| config).unwrap().namespaced::<Pod>("ns").create(&pod).await.unwrap();
        let text = metrics.text();
        let host = client.transport_host();
        for (code, method) in [("404", "GET"), ("200", "POST")] {
            let line = format!("rest_client_requests_total{{code=\"{code}\",host=\"{host}\",method=\"{method}\"}} 1\n");
            assert!(text.contains(&line), "{line}\nin\n{text}");
        }
        let line = format!("rest_client_request_duration_seconds_count{{host=\"{host}\",verb=\"POST\"}} 1\n");
        assert!(text.contains(&line), "{text}");
    }
}
