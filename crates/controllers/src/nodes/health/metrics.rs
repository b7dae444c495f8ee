//! The `node_collector_*` metrics, with upstream's names and buckets. Zones are labelled with their keys.

use std::collections::BTreeSet;
use std::time::Duration;

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability, exponential};
use parking_lot::Mutex;

use super::zones::Count;

const ZONE: &[&str] = &["zone"];
const EVICTIONS: Desc =
    Desc::new("node_collector_evictions_total", "Nodes that were tainted so that their pods leave.", Stability::Stable)
        .labels(ZONE);
const HEALTH: Desc =
    Desc::new("node_collector_zone_health", "How many of a hundred nodes are ready.", Stability::Alpha).labels(ZONE);
const SIZE: Desc = Desc::new("node_collector_zone_size", "How many nodes there are.", Stability::Alpha).labels(ZONE);
const UNHEALTHY: Desc =
    Desc::new("node_collector_unhealthy_nodes_in_zone", "How many nodes are not ready.", Stability::Alpha).labels(ZONE);
const UPDATE_NODE: Desc = Desc::new(
    "node_collector_update_node_health_duration_seconds",
    "How long the look at one node took.",
    Stability::Alpha,
)
.buckets(&exponential::<8>(0.001, 4.0));
const UPDATE_ALL: Desc = Desc::new(
    "node_collector_update_all_nodes_health_duration_seconds",
    "How long the look at all nodes took.",
    Stability::Alpha,
)
.buckets(&exponential::<8>(0.01, 4.0));

/// The families.
pub(super) struct NodeMetrics {
    evictions: Counters,
    health: Gauges,
    size: Gauges,
    unhealthy: Gauges,
    update_node: Histograms,
    update_all: Histograms,
    /// Zones that show; bounded by those there were.
    shown: Mutex<BTreeSet<String>>,
}

impl NodeMetrics {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            evictions: metrics.counters(&EVICTIONS),
            health: metrics.gauges(&HEALTH),
            size: metrics.gauges(&SIZE),
            unhealthy: metrics.gauges(&UNHEALTHY),
            update_node: metrics.histograms(&UPDATE_NODE),
            update_all: metrics.histograms(&UPDATE_ALL),
            shown: Mutex::default(),
        }
    }

    /// A zone is known, whose nodes may be tainted from now on.
    pub(super) fn entered(&self, zone: &str) {
        self.evictions.with(&[zone]).inc_by(0.0);
    }

    /// A node was tainted in its turn.
    pub(super) fn evicted(&self, zone: &str) {
        self.evictions.with(&[zone]).inc();
    }

    /// One node was looked at.
    pub(super) fn looked(&self, took: Duration) {
        self.update_node.with(&[]).observe(took.as_secs_f64());
    }

    /// All nodes were looked at.
    pub(super) fn looked_at_all(&self, took: Duration) {
        self.update_all.with(&[]).observe(took.as_secs_f64());
    }

    /// The nodes of each zone. Zones that have none any more count as healthy.
    pub(super) fn zones<'a>(&self, counts: impl Iterator<Item = (&'a String, &'a Count)>) {
        let mut gone = std::mem::take(&mut *self.shown.lock());
        for (zone, count) in counts {
            gone.remove(zone);
            self.show(zone, *count);
            self.shown.lock().insert(zone.clone());
        }
        for zone in gone {
            self.show(&zone, Count::default());
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "nodes are counted in thousands")]
    fn show(&self, zone: &str, count: Count) {
        let (ready, size) = (count.ready as f64, (count.ready + count.not_ready) as f64);
        self.size.with(&[zone]).set(size);
        self.unhealthy.with(&[zone]).set(count.not_ready as f64);
        self.health.with(&[zone]).set(if size > 0.0 { 100.0 * ready / size } else { 100.0 });
    }
}

#[cfg(test)]
mod tests {
    use component_base::metrics::MetricsOptions;

    use super::*;

    #[test]
    fn zones_show_until_they_are_gone() {
        let metrics = Metrics::new(MetricsOptions::default());
        let nodes = NodeMetrics::new(&metrics);
        let (zone, count) = ("a".to_owned(), Count { ready: 3, not_ready: 1 });
        nodes.zones([(&zone, &count)].into_iter());
        let shows = |line: &str| metrics.text().contains(line);
        assert!(
            shows("node_collector_zone_health{zone=\"a\"} 75\n") && shows("node_collector_zone_size{zone=\"a\"} 4\n")
        );
        nodes.zones(std::iter::empty());
        assert!(
            shows("node_collector_zone_health{zone=\"a\"} 100\n") && shows("node_collector_zone_size{zone=\"a\"} 0\n")
        );
    }
}
