//! Where pods are missing, and which ones are too many, dead or out of place.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::apps_v1::DaemonSet;
use api_types::core_v1::Pod;
use api_types::core_v1::constants::pod_phase::{FAILED, SUCCEEDED};
use component_helpers::pod_state;

use super::placement::Placement;
use super::pod_content::is_updated;
use super::rolling;

/// What to do.
#[derive(Default)]
pub(super) struct Plan {
    /// Nodes that need a pod.
    pub create: Vec<String>,
    /// Pods to delete.
    pub delete: Vec<Arc<Pod>>,
    /// Failed pods among them, with their nodes.
    pub failed: Vec<(String, Arc<Pod>)>,
    /// Pods among them that ended well, with their nodes.
    pub succeeded: Vec<(String, Arc<Pod>)>,
    /// When the next failed pod may be replaced.
    pub look_again: Option<Duration>,
}

/// How long a pod must be ready.
pub(super) fn min_ready(set: &DaemonSet) -> Duration {
    Duration::from_secs(u64::try_from(set.spec.min_ready_seconds).unwrap_or(0))
}

fn is_going(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Compares what is there with what the set means. `held` says how long failed pods of a node are to be left alone.
pub(super) fn plan(
    set: &DaemonSet,
    placement: &Placement,
    hash: &str,
    held: impl Fn(&str) -> Option<Duration>,
    now: Time,
) -> Plan {
    let mut plan = Plan::default();
    for (node, verdict) in &placement.nodes {
        let pods = placement.on(node);
        if pods.is_empty() {
            if verdict.run {
                plan.create.push(node.clone());
            }
        } else if !verdict.keep {
            plan.delete.extend(pods.iter().filter(|pod| !is_going(pod)).cloned());
        } else {
            let running = plan.sort_out_dead(node, pods, held(node));
            plan.keep_one(set, node, running, verdict.run, hash, now);
        }
    }
    // A node that is gone will never be bound to; pods that were bound are left to the pod garbage collector.
    for (_, pods) in placement.pods.iter().filter(|(node, _)| !placement.nodes.contains_key(*node)) {
        plan.delete.extend(pods.iter().filter(|pod| pod.spec.node_name.is_empty() && !is_going(pod)).cloned());
    }
    plan
}

impl Plan {
    /// Marks ended pods for deletion and answers with the rest. A failed one is left while its node is held back.
    fn sort_out_dead(&mut self, node: &str, pods: &[Arc<Pod>], held: Option<Duration>) -> Vec<Arc<Pod>> {
        let mut running = Vec::new();
        for pod in pods.iter().filter(|pod| !is_going(pod)) {
            match pod.status.phase.as_str() {
                FAILED => {
                    if let Some(delay) = held {
                        self.look_again = Some(self.look_again.map_or(delay, |other| other.min(delay)));
                        continue;
                    }
                    self.failed.push((node.to_owned(), Arc::clone(pod)));
                    self.delete.push(Arc::clone(pod));
                }
                SUCCEEDED => {
                    self.succeeded.push((node.to_owned(), Arc::clone(pod)));
                    self.delete.push(Arc::clone(pod));
                }
                _ => running.push(Arc::clone(pod)),
            }
        }
        running
    }

    /// Leaves one running pod on a node, or with surge one of each template.
    fn keep_one(&mut self, set: &DaemonSet, node: &str, running: Vec<Arc<Pod>>, run: bool, hash: &str, now: Time) {
        if !rolling::surges(set) {
            self.delete.extend(running.into_iter().skip(1));
            return;
        }
        if running.is_empty() {
            // Also while an old one is on its way out.
            if run {
                self.create.push(node.to_owned());
            }
            return;
        }
        if running.len() == 1 {
            return;
        }
        let (mut new, mut old): (Vec<_>, Vec<_>) = running.into_iter().partition(|pod| is_updated(set, pod, hash));
        self.delete.extend(new.drain(1.min(new.len())..));
        self.delete.extend(old.drain(1.min(old.len())..));
        if let (Some(new), Some(old)) = (new.first(), old.pop())
            && (!pod_state::is_ready(&old) || pod_state::is_available(new, min_ready(set), now))
        {
            self.delete.push(old);
        }
    }
}
