//! What is counted of peers.

use component_base::metrics::{Counters, Desc, Metrics, Stability};
use http::StatusCode;

use crate::request::RequestInfo;

const REROUTED: Desc = Desc::new(
    "apiserver_rerouted_request_total",
    "Requests that were passed on to another API server of the cluster, by its answer.",
    Stability::Alpha,
)
.labels(&["code", "group", "version", "resource"]);
const ERRORS: Desc = Desc::new(
    "apiserver_peer_proxy_errors_total",
    "Requests that could not be passed on to another API server of the cluster, by what failed.",
    Stability::Alpha,
)
.labels(&["type", "group", "version", "resource"]);
const SYNC_ERRORS: Desc = Desc::new(
    "apiserver_peer_discovery_sync_errors_total",
    "Times that it could not be found out what other API servers of the cluster serve, by what failed.",
    Stability::Alpha,
)
.labels(&["type"]);
const HITS: Desc = Desc::new(
    "aggregator_discovery_peer_aggregated_cache_hits_total",
    "Requests for the discovery of all servers that were answered with the former document.",
    Stability::Alpha,
);
const MISSES: Desc = Desc::new(
    "aggregator_discovery_peer_aggregated_cache_misses_total",
    "Requests for the discovery of all servers for which the document was made.",
    Stability::Alpha,
);
const NO_PEER: Desc = Desc::new(
    "aggregator_discovery_nopeer_requests_total",
    "Requests for the discovery of this server alone.",
    Stability::Alpha,
);

/// The families.
pub(super) struct PeerMetrics {
    rerouted: Counters,
    errors: Counters,
    pub(super) sync_errors: Counters,
    pub(super) hits: Counters,
    pub(super) misses: Counters,
    pub(super) no_peer: Counters,
}

impl PeerMetrics {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            rerouted: metrics.counters(&REROUTED),
            errors: metrics.counters(&ERRORS),
            sync_errors: metrics.counters(&SYNC_ERRORS),
            hits: metrics.counters(&HITS),
            misses: metrics.counters(&MISSES),
            no_peer: metrics.counters(&NO_PEER),
        }
    }

    /// An answer to a request that was passed on.
    pub(super) fn note_rerouted(&self, code: StatusCode, info: &RequestInfo) {
        self.rerouted.with(&[code.as_str(), &info.group, &info.version, &info.resource]).inc();
    }

    /// An answer to this server itself, which asked what the other serves.
    pub(super) fn note_asked(&self, code: StatusCode) {
        self.rerouted.with(&[code.as_str(), "", "", ""]).inc();
    }

    /// A request that could not be passed on.
    pub(super) fn note_error(&self, kind: &'static str, info: &RequestInfo) {
        self.errors.with(&[kind, &info.group, &info.version, &info.resource]).inc();
    }
}
