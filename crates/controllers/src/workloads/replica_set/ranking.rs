//! Which pods go first when there are too many: those that do the least, then those that share a node with many of
//! their kind, then the youngest.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::time::{MicroTime, Time};
use api_types::core_v1::Pod;
use component_helpers::{conditions, pod_state};

use super::Features;

/// What users set to say which pods are dear to them.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The pods, first to be deleted first.
///
/// Insertion into a sorted list instead of `sort_by`: the order is upstream's and not transitive in corner cases (ages
/// of one magnitude are decided by uid, equal ones by restarts), which a general sort may answer with a panic.
pub(super) fn first_to_go(
    pods: &[Arc<Pod>],
    related: &[Arc<Pod>],
    features: Features,
    now: MicroTime,
) -> Vec<Arc<Pod>> {
    let mut per_node = BTreeMap::<&str, usize>::new();
    for pod in related {
        *per_node.entry(&pod.spec.node_name).or_default() += 1;
    }
    let mut sorted: Vec<Ranked<'_>> = Vec::with_capacity(pods.len());
    for pod in pods {
        let neighbours = per_node.get(pod.spec.node_name.as_str()).copied().unwrap_or(0);
        let ranked = Ranked::new(pod, neighbours, features, now);
        let place = sorted.partition_point(|other| other.order(&ranked) != Ordering::Greater);
        sorted.insert(place, ranked);
    }
    sorted.into_iter().map(|ranked| Arc::clone(ranked.pod)).collect()
}

struct Ranked<'a> {
    pod: &'a Arc<Pod>,
    /// Compared as a whole: unassigned first, then by phase, readiness, cost, and many neighbours first.
    merit: (bool, u8, bool, i32, Reverse<usize>),
    ready_since: Option<Time>,
    /// Of the containers, then of the sidecars; many first.
    restarts: Reverse<(i32, i32)>,
    now: MicroTime,
}

impl<'a> Ranked<'a> {
    fn new(pod: &'a Arc<Pod>, neighbours: usize, features: Features, now: MicroTime) -> Self {
        let cost = if features.deletion_cost { deletion_cost(pod) } else { 0 };
        let ready = pod_state::is_ready(pod);
        let since = conditions::find(&pod.status.conditions, "Ready").map(|ready| ready.last_transition_time);
        Self {
            pod,
            merit: (!pod.spec.node_name.is_empty(), phase(pod), ready, cost, Reverse(neighbours)),
            ready_since: since.filter(|_| ready),
            restarts: Reverse(restarts(pod)),
            now,
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        let uids = || self.pod.metadata.uid.cmp(&other.pod.metadata.uid);
        let younger = |one: Time, two: Time| {
            if one == two { Ordering::Equal } else { younger_first(one, two, self.now).then_with(uids) }
        };
        let by_readiness = || match (self.ready_since, other.ready_since) {
            (Some(one), Some(two)) => younger(one, two),
            _ => Ordering::Equal,
        };
        self.merit
            .cmp(&other.merit)
            .then_with(by_readiness)
            .then_with(|| self.restarts.cmp(&other.restarts))
            .then_with(|| younger(self.pod.metadata.creation_timestamp, other.pod.metadata.creation_timestamp))
    }
}

/// Pending before Unknown before Running.
fn phase(pod: &Pod) -> u8 {
    match pod.status.phase.as_str() {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    }
}

/// A time that is not set counts as the youngest. Ages of the same magnitude are equal.
fn younger_first(one: Time, two: Time, now: MicroTime) -> Ordering {
    if one.is_zero() || two.is_zero() {
        two.is_zero().cmp(&one.is_zero())
    } else {
        magnitude(one, now).cmp(&magnitude(two, now))
    }
}

/// The binary logarithm of the age in nanoseconds; less than any for what lies ahead.
fn magnitude(since: Time, now: MicroTime) -> Option<u32> {
    (now.since(since.into()).as_nanos()).checked_ilog2()
}

fn restarts(pod: &Pod) -> (i32, i32) {
    let statuses = pod.status.container_statuses.iter();
    let main = statuses.map(|status| status.restart_count).max().unwrap_or(0);
    let sidecars = pod.spec.init_containers.iter().filter(|container| pod_state::is_sidecar(container));
    let of = |name: &str| pod.status.init_container_statuses.iter().find(|status| status.name == name);
    let side = sidecars.filter_map(|container| of(&container.name)).map(|status| status.restart_count).max();
    (main, side.unwrap_or(0))
}

/// The cost; 0 where there is none or it is not written as upstream wants it.
fn deletion_cost(pod: &Pod) -> i32 {
    let Some(text) = pod.metadata.annotations.get(DELETION_COST) else { return 0 };
    let starts_well = text == "0" || matches!(text.as_bytes().first(), Some(b'-' | b'1'..=b'9'));
    if starts_well { text.parse().unwrap_or(0) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{at, pod, ready};
    use super::*;

    const ALL: Features = Features { deletion_cost: true, terminating: true };

    fn order(pods: Vec<Pod>, related: &[Arc<Pod>]) -> Vec<String> {
        let pods: Vec<_> = pods.into_iter().map(Arc::new).collect();
        let now = MicroTime::from(at(100_000));
        first_to_go(&pods, related, ALL, now).iter().map(|pod| pod.metadata.name.clone()).collect()
    }

    fn running(name: &str) -> Pod {
        ready(pod(name, "Running", None), 10)
    }

    #[test]
    fn each_rule_decides() {
        let unassigned = |mut pod: Pod| {
            pod.spec.node_name = String::new();
            pod
        };
        let cost = |mut pod: Pod, cost: &str| {
            pod.metadata.annotations.insert(DELETION_COST.into(), cost.into());
            pod
        };
        let restarted = |mut pod: Pod, count| {
            let status = api_types::core_v1::ContainerStatus { restart_count: count, ..Default::default() };
            pod.status.container_statuses.push(status);
            pod
        };
        let created = |mut pod: Pod, when| {
            pod.metadata.creation_timestamp = at(when);
            pod
        };
        let cases = [
            ("unassigned", unassigned(running("a")), running("b")),
            ("pending", pod("a", "Pending", None), pod("b", "Unknown", None)),
            ("unknown", pod("a", "Unknown", None), pod("b", "Running", None)),
            ("not ready", pod("a", "Running", None), running("b")),
            ("cheap", cost(running("a"), "-1"), running("b")),
            ("a cost with a plus is none", running("a"), cost(running("b"), "1")),
            ("ready later", ready(pod("a", "Running", None), 99_000), ready(pod("b", "Running", None), 10)),
            ("ready, time unknown", ready(pod("a", "Running", None), -62_135_596_800), running("b")),
            (
                "ready at the same magnitude: uid",
                ready(pod("a", "Running", None), 10),
                ready(pod("b", "Running", None), 9),
            ),
            ("restarts", restarted(running("a"), 3), restarted(running("b"), 2)),
            ("created later", created(running("a"), 99_999), created(running("b"), 10)),
        ];
        for (name, first, second) in cases {
            assert_eq!(order(vec![second.clone(), first.clone()], &[]), ["a", "b"], "{name}");
            assert_eq!(order(vec![first, second], &[]), ["a", "b"], "{name}");
        }
    }

    #[test]
    fn crowded_nodes_lose_first() {
        let on = |name: &str, node: &str| {
            let mut pod = running(name);
            pod.spec.node_name = node.into();
            pod
        };
        let related: Vec<_> = [on("a", "m"), on("b", "n"), on("x", "n")].into_iter().map(Arc::new).collect();
        assert_eq!(order(vec![on("a", "m"), on("b", "n")], &related), ["b", "a"]);
    }

    #[test]
    fn costs_are_read_as_upstream_writes_them() {
        for (text, expected) in [("5", 5), ("-5", -5), ("0", 0), ("+5", 0), ("05", 0), ("x", 0), ("3000000000", 0)] {
            let mut pod = running("a");
            pod.metadata.annotations.insert(DELETION_COST.into(), text.into());
            assert_eq!(deletion_cost(&pod), expected, "{text}");
        }
    }

    #[test]
    fn a_cost_counts_where_that_is_on() {
        let with = |name, cost: &str| {
            let mut pod = running(name);
            pod.metadata.uid = name.to_owned();
            pod.metadata.annotations.insert(DELETION_COST.into(), cost.into());
            Arc::new(pod)
        };
        let pods = [with("a", "5"), with("b", "1")];
        for (deletion_cost, first) in [(true, "b"), (false, "a")] {
            let sorted = first_to_go(&pods, &[], Features { deletion_cost, ..ALL }, MicroTime::from(at(100_000)));
            assert_eq!(sorted[0].metadata.name, first, "{deletion_cost}");
        }
    }
}
