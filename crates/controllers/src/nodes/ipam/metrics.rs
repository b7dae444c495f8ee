//! The `node_ipam_controller_*` metrics, with upstream's names (one is misspelt there) and buckets. Sets are labelled
//! with their cluster ranges.

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability};

use super::cidr::Cidr;

const CLUSTER: &[&str] = &["clusterCIDR"];
const ALLOCATIONS: Desc = Desc::new(
    "node_ipam_controller_cidrset_cidrs_allocations_total",
    "Blocks that were given away or found taken.",
    Stability::Alpha,
)
.labels(CLUSTER);
const RELEASES: Desc =
    Desc::new("node_ipam_controller_cidrset_cidrs_releases_total", "Blocks that became free again.", Stability::Alpha)
        .labels(CLUSTER);
const MOST: Desc =
    Desc::new("node_ipam_controller_cirdset_max_cidrs", "Blocks of the range.", Stability::Alpha).labels(CLUSTER);
const USAGE: Desc =
    Desc::new("node_ipam_controller_cidrset_usage_cidrs", "The share of blocks that are taken.", Stability::Alpha)
        .labels(CLUSTER);
const TRIES: Desc = Desc::new(
    "node_ipam_controller_cidrset_allocation_tries_per_request",
    "Taken blocks that were passed over before a free one.",
    Stability::Alpha,
)
.labels(CLUSTER)
.buckets(&[1.0, 5.0, 25.0, 125.0, 625.0]);

const RUNNING: Desc =
    Desc::new("running_managed_controllers", "Controllers that run, by who runs them.", Stability::Beta)
        .labels(&["manager", "name"]);

/// The controller runs; upstream tells so of few others.
pub(super) fn started(metrics: &Metrics) {
    metrics.gauges(&RUNNING).with(&["kube-controller-manager", "nodeipam"]).set(1.0);
}

/// What is shown of one set.
pub(super) struct SetMetrics {
    cluster: String,
    allocations: Counters,
    releases: Counters,
    most: Gauges,
    usage: Gauges,
    tries: Histograms,
}

#[expect(clippy::cast_precision_loss, reason = "a set has at most some millions of blocks")]
impl SetMetrics {
    pub(super) fn new(metrics: &Metrics, cluster: &Cidr) -> Self {
        Self {
            cluster: cluster.to_string(),
            allocations: metrics.counters(&ALLOCATIONS),
            releases: metrics.counters(&RELEASES),
            most: metrics.gauges(&MOST),
            usage: metrics.gauges(&USAGE),
            tries: metrics.histograms(&TRIES),
        }
    }

    /// The set has so many blocks.
    pub(super) fn holds(&self, blocks: usize) {
        self.most.with(&[&self.cluster]).set(blocks as f64);
    }

    /// A free block came after so many that were taken.
    pub(super) fn found(&self, tries: usize) {
        self.tries.with(&[&self.cluster]).observe(tries as f64);
    }

    /// So many blocks were taken and set free; `count` of `all` are taken now.
    pub(super) fn changed(&self, taken: usize, freed: usize, count: usize, all: usize) {
        let labels = [self.cluster.as_str()];
        if taken > 0 {
            self.allocations.with(&labels).inc_by(taken as f64);
        }
        if freed > 0 {
            self.releases.with(&labels).inc_by(freed as f64);
        }
        self.usage.with(&labels).set(count as f64 / all.max(1) as f64);
    }
}
