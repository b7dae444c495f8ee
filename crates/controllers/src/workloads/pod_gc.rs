//! Removes pods that nothing else removes: ended ones beyond a number, those of nodes that are gone or out of service,
//! and deleted ones that never got a node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::DeleteOptions;
use api_machinery::time::Time;
use api_machinery::value::to_value;
use api_types::core_v1::{Node, Pod, PodCondition};
use client::{Client, ClientError, Informer, ObjectKey, Patch};
use component_base::metrics::{Counters, Desc, Stability};
use component_helpers::{nodes, pod_state};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use crate::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "pod-garbage-collector-controller",
    aliases: &["podgc"],
    gates: &[],
    identity: "pod-garbage-collector",
    event_component: "",
    disabled_by_default: false,
    build,
};

const DELETIONS: Desc =
    Desc::new("pod_gc_collector_force_delete_pods_total", "Pods that were to be removed by force.", Stability::Alpha)
        .labels(&["namespace", "reason"]);
const FAILURES: Desc = Desc::new(
    "pod_gc_collector_force_delete_pod_errors_total",
    "Pods that could not be removed by force.",
    Stability::Alpha,
)
.labels(&["namespace", "reason"]);

/// How often everything is looked at.
const PERIOD: Duration = Duration::from_secs(20);
/// How long a node must be missing from the cache before its absence is believed enough to ask the server.
const QUARANTINE: Duration = Duration::from_secs(40);
/// The taint by which people say that a node will not come back.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Most pods that are collected at the same time.
const PARALLEL: usize = 100;

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let threshold = build.settings::<Settings>()?.terminated_pod_gc_threshold;
    let collector = PodGc {
        pods: build.watch::<Pod>().informer(),
        nodes: build.watch::<Node>().informer(),
        threshold,
        missing: Mutex::default(),
        deletions: build.metrics().counters(&DELETIONS),
        failures: build.metrics().counters(&FAILURES),
    };
    build.every("orphaned_pods_nodes", PERIOD, Arc::new(collector));
    Ok(())
}

struct PodGc {
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    threshold: i32,
    /// Nodes that pods name and the cache does not have, with when that was seen first. Bounded by what pods name.
    missing: Mutex<BTreeMap<String, Instant>>,
    deletions: Counters,
    failures: Counters,
}

#[async_trait::async_trait]
impl Controller for PodGc {
    async fn reconcile(&self, cx: &Cx, _key: &ObjectKey) -> Result<Next, ReconcileError> {
        let pods = self.pods.list();
        let nodes: BTreeMap<_, _> =
            self.nodes.list().into_iter().map(|node| (node.metadata.name.clone(), node)).collect();
        let mut errors = Vec::new();
        errors.extend(self.collect_all(cx, &terminated(&pods, self.threshold), "terminated").await);
        errors.extend(self.collect_all(cx, &out_of_service(&pods, &nodes), "out-of-service").await);
        let deleted = self.deleted_nodes(cx, &pods, &nodes).await;
        let now = Time::from(cx.clock.wall());
        for pod in pods.iter().filter(|pod| deleted.contains(&pod.spec.node_name)) {
            errors.extend(self.counted(cx, pod, Some(node_is_gone(pod, now)), "orphaned").await.err());
        }
        for pod in never_scheduled(&pods) {
            errors.extend(self.counted(cx, &pod, None, "unscheduled").await.err());
        }
        ReconcileError::join(errors.into_iter().map(ReconcileError::from).collect())?;
        Ok(Next::Done)
    }
}

impl PodGc {
    /// The nodes that have been missing for long enough and that the server does not know either.
    async fn deleted_nodes(&self, cx: &Cx, pods: &[Arc<Pod>], nodes: &BTreeMap<String, Arc<Node>>) -> BTreeSet<String> {
        let now = cx.clock.monotonic();
        let due = overdue(&mut self.missing.lock(), pods, nodes, now);
        let mut deleted = BTreeSet::new();
        for name in due {
            match cx.client.all::<Node>().get_opt(&name).await {
                Ok(None) => drop(deleted.insert(name)),
                Ok(Some(_)) => {}
                Err(error) => tracing::warn!(node = name, %error, "Missing node not looked up, trying again later"),
            }
        }
        deleted
    }
}

impl PodGc {
    async fn collect_all(&self, cx: &Cx, pods: &[Arc<Pod>], reason: &str) -> Vec<ClientError> {
        let mut errors = Vec::new();
        for some in pods.chunks(PARALLEL) {
            let outcomes = join_all(some.iter().map(|pod| self.counted(cx, pod, None, reason))).await;
            errors.extend(outcomes.into_iter().filter_map(Result::err));
        }
        errors
    }

    /// Collects a pod and counts it, and where that fails too.
    async fn counted(
        &self,
        cx: &Cx,
        pod: &Pod,
        condition: Option<PodCondition>,
        reason: &str,
    ) -> Result<(), ClientError> {
        let labels = &[pod.metadata.namespace.as_str(), reason];
        self.deletions.with(labels).inc();
        let outcome = collect(&cx.client, pod, condition).await;
        if outcome.is_err() {
            self.failures.with(labels).inc();
        }
        outcome
    }
}

/// Brings the record of missing nodes up to date and takes those out whose quarantine is over.
fn overdue(
    missing: &mut BTreeMap<String, Instant>,
    pods: &[Arc<Pod>],
    nodes: &BTreeMap<String, Arc<Node>>,
    now: Instant,
) -> Vec<String> {
    let named = pods.iter().map(|pod| &pod.spec.node_name).filter(|name| !name.is_empty());
    let absent: BTreeSet<&String> = named.filter(|name| !nodes.contains_key(*name)).collect();
    missing.retain(|name, _| absent.contains(name));
    for name in absent {
        missing.entry(name.clone()).or_insert(now);
    }
    let due: Vec<_> = missing
        .iter()
        .filter(|(_, since)| now.saturating_duration_since(**since) >= QUARANTINE)
        .map(|(name, _)| name.clone())
        .collect();
    for name in &due {
        missing.remove(name);
    }
    due
}

/// The ended pods beyond the threshold: evicted ones first, then the oldest.
fn terminated(pods: &[Arc<Pod>], threshold: i32) -> Vec<Arc<Pod>> {
    let Ok(threshold @ 1..) = usize::try_from(threshold) else { return Vec::new() };
    let ended = |pod: &&Arc<Pod>| !matches!(pod.status.phase.as_str(), "Pending" | "Running" | "Unknown");
    let mut ended: Vec<_> = pods.iter().filter(ended).cloned().collect();
    let excess = ended.len().saturating_sub(threshold);
    let kept = |pod: &Pod| !(pod.status.phase == "Failed" && pod.status.reason == "Evicted");
    ended.sort_by(|one, two| {
        let rank = |pod: &Pod| (kept(pod), pod.metadata.creation_timestamp);
        rank(one).cmp(&rank(two)).then_with(|| one.metadata.name.cmp(&two.metadata.name))
    });
    ended.truncate(excess);
    ended
}

/// Deleted pods on nodes that are not ready and said to be out of service.
fn out_of_service(pods: &[Arc<Pod>], nodes: &BTreeMap<String, Arc<Node>>) -> Vec<Arc<Pod>> {
    let lost =
        |node: &Arc<Node>| !nodes::is_ready(node) && node.spec.taints.iter().any(|taint| taint.key == OUT_OF_SERVICE);
    let going = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_some());
    going.filter(|pod| nodes.get(&pod.spec.node_name).is_some_and(lost)).cloned().collect()
}

/// Deleted pods without a node, which no kubelet will ever remove.
fn never_scheduled(pods: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    let waiting = |pod: &&Arc<Pod>| pod.metadata.deletion_timestamp.is_some() && pod.spec.node_name.is_empty();
    pods.iter().filter(waiting).cloned().collect()
}

fn node_is_gone(pod: &Pod, now: Time) -> PodCondition {
    PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: "DeletionByPodGC".to_owned(),
        message: "PodGC: node no longer exists".to_owned(),
        last_transition_time: now,
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    }
}

/// Marks a pod as failed, unless it has ended, and deletes it at once.
async fn collect(client: &Client, pod: &Pod, condition: Option<PodCondition>) -> Result<(), ClientError> {
    let pods = client.namespaced::<Pod>(&pod.metadata.namespace);
    let name = &pod.metadata.name;
    if !pod_state::is_terminal(pod) {
        match pods.patch_status(name, &failed(pod, condition)).await {
            Err(error) if error.is_not_found() => return Ok(()),
            outcome => drop(outcome?),
        }
    }
    let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    pods.delete_this(&pod.metadata, options).await.map(drop)
}

fn failed(pod: &Pod, condition: Option<PodCondition>) -> Patch {
    let conditions: Vec<_> = condition.iter().map(|condition| to_value(condition)).collect();
    let mut status = json!({"phase": "Failed", "observedGeneration": pod.metadata.generation});
    if !conditions.is_empty() {
        status["conditions"] = conditions.into();
    }
    Patch::Strategic(json!({"metadata": {"uid": pod.metadata.uid}, "status": status}))
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{NodeCondition, Taint};

    use super::super::fixtures::{Running, at, dying, meta, pod};
    use super::*;

    fn shared(pods: Vec<Pod>) -> Vec<Arc<Pod>> {
        pods.into_iter().map(Arc::new).collect()
    }

    fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
        pods.iter().map(|pod| pod.metadata.name.as_str()).collect()
    }

    fn node(name: &str, ready: &str, taint: Option<&str>) -> (String, Arc<Node>) {
        let mut node = Node::default();
        node.metadata.name = name.into();
        let condition = NodeCondition { type_: "Ready".into(), status: ready.into(), ..NodeCondition::default() };
        node.status.conditions.push(condition);
        node.spec.taints.extend(taint.map(|key| Taint { key: key.into(), ..Taint::default() }));
        (name.into(), Arc::new(node))
    }

    #[test]
    fn ended_pods_beyond_the_threshold_go() {
        let created = |name: &str, phase: &str, when| {
            let mut pod = pod(name, phase, None);
            pod.metadata.creation_timestamp = at(when);
            pod
        };
        let mut evicted = created("evicted", "Failed", 9);
        evicted.status.reason = "Evicted".into();
        let pods = shared(vec![
            created("young", "Succeeded", 5),
            created("old", "Failed", 1),
            created("running", "Running", 0),
            evicted,
        ]);
        assert_eq!(names(&terminated(&pods, 1)), ["evicted", "old"]);
        assert_eq!(names(&terminated(&pods, 3)), Vec::<&str>::new());
        assert_eq!(names(&terminated(&pods, 0)), Vec::<&str>::new(), "0 switches it off");
    }

    #[test]
    fn only_deleted_pods_of_lost_nodes_go() {
        let on = |name: &str, node: &str| {
            let mut pod = dying(pod(name, "Running", None));
            pod.spec.node_name = node.into();
            pod
        };
        let mut live = on("live", "lost");
        live.metadata.deletion_timestamp = None;
        let pods = shared(vec![on("a", "lost"), on("b", "down"), on("c", "up"), live]);
        let nodes = [
            node("lost", "False", Some(OUT_OF_SERVICE)),
            node("down", "False", None),
            node("up", "True", Some(OUT_OF_SERVICE)),
        ];
        assert_eq!(names(&out_of_service(&pods, &nodes.into())), ["a"]);
        assert_eq!(names(&never_scheduled(&shared(vec![on("x", ""), on("y", "n")]))), ["x"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_node_is_waited_for() {
        let (mut missing, start) = (BTreeMap::new(), Instant::now());
        let pods = shared(vec![pod("a", "Running", None)]);
        let (none, there) = (BTreeMap::new(), BTreeMap::from([node("n", "True", None)]));
        let later = |seconds| start + Duration::from_secs(seconds);
        assert!(overdue(&mut missing, &pods, &none, start).is_empty());
        assert!(overdue(&mut missing, &pods, &none, later(39)).is_empty());
        assert_eq!(overdue(&mut missing, &pods, &none, later(40)), ["n"]);
        assert!(overdue(&mut missing, &pods, &none, later(41)).is_empty());
        assert!(overdue(&mut missing, &pods, &there, later(60)).is_empty());
        assert!(overdue(&mut missing, &pods, &none, later(90)).is_empty(), "it was back in between");
    }

    #[tokio::test(start_paused = true)]
    async fn pods_of_a_deleted_node_fail_and_go() {
        let running = Running::start(&[DESCRIPTOR]);
        running.put("v1/nodes", &*node("m", "True", None).1);
        let mut fine = pod("fine", "Running", None);
        fine.spec.node_name = "m".into();
        running.put("v1/pods", &fine);
        running.put("v1/pods", &pod("lost", "Running", None));
        tokio::time::sleep(Duration::from_secs(39)).await;
        assert_eq!(running.count("v1/pods"), 2);
        tokio::time::sleep(Duration::from_secs(30)).await;
        let left = running.server.objects("v1/pods");
        assert_eq!((left.len(), &left[0]["metadata"]["name"]), (1, &json!(meta("fine").name)));
        assert_eq!(running.requests("PATCH", "/pods/lost/status"), 1);
        running.assert_shows("pod_gc_collector_force_delete_pods_total{namespace=\"ns\",reason=\"orphaned\"} 1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_took_the_name_of_a_lost_one_stays() {
        let running = Running::start(&[DESCRIPTOR]);
        running.put("v1/pods", &pod("web-0", "Failed", None));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let seen = running.client.namespaced::<Pod>("ns").get("web-0").await.unwrap();
        let mut next = pod("web-0", "Running", None);
        next.metadata.uid = "another".into();
        running.put("v1/pods", &next);
        collect(&running.client, &seen, None).await.unwrap();
        assert_eq!(running.count("v1/pods"), 1);
    }
}
