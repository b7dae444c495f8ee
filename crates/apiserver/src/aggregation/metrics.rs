//! What is measured of other servers. Labels are names of APIServices, which only administrators make.

use std::io;

use component_base::metrics::{Counters, Desc, Gauges, Metrics, Stability};

use super::known::Change;
use crate::outdated_certificates::OutdatedCertificates;

const UNAVAILABLE: Desc = Desc::new(
    "aggregator_unavailable_apiservice",
    "Whether the server of an APIService cannot be asked.",
    Stability::Alpha,
)
.labels(&["name"]);
const WENT_AWAY: Desc = Desc::new(
    "aggregator_unavailable_apiservice_total",
    "How often the server of an APIService stopped being available, by why.",
    Stability::Alpha,
)
.labels(&["name", "reason"]);
const DISCOVERIES: Desc = Desc::new(
    "aggregator_discovery_aggregation_count_total",
    "How often the documents of discovery were made anew.",
    Stability::Alpha,
);
const DESCRIPTIONS: Desc = Desc::new(
    "aggregator_openapi_v2_regeneration_count",
    "How often what a server says for the OpenAPI document of version 2 changed, by how.",
    Stability::Alpha,
)
.labels(&["apiservice", "reason"]);
const WITHOUT_NAMES: Desc = Desc::new(
    "apiserver_kube_aggregator_x509_missing_san_total",
    "Certificates of other servers that were refused because they have no names beside the subject's.",
    Stability::Alpha,
);
const SHA1: Desc = Desc::new(
    "apiserver_kube_aggregator_x509_insecure_sha1_total",
    "Certificates of other servers that were refused because they are signed over SHA-1.",
    Stability::Alpha,
);

/// The families.
pub(super) struct AggregationMetrics {
    unavailable: Gauges,
    went_away: Counters,
    discoveries: Counters,
    descriptions: Counters,
    certificates: OutdatedCertificates,
}

impl AggregationMetrics {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            unavailable: metrics.gauges(&UNAVAILABLE),
            went_away: metrics.counters(&WENT_AWAY),
            discoveries: metrics.counters(&DISCOVERIES),
            descriptions: metrics.counters(&DESCRIPTIONS),
            certificates: OutdatedCertificates::new(metrics, &WITHOUT_NAMES, &SHA1),
        }
    }

    /// A server was found to be available, or not, for a reason.
    pub(super) fn note(&self, name: &str, was_available: bool, found: Result<(), &str>) {
        self.unavailable.with(&[name]).set(if found.is_ok() { 0.0 } else { 1.0 });
        if let Err(reason) = found
            && was_available
        {
            self.went_away.with(&[name, reason]).inc();
        }
    }

    /// There is no such APIService any more.
    pub(super) fn forget(&self, name: &str) {
        self.unavailable.remove(&[name]);
    }

    /// A connection failed.
    pub(super) fn note_failure(&self, error: &io::Error) {
        self.certificates.note_failure(error);
    }

    pub(super) fn note_discovery(&self) {
        self.discoveries.with(&[]).inc();
    }

    pub(super) fn note_description(&self, name: &str, change: Change) {
        self.descriptions.with(&[name, change.name()]).inc();
    }
}
