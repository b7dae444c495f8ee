//! The attach-detach controller's metrics, with upstream's names, labels and buckets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use client::Informer;
use component_base::metrics::{Counters, Desc, Histograms, Metrics, Stability};
use component_helpers::pod_state;
use parking_lot::Mutex;

use super::plan::Force;
use super::state::State;
use super::target::{Lookup, Target};
use crate::volumes::plugins::CSI;
use crate::volumes::tally;

const IN_USE: Desc = Desc::new(
    "storage_count_attachable_volumes_in_use",
    "Volumes that pods have on a node and that are attached to it.",
    Stability::Alpha,
)
.labels(&["node", "volume_plugin"]);
const TOTAL: Desc =
    Desc::new("attachdetach_controller_total_volumes", "Volumes on nodes, wanted and attached.", Stability::Alpha)
        .labels(&["plugin_name", "state"]);
const FORCED: Desc = Desc::new(
    "attach_detach_controller_attachdetach_controller_forced_detaches",
    "Volumes that were taken from a node by force.",
    Stability::Alpha,
)
.labels(&["reason"]);
const SECONDS: Desc =
    Desc::new("storage_operation_duration_seconds", "How long an operation on a volume took.", Stability::Alpha)
        .labels(&["volume_plugin", "operation_name", "status", "migrated"])
        .buckets(&[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0]);

/// What the controller counts.
pub(super) struct AttachMetrics {
    forced: Counters,
    seconds: Histograms,
}

impl AttachMetrics {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self { forced: metrics.counters(&FORCED), seconds: metrics.shared_histograms(&SECONDS) }
    }

    /// A volume was taken from a node by force.
    pub(super) fn forced(&self, why: Force) {
        self.forced.with(&[why.shown()]).inc();
    }

    /// `volume_attach` or `volume_detach` came to its end.
    pub(super) fn ended(&self, target: &Target, operation: &str, is_good: bool, took: Duration) {
        let status = if is_good { "success" } else { "fail-unknown" };
        self.seconds.with(&[&plugin(target), operation, status, "false"]).observe(took.as_secs_f64());
    }
}

fn plugin(target: &Target) -> String {
    format!("{CSI}:{}", target.driver)
}

/// Shows how many volumes there are, counted when somebody asks.
pub(super) fn collect(metrics: &Metrics, pods: &Informer<Pod>, lookup: &Arc<Lookup>, state: &Arc<Mutex<State>>) {
    let (all, look) = (pods.clone(), Arc::clone(lookup));
    let in_use = move || tally(targets(&all, &look).map(|(node, target)| vec![node, plugin(&target)]));
    metrics.computed_gauges(&IN_USE, Box::new(in_use));
    let (all, look, state) = (pods.clone(), Arc::clone(lookup), Arc::clone(state));
    let total = move || {
        let labels = |target: &Target, state: &str| vec![plugin(target), state.to_owned()];
        let wanted: BTreeMap<(String, String), Target> =
            targets(&all, &look).map(|(node, target)| ((node, target.name()), target)).collect();
        let state = state.lock();
        let actual = state.all().map(|(_, entry)| labels(&entry.target, "actual_state_of_world"));
        tally(wanted.values().map(|target| labels(target, "desired_state_of_world")).chain(actual))
    };
    metrics.computed_gauges(&TOTAL, Box::new(total));
}

/// The volumes of all pods on nodes.
fn targets(pods: &Informer<Pod>, lookup: &Lookup) -> impl Iterator<Item = (String, Target)> {
    let running =
        pods.list().into_iter().filter(|pod| !pod.spec.node_name.is_empty() && !pod_state::is_terminated(pod));
    running.flat_map(move |pod| {
        let targets = pod.spec.volumes.iter().filter_map(|volume| lookup.target(&pod, volume));
        targets.map(|target| (pod.spec.node_name.clone(), target)).collect::<Vec<_>>()
    })
}
