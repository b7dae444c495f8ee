//! Plans from tables, and the controller against the fake server.

use api_machinery::intstr::IntOrString;
use api_machinery::meta::OwnerReference;
use api_types::apps_v1::ReplicaSet;
use api_types::core_v1::PodCondition;
use bytes::Bytes;
use client::{Transport, TransportError};
use component_base::serving::Body;
use controller::controller_ref;

use super::super::fixtures::{Running, WithDiscovery, at, dying, meta, pod, ready, run_until_idle, selector, template};
use super::plan::{Counted, plan, share};
use super::*;
use crate::Settings;

fn pods(ready_ones: usize, others: usize) -> Vec<Arc<Pod>> {
    let healthy = (0..ready_ones).map(|index| ready(pod(&format!("r{index}"), "Running", None), 1));
    let waiting = (0..others).map(|index| pod(&format!("w{index}"), "Pending", None));
    healthy.chain(waiting).map(Arc::new).collect()
}

fn budget() -> PodDisruptionBudget {
    let mut budget = PodDisruptionBudget { metadata: meta("budget"), ..PodDisruptionBudget::default() };
    budget.metadata.generation = 4;
    budget.spec.selector = selector();
    budget
}

#[test]
fn shares_are_rounded_up() {
    for (value, total, expected) in [
        (IntOrString::Int(3), 10, Some(3)),
        (IntOrString::Str("50%".into()), 5, Some(3)),
        (IntOrString::Str("0%".into()), 5, Some(0)),
        (IntOrString::Str("100%".into()), 5, Some(5)),
        (IntOrString::Str("half".into()), 5, None),
    ] {
        assert_eq!(share(&value, total).ok(), expected, "{value:?} of {total}");
    }
}

#[test]
fn what_is_allowed() {
    for (name, healthy, expected, desired, allowed, reason) in [
        ("room", 3, 3, 2, 1, "SufficientPods"),
        ("room for two", 4, 4, 2, 2, "SufficientPods"),
        ("all may go", 3, 3, 0, 3, "SufficientPods"),
        ("none", 2, 3, 2, 0, "InsufficientPods"),
        ("too few", 1, 3, 2, 0, "InsufficientPods"),
        ("nothing is expected", 3, 0, 0, 0, "InsufficientPods"),
    ] {
        let counted = Counted { expected, desired, unmanaged: false };
        let status = plan(&budget(), &pods(healthy, 1), counted, at(100)).status;
        assert_eq!(
            (status.disruptions_allowed, status.current_healthy),
            (allowed, i32::try_from(healthy).unwrap()),
            "{name}"
        );
        assert_eq!((status.conditions[0].reason.as_str(), status.observed_generation), (reason, 4), "{name}");
    }
}

#[test]
fn announced_evictions_count_until_they_are_overdue() {
    let mut budget = budget();
    let mut all = pods(3, 0);
    all.push(Arc::new(dying(ready(pod("d", "Running", None), 1))));
    for (name, since) in [("r0", 90), ("r1", 1), ("d", 90), ("gone", 90)] {
        budget.status.disrupted_pods.insert(name.into(), at(since));
    }
    let plan = plan(&budget, &all, Counted { expected: 3, desired: 1, unmanaged: false }, at(130));
    assert_eq!(plan.status.disrupted_pods.keys().collect::<Vec<_>>(), ["r0"]);
    assert_eq!(plan.overdue.iter().map(|pod| pod.metadata.name.as_str()).collect::<Vec<_>>(), ["r1"]);
    assert_eq!((plan.status.current_healthy, plan.again), (2, Some(std::time::Duration::from_secs(80))));
}

#[test]
fn announcements_run_out() {
    let mut pod = pod("a", "Running", None);
    assert_eq!(stale::due(&pod), None);
    let condition = PodCondition {
        type_: "DisruptionTarget".into(),
        status: "True".into(),
        last_transition_time: at(10),
        ..PodCondition::default()
    };
    pod.status.conditions.push(condition);
    assert_eq!(stale::due(&pod), Some(at(130)));
    pod.metadata.generation = 3;
    let condition = stale::taken_back(&pod, at(130)).status.conditions.pop().unwrap();
    let shown = (condition.status.as_str(), condition.reason.as_str(), condition.observed_generation);
    assert_eq!((shown, condition.last_transition_time), (("False", "", 3), at(130)));
    pod.status.conditions[0].reason = "TerminationByKubelet".into();
    assert_eq!(stale::due(&pod), None);
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_counted_by_the_replica_set() {
    let running = Running::start(&[DESCRIPTOR]);
    let mut set = ReplicaSet { metadata: meta("web"), ..ReplicaSet::default() };
    set.spec.replicas = Some(4);
    set.spec.selector = selector();
    set.spec.template = template("v1");
    running.put("apps/v1/replicasets", &set);
    for name in ["a", "b", "c"] {
        let owner = controller_ref::<ReplicaSet>(&set.metadata);
        running.put("v1/pods", &ready(pod(name, "Running", Some(owner)), 1));
    }
    let mut budget = budget();
    budget.spec.max_unavailable = Some(IntOrString::Str("50%".into()));
    running.put("policy/v1/poddisruptionbudgets", &budget);
    run_until_idle().await;
    let live = running.client.namespaced::<PodDisruptionBudget>("ns").get("budget").await.unwrap();
    let status = live.status;
    assert_eq!((status.expected_pods, status.desired_healthy, status.disruptions_allowed), (4, 2, 1));
    running.assert_steady().await;
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_not_known_yet_are_asked_for() {
    for (kind, version, expected) in [
        ("ConfigMap", "v1", "configmaps does not implement the scale subresource"),
        ("Widget", "example.com/v1", "no matches for kind \"Widget\" in version \"example.com/v1\""),
    ] {
        let running = Running::start_over(&[DESCRIPTOR], Settings::default(), |server| {
            Arc::new(WithDiscovery(server.transport()))
        });
        let owner = OwnerReference {
            api_version: version.into(),
            kind: kind.into(),
            name: "o".into(),
            uid: "o-uid".into(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        running.put("v1/pods", &ready(pod("a", "Running", Some(owner)), 1));
        let mut budget = budget();
        budget.spec.max_unavailable = Some(IntOrString::Int(1));
        running.put("policy/v1/poddisruptionbudgets", &budget);
        run_until_idle().await;
        let live = running.client.namespaced::<PodDisruptionBudget>("ns").get("budget").await.unwrap();
        let shown: Vec<_> =
            live.status.conditions.iter().map(|one| (one.reason.as_str(), one.message.as_str())).collect();
        assert_eq!(shown, [("SyncFailed", expected)]);
    }
}

/// Loses so many writes that do not say that something has failed.
struct Loses(Arc<dyn Transport>, std::sync::atomic::AtomicU32);

#[async_trait::async_trait]
impl Transport for Loses {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        use std::sync::atomic::Ordering::Relaxed;
        let tells =
            request.method() == http::Method::PUT && !String::from_utf8_lossy(request.body()).contains("SyncFailed");
        if tells && self.1.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Err(TransportError::Broken("lost".into()));
        }
        self.0.send(request).await
    }

    fn server(&self) -> &str {
        self.0.server()
    }
}

/// The failure is told once; nothing changes from then on.
#[tokio::test(start_paused = true)]
async fn a_budget_whose_count_was_lost_twice_is_counted_again() {
    let running =
        Running::start_over(&[DESCRIPTOR], Settings::default(), |server| Arc::new(Loses(server.transport(), 3.into())));
    running.put("v1/pods", &ready(pod("a", "Running", None), 1));
    let mut budget = budget();
    budget.spec.min_available = Some(IntOrString::Int(0));
    running.put("policy/v1/poddisruptionbudgets", &budget);
    run_until_idle().await;
    let live = running.client.namespaced::<PodDisruptionBudget>("ns").get("budget").await.unwrap();
    assert_eq!((live.status.current_healthy, live.status.disruptions_allowed), (1, 1));
}
