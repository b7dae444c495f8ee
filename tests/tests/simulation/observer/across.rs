//! What must hold between kinds, looked at when a story is over: their watches are not in step with each other, their
//! versions are.

use std::collections::BTreeSet;

use api_types::batch_v1::Job;
use api_types::core_v1::{Pod, ResourceQuota};
use api_types::discovery_v1::EndpointSlice;
use api_types::policy_v1::PodDisruptionBudget;

use super::history::History;
use crate::workloads::COUNTED;

/// Slices led only to addresses of the pods that they name, once those were ready.
pub(super) fn endpoints(pods: &History<Pod>, slices: &History<EndpointSlice>) -> Vec<String> {
    let (pods, mut broken) = (pods.memory(), Vec::new());
    for ((uid, address), at) in slices.memory() {
        // One that was never seen ready may have come and gone between two lists.
        let (Some(own), Some(ready)) = (pods.addresses.get(uid), pods.ready.get(uid)) else { continue };
        if own != address {
            broken.push(format!("a slice led to {address} as pod {uid}, which has {own}"));
        } else if ready > at {
            broken.push(format!("a slice led to pod {uid} at {at}, which was ready at {ready} first"));
        }
    }
    broken
}

/// The Job that counts its pods has counted each that succeeded once, and let it go only after it was noted.
///
/// Not those that it was about to remove, as when it was suspended: it lets them go and deletes them, whatever has become of
/// them by then, and makes others in their place.
pub(super) fn jobs(pods: &History<Pod>, jobs: &History<Job>) -> Vec<String> {
    if !pods.is_complete() || !jobs.is_complete() {
        return Vec::new();
    }
    let Some(job) = jobs.objects().find(|job| job.metadata.name == COUNTED) else { return Vec::new() };
    let (known, noted) = (pods.memory(), &jobs.memory().noted);
    let is_noted = |(uid, at): (&String, &u64)| noted.get(uid).is_some_and(|noted| noted < at);
    let is_there = |uid: &String| pods.objects().any(|pod| pod.metadata.uid == *uid);
    let unnoted = known.let_go.iter().filter(|own| !is_noted(*own)).map(|(uid, _)| uid);
    let (early, removed): (Vec<&String>, Vec<&String>) = unnoted.partition(|uid| is_there(uid));
    let at_the_end = known.succeeded_at_the_end.iter().filter(|uid| !removed.contains(uid)).count();
    let succeeded = known.succeeded.len() - removed.len();
    let mut broken: Vec<String> =
        early.iter().map(|uid| format!("pod {uid} of {COUNTED} was let go before it was noted")).collect();
    let may_be = succeeded - at_the_end..=succeeded;
    if !usize::try_from(job.status.succeeded).is_ok_and(|counted| may_be.contains(&counted)) {
        broken.push(format!("{succeeded} pods of {COUNTED} succeeded, it counted {}", job.status.succeeded));
    }
    broken
}

/// Each ready pod that was evicted was announced in its budget.
pub(super) fn evictions(pods: &History<Pod>, budgets: &History<PodDisruptionBudget>) -> Vec<String> {
    if !budgets.is_complete() {
        return Vec::new();
    }
    let unknown = pods.memory().evicted.iter().filter(|name| !budgets.memory().contains(*name));
    unknown.map(|name| format!("{name} was evicted past its budget")).collect()
}

/// Each pod of the namespace with a quota was charged before it was let in, and what is used kept to what is allowed: what an
/// API server adds by itself. What was `counted`, by version, is the controller's, and pays for nothing.
pub(super) fn quotas(pods: &History<Pod>, quotas: &History<ResourceQuota>, counted: &BTreeSet<u64>) -> Vec<String> {
    if !pods.is_complete() || !quotas.is_complete() {
        return Vec::new();
    }
    let charges = quotas.memory().charged.iter().filter(|(at, _)| !counted.contains(at));
    let (mut charges, mut paid, mut broken) = (charges.peekable(), 0, Vec::new());
    for (at, name) in &pods.memory().bounded {
        while let Some((_, charged)) = charges.next_if(|(charged_at, _)| *charged_at < at) {
            paid += charged;
        }
        if paid == 0 {
            broken.push(format!("{name} was let in at {at}, and not charged to the quota"));
        }
        paid = (paid - 1).max(0);
    }
    broken
}

#[cfg(test)]
mod tests {
    use api_machinery::object::{Kind, Object, from_value};
    use api_machinery::value::Value;
    use serde_json::json;

    use super::super::history::Happened;
    use super::super::rules::Watched;
    use super::*;
    use crate::workloads::BOUNDED;

    fn history<T: Watched + Kind + Object>(objects: &[Value]) -> History<T> {
        let mut history = History::default();
        history.relist("0", Vec::new());
        for (index, object) in objects.iter().enumerate() {
            let what = if index == 0 { Happened::Added } else { Happened::Modified };
            history.happened(what, from_value(object).unwrap());
        }
        assert_eq!(history.violations(), Vec::<String>::new());
        history
    }

    fn pod(version: &str, finalizers: &[&str], status: Value) -> Value {
        json!({
            "metadata": {
                "name": "p", "uid": "p", "resourceVersion": version, "finalizers": finalizers,
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": COUNTED, "uid": "j"}]},
            "status": status,
        })
    }

    fn ready() -> Value {
        json!({"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]})
    }

    #[test]
    fn slices_lead_to_ready_pods() {
        let pods = history::<Pod>(&[pod("5", &[], ready())]);
        for (address, version, expected) in [
            ("10.0.0.1", "6", None),
            ("10.0.0.2", "6", Some("which has 10.0.0.1")),
            ("10.0.0.1", "4", Some("at 5 first")),
        ] {
            let endpoint = json!({
                "addresses": [address], "conditions": {"ready": true}, "targetRef": {"kind": "Pod", "uid": "p"}});
            let metadata = json!({"name": "s", "uid": "s", "resourceVersion": version});
            let slices = history::<EndpointSlice>(&[json!({"metadata": metadata, "endpoints": [endpoint]})]);
            let found = endpoints(&pods, &slices);
            assert_eq!(found.first().is_some_and(|line| line.contains(expected.unwrap_or("?"))), expected.is_some());
        }
    }

    #[test]
    fn a_job_counts_what_it_lets_go() {
        let held = pod("5", &["batch.kubernetes.io/job-tracking"], json!({"phase": "Succeeded"}));
        let pods = history::<Pod>(&[held, pod("7", &[], json!({"phase": "Succeeded"}))]);
        let job = |version: &str, status: Value| json!({"metadata": {"name": COUNTED, "uid": "j", "resourceVersion": version}, "status": status});
        let noted = json!({"uncountedTerminatedPods": {"succeeded": ["p"]}});
        let counted = json!({"succeeded": 1});
        for (first, second, expected) in [
            (job("6", noted.clone()), job("8", counted.clone()), None),
            (job("6", noted.clone()), job("8", noted.clone()), Some("it counted 0")),
            (job("8", noted), job("9", counted.clone()), Some("before it was noted")),
            (job("6", json!({})), job("8", counted), Some("before it was noted")),
        ] {
            let found = jobs(&pods, &history::<Job>(&[first, second.clone()]));
            let is_seen = found.iter().any(|line| line.contains(expected.unwrap_or("")));
            assert_eq!(is_seen, expected.is_some(), "{second}: {found:?}");
        }
    }

    /// It may have seen that the pod was ending, and may not.
    #[test]
    fn a_pod_that_succeeds_at_its_end_may_count_as_failed() {
        let tracking = &["batch.kubernetes.io/job-tracking"][..];
        let ending = |version: &str, held: &[&str], phase: &str| {
            let mut pod = pod(version, held, json!({"phase": phase}));
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
            pod
        };
        let job = |version: &str, status: Value| json!({"metadata": {"name": COUNTED, "uid": "j", "resourceVersion": version}, "status": status});
        let noted = json!({"uncountedTerminatedPods": {"failed": ["p"]}});
        for (first, counted, expected) in [("Running", 0, 0), ("Running", 1, 0), ("Succeeded", 0, 1)] {
            let before = if first == "Running" {
                ending("4", tracking, first)
            } else {
                pod("4", tracking, json!({"phase": first}))
            };
            let after = [ending("5", tracking, "Succeeded"), ending("7", &[], "Succeeded")];
            let pods = history::<Pod>(&[&[before][..], &after].concat());
            let found =
                jobs(&pods, &history::<Job>(&[job("6", noted.clone()), job("8", json!({"succeeded": counted}))]));
            assert_eq!(found.len(), expected, "{first} {counted}: {found:?}");
        }
    }

    #[test]
    fn an_eviction_is_announced() {
        let mut evicted = ready();
        evicted["conditions"] = json!([
            {"type": "Ready", "status": "True"},
            {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]);
        let ending = |mut pod: Value| {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
            pod
        };
        let (before, after) = (pod("5", &[], ready()), pod("6", &[], evicted));
        for (before, announced, expected) in [
            (before.clone(), json!({"p": "2026-01-01T00:00:00Z"}), 0),
            (before.clone(), json!({}), 1),
            (ending(before), json!({}), 0),
        ] {
            let pods = history::<Pod>(&[before, ending(after.clone())]);
            let metadata = json!({"name": "b", "uid": "b", "resourceVersion": "4"});
            let budgets = history(&[json!({"metadata": metadata, "status": {"disruptedPods": announced}})]);
            assert_eq!(evictions(&pods, &budgets).len(), expected);
        }
    }

    /// What a quota says is used, at which versions; when pods came, and what the controller wrote; who was not charged.
    type Case<'a> = (&'a [(u64, u64)], [&'a [u64]; 2], &'a [&'a str]);

    #[test]
    fn a_pod_is_charged_before_it_is_let_in() {
        let quota = |version: u64, used: u64| {
            json!({"metadata": {"name": "q", "uid": "q", "resourceVersion": version.to_string()},
                "status": {"hard": {"pods": "3"}, "used": {"pods": used.to_string()}}})
        };
        let bounded = |version: u64| {
            let name = version.to_string();
            json!({"metadata": {"name": name, "uid": name, "namespace": BOUNDED, "resourceVersion": name}})
        };
        let cases: [Case<'_>; 8] = [
            (&[(1, 0), (2, 1), (4, 2)], [&[3, 5], &[1]], &[]),
            (&[(1, 0), (2, 2)], [&[3, 5], &[1]], &[]),
            (&[(1, 0), (2, 1)], [&[3, 5], &[1]], &["5"]),
            (&[(1, 0), (4, 1)], [&[3], &[1]], &["3"]),
            // It was counted late, and rises again with what is counted.
            (&[(1, 0), (2, 1), (4, 0), (5, 1)], [&[3, 6], &[1, 4, 5]], &["6"]),
            (&[(1, 0), (2, 1), (3, 0), (5, 1)], [&[4, 6], &[1, 3]], &[]),
            // More than is allowed.
            (&[(1, 3), (2, 4)], [&[3], &[1]], &["3"]),
            (&[(1, 0), (2, 3)], [&[3, 4, 5, 6], &[1]], &["6"]),
        ];
        for (said, [came, counted], expected) in cases {
            let said: Vec<Value> = said.iter().map(|(version, used)| quota(*version, *used)).collect();
            let mut pods = History::<Pod>::default();
            pods.relist("0", Vec::new());
            came.iter().for_each(|at| pods.happened(Happened::Added, from_value(&bounded(*at)).unwrap()));
            let broken = quotas(&pods, &history(&said), &counted.iter().copied().collect());
            let expected: Vec<String> =
                expected.iter().map(|name| format!("{name} was let in at {name}, and")).collect();
            assert_eq!(broken.len(), expected.len(), "{said:?}: {broken:?}");
            assert!(
                broken.iter().zip(&expected).all(|(own, expected)| own.starts_with(expected)),
                "{said:?}: {broken:?}"
            );
        }
    }
}
