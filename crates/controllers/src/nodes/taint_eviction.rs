//! Deletes pods from nodes with a `NoExecute` taint that they do not tolerate, or no longer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::DeleteOptions;
use api_machinery::time::Time;
use api_machinery::value::{ValueMap, to_value};
use api_types::core_v1::{Node, ObjectReference, Pod, PodCondition, Taint, Toleration};
use client::{Change, ClientError, EventType, Informer, ObjectKey, Patch};
use component_base::Feature;
use component_base::metrics::{Counters, Desc, Histograms, Stability};
use component_helpers::conditions;
use component_helpers::taints::{Comparing, tolerates};
use controller::{Build, BuildError, Controller, Cx, Descriptor, NODE_NAME, Next, ReconcileError};
use parking_lot::Mutex;
use tokio::time::Instant;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "taint-eviction-controller",
    aliases: &[],
    gates: &[Feature::named("SeparateTaintEvictionController")],
    identity: "node-controller",
    event_component: "taint-eviction-controller",
    disabled_by_default: false,
    build,
};

const DELETIONS: Desc =
    Desc::new("taint_eviction_controller_pod_deletions_total", "Pods that were deleted.", Stability::Alpha);
const DELAYS: Desc = Desc::new(
    "taint_eviction_controller_pod_deletion_duration_seconds",
    "From the time a pod had to leave until it was deleted.",
    Stability::Alpha,
)
.buckets(&[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0]);

const WORKERS: usize = 8;
const NO_EXECUTE: &str = "NoExecute";
/// Tries to evict a pod before the queue takes over.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(10);
/// Whoever may stay for longer than this stays for ever: a moment so far off cannot be written.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("noexec_taint_pod");
    let nodes = build.watch::<Node>().informer();
    let by_node = |pod: &Pod| Some(pod.spec.node_name.clone()).filter(|node| !node.is_empty()).into_iter().collect();
    let pods = build.watch::<Pod>().index(NODE_NAME, by_node).enqueue_keys(&queue, concerned).informer();
    let on_node = pods.clone();
    let tainted = move |change: &Change<Node>| {
        // A node that goes changes nothing: what is planned stays, until the pods go or it comes back.
        let is_same = change.old().is_some_and(|old| no_execute(old) == no_execute(change.object()));
        if is_same || change.is_deleted() {
            return Vec::new();
        }
        let pods = on_node.by_index(NODE_NAME, &change.object().metadata.name);
        pods.iter().map(|pod| ObjectKey::of(&pod.metadata)).collect()
    };
    drop(build.watch::<Node>().enqueue_keys(&queue, tainted));
    let (deletions, delays) = (build.metrics().counters(&DELETIONS), build.metrics().histograms(&DELAYS));
    let comparing = Comparing::by(build.gates());
    let controller = TaintEviction { nodes, pods, comparing, plans: Mutex::default(), deletions, delays };
    build.run(&queue, WORKERS, Arc::new(controller));
    Ok(())
}

/// Pods whose node, tolerations or existence changed.
fn concerned(change: &Change<Pod>) -> Option<ObjectKey> {
    let pod = change.object();
    let changed = change
        .old()
        .is_none_or(|old| old.spec.node_name != pod.spec.node_name || old.spec.tolerations != pod.spec.tolerations);
    changed.then(|| change.key())
}

/// The taints of a node that drive pods away.
fn no_execute(node: &Node) -> Vec<Taint> {
    node.spec.taints.iter().filter(|taint| taint.effect == NO_EXECUTE).cloned().collect()
}

struct TaintEviction {
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    comparing: Comparing,
    /// Pods that are to go later, by uid, and since when; bounded by the pods there are.
    plans: Mutex<HashMap<ObjectKey, (String, Planned)>>,
    deletions: Counters,
    delays: Histograms,
}

/// An eviction to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Planned {
    start: Instant,
    fire: Instant,
}

/// How long a pod may stay.
#[derive(Debug, PartialEq, Eq)]
enum Stay {
    ForEver,
    For(Duration),
}

/// How long a pod with these tolerations may stay on a node with these taints. The first toleration that fits a taint
/// counts for it; the shortest time of all decides.
fn stay(taints: &[Taint], tolerations: &[Toleration], comparing: Comparing) -> Stay {
    let mut shortest: Option<Duration> = None;
    for taint in taints {
        let Some(toleration) = tolerations.iter().find(|toleration| tolerates(toleration, taint, comparing)) else {
            return Stay::For(Duration::ZERO);
        };
        if let Some(seconds) = toleration.toleration_seconds {
            let time = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            shortest = Some(shortest.map_or(time, |known| known.min(time)));
        }
    }
    shortest.filter(|time| *time < FOR_EVER).map_or(Stay::ForEver, Stay::For)
}

/// The plan after the time a pod may stay was found anew: an earlier plan stays when it is due sooner, and a new one
/// counts from where the earlier one began.
fn replan(before: Option<Planned>, time: Duration, now: Instant) -> Planned {
    let fresh = Planned { start: now, fire: now + time };
    match before {
        None => fresh,
        Some(before) if before.start + time < fresh.fire => before,
        Some(before) => Planned { start: before.start, fire: fresh.fire },
    }
}

#[async_trait::async_trait]
impl Controller for TaintEviction {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(pod) = self.pods.get(key) else {
            self.cancel(cx, key);
            return Ok(Next::Done);
        };
        let now = cx.clock.monotonic();
        let Some(plan) = self.plan(key, &pod, now) else {
            self.cancel(cx, key);
            return Ok(Next::Done);
        };
        if now < plan.fire {
            return Ok(Next::After(plan.fire - now));
        }
        if evict(cx, key, &pod).await? {
            self.deletions.with(&[]).inc();
            let late = cx.clock.monotonic().saturating_duration_since(plan.fire);
            self.delays.with(&[]).observe(late.as_secs_f64());
        }
        self.plans.lock().remove(key);
        Ok(Next::Done)
    }
}

impl TaintEviction {
    /// When the pod is to go, if it is. Of a node that is gone what was planned stays.
    fn plan(&self, key: &ObjectKey, pod: &Pod, now: Instant) -> Option<Planned> {
        let mut plans = self.plans.lock();
        // What was planned for an earlier pod of the name is none of this one's business.
        let before = plans.get(key).filter(|(uid, _)| *uid == pod.metadata.uid).map(|(_, plan)| *plan);
        let Some(node) = self.nodes.find("", &pod.spec.node_name) else { return before };
        let plan = match stay(&no_execute(&node), &pod.spec.tolerations, self.comparing) {
            Stay::ForEver => return None,
            Stay::For(Duration::ZERO) => Planned { start: now, fire: now },
            Stay::For(time) => replan(before, time, now),
        };
        plans.insert(key.clone(), (pod.metadata.uid.clone(), plan));
        Some(plan)
    }

    fn cancel(&self, cx: &Cx, key: &ObjectKey) {
        let planned = self.plans.lock().remove(key);
        if planned.is_some_and(|(_, plan)| cx.clock.monotonic() < plan.fire) {
            tell(cx, key, format!("Cancelling deletion of Pod {key}"));
        }
    }
}

/// Says whether the pod was deleted here.
async fn evict(cx: &Cx, key: &ObjectKey, seen: &Pod) -> Result<bool, ClientError> {
    if seen.metadata.deletion_timestamp.is_some() {
        return Ok(false);
    }
    tell(cx, key, format!("Marking for deletion Pod {key}"));
    let mut left = TRIES;
    loop {
        left -= 1;
        match evict_once(cx, key, &seen.metadata.uid, by_taint_manager, || {}).await {
            Ok(deleted) => return Ok(deleted),
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) if left == 0 => return Err(error),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Says why in a condition, then deletes with the pod's own grace period. Says whether it was this pod, and still there;
/// `announce` is called where it is, before anything is done.
pub(crate) async fn evict_once(
    cx: &Cx,
    key: &ObjectKey,
    uid: &str,
    why: fn(&Pod) -> PodCondition,
    announce: impl FnOnce() + Send,
) -> Result<bool, ClientError> {
    let pods = cx.client.namespaced::<Pod>(&key.namespace);
    let live = pods.get(&key.name).await?;
    if live.metadata.uid != uid || live.metadata.deletion_timestamp.is_some() {
        return Ok(false);
    }
    announce();
    let mut changed = live.status.conditions.clone();
    if conditions::set(&mut changed, why(&live), Time::from(cx.clock.wall())) {
        let target: Vec<PodCondition> = changed.into_iter().filter(|one| one.type_ == "DisruptionTarget").collect();
        pods.patch_status(&key.name, &disruption_patch(uid, &target)).await?;
    }
    pods.delete_this(&live.metadata, DeleteOptions::default()).await
}

fn by_taint_manager(pod: &Pod) -> PodCondition {
    PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        observed_generation: pod.metadata.generation,
        reason: "DeletionByTaintManager".to_owned(),
        message: "Taint manager: deleting due to NoExecute taint".to_owned(),
        ..PodCondition::default()
    }
}

fn disruption_patch(uid: &str, conditions: &[PodCondition]) -> Patch {
    let mut metadata = ValueMap::new();
    metadata.insert("uid".into(), uid.into());
    let mut status = ValueMap::new();
    status.insert("conditions".into(), to_value(&conditions.to_vec()));
    let mut body = ValueMap::new();
    body.insert("metadata".into(), metadata.into());
    body.insert("status".into(), status.into());
    Patch::Strategic(body.into())
}

fn tell(cx: &Cx, key: &ObjectKey, message: String) {
    let about = ObjectReference {
        kind: "Pod".to_owned(),
        api_version: "v1".to_owned(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        ..ObjectReference::default()
    };
    cx.events.event_for(about, EventType::Normal, "TaintManagerEviction", message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::node_taints::taint;
    use crate::workloads::fixtures::{Running, at, meta};

    /// The gates are the component's.
    const KNOWN: &[Descriptor] = &[Descriptor { gates: &[], ..DESCRIPTOR }];

    fn toleration(key: &str, seconds: Option<i64>) -> Toleration {
        Toleration { key: key.into(), operator: "Exists".into(), toleration_seconds: seconds, ..Toleration::default() }
    }

    #[test]
    fn the_shortest_toleration_decides() {
        let (a, b) = (taint("a", NO_EXECUTE, at(1)), taint("b", NO_EXECUTE, at(1)));
        let seconds = |seconds| Stay::For(Duration::from_secs(seconds));
        for (name, taints, tolerations, expected) in [
            ("no taints", vec![], vec![], Stay::ForEver),
            ("not tolerated", vec![a.clone()], vec![], seconds(0)),
            ("for ever", vec![a.clone()], vec![toleration("a", None)], Stay::ForEver),
            ("for a while", vec![a.clone()], vec![toleration("a", Some(300))], seconds(300)),
            (
                "the first one counts",
                vec![a.clone()],
                vec![toleration("a", Some(300)), toleration("a", Some(1))],
                seconds(300),
            ),
            (
                "the shorter one",
                vec![a.clone(), b.clone()],
                vec![toleration("a", Some(300)), toleration("b", Some(60))],
                seconds(60),
            ),
            ("one is missing", vec![a.clone(), b], vec![toleration("a", None)], seconds(0)),
            ("less than nothing", vec![a.clone()], vec![toleration("a", Some(-5))], seconds(0)),
            ("beyond all times", vec![a], vec![toleration("a", Some(i64::MAX))], Stay::ForEver),
        ] {
            assert_eq!(stay(&taints, &tolerations, Comparing::Texts), expected, "{name}");
        }
        let compared =
            Toleration { key: "k".into(), operator: "Lt".into(), value: "10".into(), ..Toleration::default() };
        let five = Taint { key: "k".into(), value: "5".into(), effect: NO_EXECUTE.into(), ..Taint::default() };
        let stays = |comparing| stay(std::slice::from_ref(&five), std::slice::from_ref(&compared), comparing);
        assert_eq!(stays(Comparing::Numbers), Stay::ForEver);
        assert_eq!(stays(Comparing::Texts), Stay::For(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn updates_do_not_prolong_the_stay() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let first = replan(None, Duration::from_secs(300), now);
        assert_eq!(replan(Some(first), Duration::from_secs(300), after(100)), first);
        let shorter = replan(Some(first), Duration::from_secs(60), after(100));
        assert_eq!(shorter, first, "as upstream: what began earlier stays");
    }

    #[test]
    fn the_condition_is_of_the_generation_that_was_evicted() {
        let mut pod = Pod { metadata: meta("p"), ..Pod::default() };
        pod.metadata.generation = 3;
        assert_eq!(by_taint_manager(&pod).observed_generation, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn pods_leave_when_their_time_is_over() {
        let running = Running::start(KNOWN);
        let mut node = Node::default();
        node.metadata.name = "n".into();
        node.spec.taints.push(taint("a", NO_EXECUTE, at(1)));
        running.put("v1/nodes", &node);
        let pod = |name: &str, tolerations: Vec<Toleration>| {
            let mut pod = Pod { metadata: meta(name), ..Pod::default() };
            pod.spec.node_name = "n".into();
            pod.spec.tolerations = tolerations;
            pod
        };
        running.put("v1/pods", &pod("none", vec![]));
        running.put("v1/pods", &pod("some", vec![toleration("a", Some(300))]));
        running.put("v1/pods", &pod("all", vec![toleration("a", None)]));
        tokio::time::sleep(Duration::from_secs(10)).await;
        let deleted = |name: &str| running.requests("DELETE", name);
        assert_eq!((deleted("none"), deleted("some"), deleted("all")), (1, 0, 0), "{:?}", running.server.requests());
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!((deleted("none"), deleted("some"), deleted("all")), (1, 1, 0));
        running.assert_shows("taint_eviction_controller_pod_deletions_total 2");
        running.put("v1/pods", &pod("gone", vec![toleration("a", Some(300))]));
        tokio::time::sleep(Duration::from_secs(10)).await;
        running.server.remove("v1/pods", "ns", "gone");
        tokio::time::sleep(Duration::from_secs(30)).await;
        let events = running.server.objects("v1/events");
        let said: Vec<_> = events.iter().filter_map(|event| event["message"].as_str()).collect();
        assert!(said.contains(&"Cancelling deletion of Pod ns/gone"), "{said:?}");
    }

    /// A tainted node with a pod that may stay on it for that long.
    fn put_for_300_seconds(running: &Running) -> (Node, Pod) {
        let (mut node, mut pod) = (Node::default(), Pod { metadata: meta("p"), ..Pod::default() });
        node.metadata.name = "n".into();
        node.spec.taints.push(taint("a", NO_EXECUTE, at(1)));
        running.put("v1/nodes", &node);
        pod.spec.node_name = "n".into();
        pod.spec.tolerations = vec![toleration("a", Some(300))];
        running.put("v1/pods", &pod);
        (node, pod)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_planned_stays_when_the_node_goes_and_not_when_it_comes_back() {
        for (comes_back, expected) in
            [(false, (1, vec!["Marking for deletion Pod ns/p"])), (true, (0, vec!["Cancelling deletion of Pod ns/p"]))]
        {
            let running = Running::start(KNOWN);
            let (mut node, _) = put_for_300_seconds(&running);
            tokio::time::sleep(Duration::from_secs(10)).await;
            running.server.remove("v1/nodes", "", "n");
            tokio::time::sleep(Duration::from_secs(10)).await;
            if comes_back {
                node.spec.taints.clear();
                running.put("v1/nodes", &node);
            }
            tokio::time::sleep(Duration::from_secs(300)).await;
            let events = running.server.objects("v1/events");
            let said = events.iter().filter_map(|event| event["message"].as_str()).collect();
            assert_eq!((running.requests("DELETE", "p"), said), expected, "{comes_back}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_pod_of_a_name_has_its_own_time() {
        let running = Running::start(KNOWN);
        let (_, mut pod) = put_for_300_seconds(&running);
        tokio::time::sleep(Duration::from_secs(200)).await;
        // While nobody watched, another one came in its place.
        "other".clone_into(&mut pod.metadata.uid);
        running.put("v1/pods", &pod);
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_eq!(running.requests("DELETE", "p"), 0, "{:?}", running.server.requests());
        tokio::time::sleep(Duration::from_secs(110)).await;
        assert_eq!(running.requests("DELETE", "p"), 1);
    }
}
