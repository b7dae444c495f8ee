//! Which pods make way for a critical one that lacks room. Pure.
//!
//! As few guaranteed pods as possible, then as few burstable ones; within a class the pod whose requests come closest
//! to what is missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::Pod;
use component_helpers::{pod_requests, qos};

use crate::pod::{is_critical, priority};

/// What is missing, by resource; CPU in thousandths.
pub(crate) type Missing = BTreeMap<String, i64>;

/// Even all pods that would have to make way are not enough.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [{}]", listed(.left))]
pub(crate) struct PreemptionError {
    /// What would still be missing.
    pub left: Missing,
}

fn listed(left: &Missing) -> String {
    left.iter().map(|(name, amount)| format!("(res: {name}, q: {amount}), ")).collect()
}

/// Whether `newcomer` may take the place of `other`.
fn yields(newcomer: &Pod, other: &Pod) -> bool {
    is_critical(newcomer) && !is_critical(other) || priority(other) < priority(newcomer)
}

/// The pods to end, in the order in which they go.
///
/// # Errors
/// Even all of them would not do.
pub(crate) fn victims(
    newcomer: &Pod,
    active: &[Arc<Pod>],
    missing: &Missing,
) -> Result<Vec<Arc<Pod>>, PreemptionError> {
    let mut classes: BTreeMap<&str, Vec<Arc<Pod>>> = BTreeMap::new();
    for pod in active.iter().filter(|pod| yields(newcomer, pod)) {
        classes.entry(qos::class_of(pod)).or_default().push(Arc::clone(pod));
    }
    let mut class = |name: &str| classes.remove(name).unwrap_or_default();
    let (best_effort, burstable, guaranteed) = (class("BestEffort"), class("Burstable"), class("Guaranteed"));
    let all: Vec<Arc<Pod>> = [&best_effort[..], &burstable, &guaranteed].concat();
    let left = less(missing, &all);
    if !left.is_empty() {
        return Err(PreemptionError { left });
    }
    let of_guaranteed = closest(guaranteed, less(&less(missing, &best_effort), &burstable));
    let of_burstable = closest(burstable, less(&less(missing, &best_effort), &of_guaranteed));
    let of_best_effort = closest(best_effort, less(&less(missing, &of_burstable), &of_guaranteed));
    Ok([of_best_effort, of_burstable, of_guaranteed].concat())
}

/// What a pod asks of a resource.
fn request(pod: &Pod, name: &str) -> i64 {
    if name == "pods" {
        return 1;
    }
    let amount = pod_requests::amount(&pod_requests::requests(pod), name);
    if name == "cpu" { amount.milli_value() } else { amount.value() }
}

/// What is still missing once these pods are gone.
fn less(missing: &Missing, pods: &[Arc<Pod>]) -> Missing {
    let left = missing.iter().map(|(name, amount)| {
        let freed = pods.iter().map(|pod| request(pod, name)).fold(0_i64, i64::saturating_add);
        (name.clone(), amount.saturating_sub(freed))
    });
    left.filter(|(_, amount)| *amount > 0).collect()
}

/// Takes pods until nothing is missing; the caller knows that they suffice.
fn closest(mut pods: Vec<Arc<Pod>>, mut missing: Missing) -> Vec<Arc<Pod>> {
    let mut taken = Vec::new();
    while !missing.is_empty() {
        let by_distance = |one: &(usize, &Arc<Pod>), other: &(usize, &Arc<Pod>)| {
            let size = |pod: &Pod| (request(pod, "memory"), request(pod, "cpu"));
            let order = distance(one.1, &missing).total_cmp(&distance(other.1, &missing));
            order.then_with(|| size(one.1).cmp(&size(other.1)))
        };
        let Some((index, _)) = pods.iter().enumerate().min_by(by_distance) else { break };
        let pod = pods.remove(index);
        missing = less(&missing, std::slice::from_ref(&pod));
        taken.push(pod);
    }
    taken
}

/// How far a pod falls short of what is missing: 0 where it suffices alone.
#[expect(clippy::cast_precision_loss, reason = "only compared")]
fn distance(pod: &Pod, missing: &Missing) -> f64 {
    let short = missing.iter().map(|(name, amount)| {
        let short = amount.saturating_sub(request(pod, name)).max(0) as f64 / (*amount).max(1) as f64;
        short * short
    });
    short.sum()
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_types::core_v1::Container;

    use super::*;

    fn pod(name: &str, cpu: &str, limit: Option<&str>, priority: i32) -> Arc<Pod> {
        let mut pod = Pod::default();
        pod.metadata.name = name.into();
        pod.spec.priority = Some(priority);
        let mut container = Container::default();
        if cpu != "0" {
            container.resources.requests.insert("cpu".into(), Quantity::parse(cpu).unwrap());
            container.resources.requests.insert("memory".into(), Quantity::parse("1Mi").unwrap());
        }
        if let Some(limit) = limit {
            container.resources.limits.insert("cpu".into(), Quantity::parse(limit).unwrap());
            container.resources.limits.insert("memory".into(), Quantity::parse("1Mi").unwrap());
        }
        pod.spec.containers.push(container);
        Arc::new(pod)
    }

    #[test]
    fn the_least_is_taken() {
        let critical = pod("new", "1", None, 2_000_000_000);
        let guaranteed = pod("guaranteed", "500m", Some("500m"), 0);
        let (small, large, exact) =
            (pod("small", "100m", None, 0), pod("large", "900m", None, 0), pod("exact", "300m", None, 0));
        let peer = pod("peer", "900m", None, 2_000_000_001);
        let all = [guaranteed, small, large, exact, peer, pod("idle", "0", None, 0)];
        type Case<'a> = (&'a [(&'a str, i64)], Result<&'a [&'a str], i64>);
        let cases: [Case<'_>; 6] = [
            (&[("cpu", 300)], Ok(&["exact"])),
            (&[("cpu", 50)], Ok(&["small"])),
            (&[("cpu", 1200)], Ok(&["large", "exact"])),
            (&[("cpu", 1400)], Ok(&["large", "guaranteed"])),
            (&[("pods", 1)], Ok(&["idle"])),
            (&[("cpu", 2000)], Err(200)),
        ];
        for (missing, expected) in cases {
            let missing: Missing = missing.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect();
            let found = victims(&critical, &all, &missing);
            let names =
                found.as_ref().map(|pods| pods.iter().map(|pod| pod.metadata.name.as_str()).collect::<Vec<_>>());
            assert_eq!(names.map_err(|error| error.left["cpu"]), expected.map(<[_]>::to_vec), "{missing:?}");
        }
    }
}
