//! What the server counts about requests, with upstream's names. Label values come from the routes, never from clients.

mod admission;
mod admission_webhooks;
pub(crate) mod conversions;
mod identity;
pub(crate) mod resources;
pub(crate) mod services;
pub(crate) mod storage;
pub(crate) mod writes;

use std::sync::Arc;

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability, linear};

pub(crate) use admission::AdmissionMetrics;
use conversions::ConversionMetrics;
use identity::IdentityMetrics;
pub(crate) use identity::decisions;
use services::RepairMetrics;

const SECONDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];
const SLI_SECONDS: &[f64] =
    &[0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0];
const WATCH_LIST_SECONDS: &[f64] =
    &[0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0];
const EVENT_BYTES: &[f64] = &[1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131_072.0];
const BYTES: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

const TOTAL: Desc =
    Desc::new("apiserver_request_total", "Requests, by what they ask for and what they got.", Stability::Stable)
        .labels(&["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code"]);
const DURATION: Desc =
    Desc::new("apiserver_request_duration_seconds", "Time from arrival to the end of the answer.", Stability::Stable)
        .labels(&["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"])
        .buckets(SECONDS);
const SIZES: Desc = Desc::new("apiserver_response_sizes", "Bytes of answers to reads.", Stability::Stable)
    .labels(&["verb", "group", "version", "resource", "subresource", "scope", "component"])
    .buckets(BYTES);
const LONG_RUNNING: Desc =
    Desc::new("apiserver_longrunning_requests", "Requests that last and are running now.", Stability::Stable)
        .labels(&["verb", "group", "version", "resource", "subresource", "scope", "component"]);
const TERMINATIONS: Desc = Desc::new(
    "apiserver_request_terminations_total",
    "Requests that the server refused or cut to protect itself.",
    Stability::Alpha,
)
.labels(&["verb", "group", "version", "resource", "subresource", "scope", "component", "code"]);
const ABORTS: Desc = Desc::new(
    "apiserver_request_aborts_total",
    "Requests whose answer was cut off as it was not taken in time.",
    Stability::Alpha,
)
.labels(&["verb", "group", "version", "resource", "subresource", "scope"]);
const SELF_REQUESTS: Desc =
    Desc::new("apiserver_selfrequest_total", "Requests of the server to itself.", Stability::Alpha).labels(&[
        "verb",
        "group",
        "resource",
        "subresource",
    ]);
const WATCH_EVENTS: Desc = Desc::new("apiserver_watch_events_total", "Events sent to watchers.", Stability::Alpha)
    .labels(&["group", "version", "resource"]);
const DEPRECATED: Desc =
    Desc::new("apiserver_requested_deprecated_apis", "Deprecated APIs that were used.", Stability::Stable).labels(&[
        "group",
        "version",
        "resource",
        "subresource",
        "removed_release",
    ]);
const OBJECTS: Desc = Desc::new("apiserver_resource_objects", "Objects in the store, by resource.", Stability::Alpha)
    .labels(&["group", "resource"]);
const OLD_OBJECTS: Desc =
    Desc::new("apiserver_storage_objects", "Objects in the store, by resource.", Stability::Stable)
        .labels(&["resource"]);
const STORAGE_SIZE: Desc =
    Desc::new("apiserver_storage_size_bytes", "Bytes that the store takes on disk.", Stability::Stable)
        .labels(&["storage_cluster_id"]);
const SLI: Desc = Desc::new(
    "apiserver_request_sli_duration_seconds",
    "Time from arrival to the end of the answer, without what others took.",
    Stability::Alpha,
)
.labels(&["verb", "group", "version", "resource", "subresource", "scope", "component"])
.buckets(SLI_SECONDS);
const WATCH_SIZES: Desc =
    Desc::new("apiserver_watch_events_sizes", "Bytes of events sent to watchers.", Stability::Alpha)
        .labels(&["group", "version", "resource"])
        .buckets(EVENT_BYTES);
const WATCH_LISTS: Desc = Desc::new(
    "apiserver_watch_list_duration_seconds",
    "Time from the beginning of a watch until all objects were sent that were there already.",
    Stability::Beta,
)
.labels(&["group", "version", "resource", "scope"])
.buckets(WATCH_LIST_SECONDS);
const BODY_BYTES: &[f64] = &linear::<31>(50_000.0, 100_000.0);
const BODY_SIZES: Desc =
    Desc::new("apiserver_request_body_size_bytes", "Bytes of the bodies of writes.", Stability::Alpha)
        .labels(&["group", "resource", "verb"])
        .buckets(BODY_BYTES);
const VALIDATED: Desc = Desc::new(
    "field_validation_request_duration_seconds",
    "Time from the arrival of a write to the end of the answer, by what was to become of fields that nobody knows.",
    Stability::Alpha,
)
.labels(&["field_validation"])
.buckets(SLI_SECONDS);
const TRANSLATED: Desc = Desc::new(
    "apiserver_stream_translator_requests_total",
    "Commands over WebSocket that were translated to SPDY, by what came of them.",
    Stability::Alpha,
)
.labels(&["code"]);
const TUNNELLED: Desc = Desc::new(
    "apiserver_stream_tunnel_requests_total",
    "Tunnels of SPDY over WebSocket, by what node agents answered.",
    Stability::Alpha,
)
.labels(&["code"]);
const STREAMING: Desc = Desc::new(
    "apiserver_websocket_streaming_requests_total",
    "Connections to pods, and whether they were translated here or passed on.",
    Stability::Alpha,
)
.labels(&["subresource", "proxy_type"]);
const POD_LOGS: Desc = Desc::new(
    "kube_apiserver_pod_logs_insecure_backend_total",
    "Requests for logs, by whether the node agent's certificate had to be good.",
    Stability::Alpha,
)
.labels(&["usage"]);

const LOG_TLS_FAILURES: Desc = Desc::new(
    "kube_apiserver_pod_logs_backend_tls_failure_total",
    "Requests for logs that failed because the node agent's certificate is not good.",
    Stability::Alpha,
);

const HANDSHAKE_ERRORS: Desc =
    Desc::new("apiserver_tls_handshake_errors_total", "TLS handshakes that failed.", Stability::Alpha);
const REFUSED_CONNECTIONS: Desc = Desc::new(
    "coxswain_apiserver_refused_connections_total",
    "Connections that were closed at once because too many of unknown clients came from their address.",
    Stability::Alpha,
);

/// The families.
pub(crate) struct ApiMetrics {
    pub(crate) registry: Arc<Metrics>,
    pub(crate) slis: Arc<Metrics>,
    pub(crate) total: Counters,
    pub(crate) duration: Histograms,
    pub(crate) sizes: Histograms,
    pub(crate) long_running: Gauges,
    pub(crate) terminations: Counters,
    pub(crate) aborts: Counters,
    pub(crate) self_requests: Counters,
    pub(crate) watch_events: Counters,
    pub(crate) deprecated: Gauges,
    pub(crate) objects: Gauges,
    pub(crate) old_objects: Gauges,
    pub(crate) storage_size: Gauges,
    pub(crate) identity: IdentityMetrics,
    pub(crate) conversions: ConversionMetrics,
    pub(crate) repair: RepairMetrics,
    pub(crate) sli: Histograms,
    pub(crate) watch_sizes: Histograms,
    pub(crate) watch_lists: Histograms,
    pub(crate) body_sizes: Histograms,
    pub(crate) validated: Histograms,
    pub(crate) log_tls_failures: Counters,
    pub(crate) translated: Counters,
    pub(crate) tunnelled: Counters,
    pub(crate) streaming: Counters,
    pub(crate) pod_logs: Counters,
    handshake_errors: Counters,
    refused_connections: Counters,
}

impl ApiMetrics {
    /// What the listener counts.
    pub(crate) fn connections(&self) -> component_base::serving::Counters {
        component_base::serving::Counters {
            handshake_errors: Some(self.handshake_errors.with(&[])),
            refused: Some(self.refused_connections.with(&[])),
        }
    }

    pub(crate) fn new(registry: Arc<Metrics>, slis: Arc<Metrics>) -> Self {
        Self {
            total: registry.counters(&TOTAL),
            duration: registry.histograms(&DURATION),
            sizes: registry.histograms(&SIZES),
            long_running: registry.gauges(&LONG_RUNNING),
            terminations: registry.counters(&TERMINATIONS),
            aborts: registry.counters(&ABORTS),
            self_requests: registry.counters(&SELF_REQUESTS),
            watch_events: registry.counters(&WATCH_EVENTS),
            deprecated: registry.gauges(&DEPRECATED),
            objects: registry.gauges(&OBJECTS),
            old_objects: registry.gauges(&OLD_OBJECTS),
            storage_size: registry.gauges(&STORAGE_SIZE),
            identity: IdentityMetrics::new(&registry),
            conversions: ConversionMetrics::new(&registry),
            repair: RepairMetrics::new(&registry),
            sli: registry.histograms(&SLI),
            watch_sizes: registry.histograms(&WATCH_SIZES),
            watch_lists: registry.histograms(&WATCH_LISTS),
            body_sizes: registry.histograms(&BODY_SIZES),
            validated: registry.histograms(&VALIDATED),
            log_tls_failures: registry.counters(&LOG_TLS_FAILURES),
            translated: registry.counters(&TRANSLATED),
            tunnelled: registry.counters(&TUNNELLED),
            streaming: registry.counters(&STREAMING),
            pod_logs: registry.counters(&POD_LOGS),
            handshake_errors: registry.counters(&HANDSHAKE_ERRORS),
            refused_connections: registry.counters(&REFUSED_CONNECTIONS),
            registry,
            slis,
        }
    }
}
