//! The `kubeproxy_*` metrics, with upstream's names, labels and buckets.
//!
//! Deliberately not here: those of the iptables mode.

use std::sync::Arc;
use std::time::Duration;

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability, exponential};

use crate::Family;
use crate::engine::Counts;

const FAMILY: &[&str] = &["ip_family"];
const SYNC_SECONDS: &[f64] = &exponential::<15>(0.001, 2.0);
const PROGRAMMING_SECONDS: &[f64] = &programming_bounds();

/// 0.25, 0.5, each second to 60, every fifth to 120, every thirtieth to 300.
const fn programming_bounds() -> [f64; 80] {
    let mut bounds = [0.0; 80];
    (bounds[0], bounds[1]) = (0.25, 0.5);
    let (mut bound, mut index) = (0.0, 2);
    while index < bounds.len() {
        bound += if bound < 60.0 {
            1.0
        } else if bound < 120.0 {
            5.0
        } else {
            30.0
        };
        bounds[index] = bound;
        index += 1;
    }
    bounds
}

const fn desc(name: &'static str, help: &'static str) -> Desc {
    Desc::new(name, help, Stability::Alpha)
}

const SYNC: Desc =
    desc("kubeproxy_sync_proxy_rules_duration_seconds", "How long syncs took.").labels(FAMILY).buckets(SYNC_SECONDS);
const SYNC_FULL: Desc =
    desc("kubeproxy_sync_full_proxy_rules_duration_seconds", "How long syncs that wrote everything took.")
        .labels(FAMILY)
        .buckets(SYNC_SECONDS);
const SYNC_PARTIAL: Desc =
    desc("kubeproxy_sync_partial_proxy_rules_duration_seconds", "How long syncs that wrote what changed took.")
        .labels(FAMILY)
        .buckets(SYNC_SECONDS);
const PROGRAMMING: Desc = desc(
    "kubeproxy_network_programming_duration_seconds",
    "From the change of a pod or Service until its rules were there.",
)
.labels(FAMILY)
.buckets(PROGRAMMING_SECONDS);
const LAST_SYNC: Desc =
    desc("kubeproxy_sync_proxy_rules_last_timestamp_seconds", "When the last sync succeeded.").labels(FAMILY);
const LAST_QUEUED: Desc =
    desc("kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds", "When a sync was last asked for.").labels(FAMILY);
const ENDPOINTS_PENDING: Desc =
    desc("kubeproxy_sync_proxy_rules_endpoint_changes_pending", "Changes of endpoints that wait for a sync.");
const ENDPOINTS_TOTAL: Desc = desc("kubeproxy_sync_proxy_rules_endpoint_changes_total", "Changes of endpoints.");
const SERVICES_PENDING: Desc =
    desc("kubeproxy_sync_proxy_rules_service_changes_pending", "Changes of Services that wait for a sync.");
const SERVICES_TOTAL: Desc = desc("kubeproxy_sync_proxy_rules_service_changes_total", "Changes of Services.");
const SYNC_FAILURES: Desc =
    desc("kubeproxy_sync_proxy_rules_nftables_sync_failures_total", "Syncs that the kernel refused.").labels(FAMILY);
const CLEANUP_FAILURES: Desc = desc(
    "kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total",
    "Deletions of unused chains that the kernel refused.",
)
.labels(FAMILY);
const RECONCILED: Desc = desc(
    "kubeproxy_conntrack_reconciler_sync_duration_seconds",
    "How long looking for tracked connections that went stale took.",
)
.labels(FAMILY)
.buckets(SYNC_SECONDS);
const FORGOTTEN: Desc = desc(
    "kubeproxy_conntrack_reconciler_deleted_entries_total",
    "Tracked connections that were deleted because they went stale.",
)
.labels(FAMILY);
const NO_LOCAL: Desc = desc(
    "kubeproxy_sync_proxy_rules_no_local_endpoints_total",
    "Service ports whose policy is Local and that have endpoints, but none here.",
)
.labels(&["ip_family", "traffic_policy"]);
const HEALTHZ: Desc = desc("kubeproxy_proxy_healthz_total", "Answers of /healthz, by status code.").labels(&["code"]);
const LIVEZ: Desc = desc("kubeproxy_proxy_livez_total", "Answers of /livez, by status code.").labels(&["code"]);

/// What a change was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// A Service.
    Service,
    /// Its endpoints.
    Endpoints,
}

/// How a sync went.
#[derive(Debug, Clone, Copy)]
pub struct Synced {
    /// Whether it wrote everything.
    pub full: bool,
    /// How long it took.
    pub took: Duration,
    /// Whether the kernel took it.
    pub succeeded: bool,
}

/// Service ports with endpoints of which none is on this node, by the policy that would need one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WithoutLocal {
    /// `internalTrafficPolicy: Local`.
    pub internal: usize,
    /// `externalTrafficPolicy: Local`.
    pub external: usize,
}

/// The families.
pub struct ProxyMetrics {
    sync: Histograms,
    full: Histograms,
    partial: Histograms,
    programming: Histograms,
    last_sync: Gauges,
    last_queued: Gauges,
    pending: [Gauges; 2],
    changes: [Counters; 2],
    sync_failures: Counters,
    cleanup_failures: Counters,
    reconciled: Histograms,
    forgotten: Counters,
    no_local: Gauges,
    healthz: Counters,
    livez: Counters,
}

impl ProxyMetrics {
    /// Registers the families.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Arc<Self> {
        Arc::new(Self {
            sync: metrics.histograms(&SYNC),
            full: metrics.histograms(&SYNC_FULL),
            partial: metrics.histograms(&SYNC_PARTIAL),
            programming: metrics.histograms(&PROGRAMMING),
            last_sync: metrics.gauges(&LAST_SYNC),
            last_queued: metrics.gauges(&LAST_QUEUED),
            pending: [metrics.gauges(&SERVICES_PENDING), metrics.gauges(&ENDPOINTS_PENDING)],
            changes: [metrics.counters(&SERVICES_TOTAL), metrics.counters(&ENDPOINTS_TOTAL)],
            sync_failures: metrics.counters(&SYNC_FAILURES),
            cleanup_failures: metrics.counters(&CLEANUP_FAILURES),
            reconciled: metrics.histograms(&RECONCILED),
            forgotten: metrics.counters(&FORGOTTEN),
            no_local: metrics.gauges(&NO_LOCAL),
            healthz: metrics.counters(&HEALTHZ),
            livez: metrics.counters(&LIVEZ),
        })
    }

    /// A sync is asked for at this wall time.
    pub fn queued(&self, family: Family, changed: Changed, seconds: f64) {
        let place = usize::from(changed == Changed::Endpoints);
        if let (Some(changes), Some(pending)) = (self.changes.get(place), self.pending.get(place)) {
            changes.with(&[]).inc();
            pending.with(&[]).inc();
        }
        self.last_queued.with(&[family.api_name()]).set(seconds);
    }

    /// A sync has ended at this wall time.
    pub fn synced(&self, family: Family, synced: Synced, seconds: f64) {
        let (family, took) = (&[family.api_name()], synced.took.as_secs_f64());
        self.sync.with(family).observe(took);
        if synced.full { &self.full } else { &self.partial }.with(family).observe(took);
        if !synced.succeeded {
            return self.sync_failures.with(family).inc();
        }
        self.last_sync.with(family).set(seconds);
        for pending in &self.pending {
            pending.with(&[]).set(0.0);
        }
    }

    /// What happened beside the rules.
    #[expect(clippy::cast_precision_loss, reason = "failures and connections are not so many")]
    pub fn counted(&self, family: Family, counts: Counts) {
        let family = &[family.api_name()];
        self.cleanup_failures.with(family).inc_by(counts.cleanup_failures as f64);
        if let Some(took) = counts.reconciled {
            self.reconciled.with(family).observe(took.as_secs_f64());
            self.forgotten.with(family).inc_by(counts.forgotten as f64);
        }
    }

    /// The rules of a change are there, so long after it happened.
    pub fn programmed(&self, family: Family, seconds: f64) {
        self.programming.with(&[family.api_name()]).observe(seconds);
    }

    /// How many Service ports want an endpoint here and have none.
    #[expect(clippy::cast_precision_loss, reason = "numbers of Services are small")]
    pub fn without_local(&self, family: Family, count: WithoutLocal) {
        for (policy, count) in [("internal", count.internal), ("external", count.external)] {
            self.no_local.with(&[family.api_name(), policy]).set(count as f64);
        }
    }

    /// A question about health was answered.
    pub fn answered(&self, path: &str, status: http::StatusCode) {
        let family = match path {
            "/healthz" => &self.healthz,
            "/livez" => &self.livez,
            _ => return,
        };
        family.with(&[status.as_str()]).inc();
    }
}

#[cfg(test)]
mod tests {
    use component_base::metrics::MetricsOptions;

    use super::*;

    #[test]
    fn syncs_and_changes_show() {
        let metrics = Metrics::new(MetricsOptions::default());
        let proxy = ProxyMetrics::new(&metrics);
        proxy.queued(Family::V4, Changed::Endpoints, 5.0);
        assert!(metrics.text().contains("kubeproxy_sync_proxy_rules_endpoint_changes_pending 1\n"));
        let synced = Synced { full: true, took: Duration::from_millis(3), succeeded: true };
        proxy.synced(Family::V4, synced, 7.0);
        proxy.synced(Family::V4, Synced { full: false, succeeded: false, ..synced }, 8.0);
        proxy.answered("/healthz", http::StatusCode::OK);
        let reconciled = Some(Duration::from_millis(1));
        proxy.counted(Family::V4, Counts { cleanup_failures: 2, reconciled, forgotten: 3 });
        let text = metrics.text();
        for line in [
            "kubeproxy_sync_proxy_rules_endpoint_changes_pending 0\n",
            "kubeproxy_sync_proxy_rules_endpoint_changes_total 1\n",
            "kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family=\"IPv4\"} 1\n",
            "kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family=\"IPv4\"} 2\n",
            "kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family=\"IPv4\"} 7\n",
            "kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family=\"IPv4\"} 1\n",
            "kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family=\"IPv4\"} 2\n",
            "kubeproxy_conntrack_reconciler_sync_duration_seconds_count{ip_family=\"IPv4\"} 1\n",
            "kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family=\"IPv4\"} 3\n",
            "kubeproxy_proxy_healthz_total{code=\"200\"} 1\n",
        ] {
            assert!(text.contains(line), "{line}\nin\n{text}");
        }
    }

    #[test]
    fn bounds_are_upstreams() {
        assert_eq!(PROGRAMMING_SECONDS[..4], [0.25, 0.5, 1.0, 2.0]);
        assert_eq!(PROGRAMMING_SECONDS[61..64], [60.0, 65.0, 70.0]);
        assert_eq!(PROGRAMMING_SECONDS[73..], [120.0, 150.0, 180.0, 210.0, 240.0, 270.0, 300.0]);
    }
}
