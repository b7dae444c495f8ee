//! What must hold of the objects of one kind at every moment.

use std::collections::{BTreeMap, BTreeSet};

use api_machinery::object::{Kind, Object};
use api_machinery::quantity::Quantity;
use api_types::apps_v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use api_types::batch_v1::{CronJob, Job};
use api_types::core_v1::{ConfigMap, Namespace, Node, Pod, ReplicationController, ResourceQuota, ServiceAccount};
use api_types::discovery_v1::EndpointSlice;
use api_types::networking_v1::IPAddress;
use api_types::policy_v1::PodDisruptionBudget;
use api_types::snapshot_v1::{VolumeSnapshot, VolumeSnapshotContent};

use testing::{CORES_PER_NODE, millicores};

use super::history::version;
use crate::workloads::{BOUNDED, COUNTED, ELASTIC, FEWEST, LARGEST, MOST, is_ready, is_refused};

/// Of an evicted pod's condition.
const EVICTED: &str = "EvictionByEvictionAPI";
/// Holds a Job's pod until it is counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Says of which moment a CronJob's Job is.
const SLOT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// One object as it was and as it is, among all of its kind, with itself.
pub(super) struct Change<'a, T> {
    pub(super) before: Option<&'a T>,
    pub(super) now: &'a T,
    pub(super) all: &'a BTreeMap<String, T>,
}

/// A kind that is watched.
pub(crate) trait Watched: Kind + Object + Send + Sync {
    /// What its rules have to know of what has been.
    type Memory: Default + Send;

    /// What a change has violated.
    fn check(_memory: &mut Self::Memory, _change: &Change<'_, Self>) -> Vec<String> {
        Vec::new()
    }
}

/// Kinds of which nothing must hold but what must of every kind.
macro_rules! plain {
    ($($kind:ty),*) => { $(impl Watched for $kind { type Memory = (); })* };
}
plain!(
    ConfigMap,
    ControllerRevision,
    CronJob,
    DaemonSet,
    IPAddress,
    Namespace,
    Node,
    ReplicaSet,
    ReplicationController,
    ServiceAccount,
    StatefulSet,
    VolumeSnapshot,
    VolumeSnapshotContent
);

/// What is known of pods that other kinds speak of, by uid.
#[derive(Default)]
pub(crate) struct Pods {
    pub(super) addresses: BTreeMap<String, String>,
    /// The version at which they were ready first.
    pub(super) ready: BTreeMap<String, u64>,
    /// The names of pods that were evicted while they were ready and not about to end.
    pub(super) evicted: BTreeSet<String>,
    /// The pods of the Job that only counts them, which succeeded while they were held to be counted.
    pub(super) succeeded: BTreeSet<String>,
    /// Those that did once their end had begun: it counts them as failed if it has looked in between.
    pub(super) succeeded_at_the_end: BTreeSet<String>,
    /// Of those, the ones that were let go, with the version.
    pub(super) let_go: BTreeMap<String, u64>,
    /// The names of pods that were there although their namespace's quota was used up.
    pub(super) over_quota: BTreeSet<String>,
    /// When nodes were asked for more than they have.
    pub(super) overcommitted: Vec<String>,
    /// The names of the pods of that namespace, by the version at which each was there first.
    pub(super) bounded: BTreeMap<u64, String>,
}

impl Watched for Pod {
    type Memory = Pods;

    fn check(memory: &mut Pods, change: &Change<'_, Self>) -> Vec<String> {
        let (pod, name) = (change.now, &change.now.metadata.name);
        remember(memory, change);
        let mut broken = Vec::new();
        if let Some(node) = change.before.map(|pod| &pod.spec.node_name).filter(|node| !node.is_empty())
            && *node != pod.spec.node_name
        {
            broken.push(format!("{name} moved from {node} to {}", pod.spec.node_name));
        }
        if let Some(before) = change.before.map(|pod| pod.status.phase.as_str())
            && matches!(before, "Succeeded" | "Failed")
            && before != pod.status.phase
        {
            broken.push(format!("{name} had {before} and is {} now", pod.status.phase));
        }
        let live = || change.all.values().filter(|pod| !has_ended(pod));
        let node = &pod.spec.node_name;
        let there = || live().filter(|pod| !node.is_empty() && pod.spec.node_name == *node);
        let asked: i64 = there().map(millicores).sum();
        let given: i64 = there().filter(|pod| pod.status.phase == "Running").map(millicores).sum();
        if given > CORES_PER_NODE * 1000 {
            broken.push(format!("{node} has given {given} thousandths of a core"));
        }
        if asked > CORES_PER_NODE * 1000 || is_refused(pod) {
            memory.overcommitted.push(format!("{node} is asked for {asked} thousandths of a core, by {name} last"));
        }
        // One whose end has begun is not counted once its time is over.
        let counts = |pod: &&Pod| pod.metadata.namespace == BOUNDED && pod.metadata.deletion_timestamp.is_none();
        if i32::try_from(live().filter(counts).count()).is_ok_and(|counted| counted > MOST) {
            memory.over_quota.insert(name.clone());
        }
        broken
    }
}

fn remember(memory: &mut Pods, change: &Change<'_, Pod>) {
    let (pod, uid) = (change.now, &change.now.metadata.uid);
    if pod.metadata.namespace == BOUNDED && change.before.is_none() {
        memory.bounded.insert(version(&pod.metadata), pod.metadata.name.clone());
    }
    if !pod.status.pod_ip.is_empty() {
        memory.addresses.insert(uid.clone(), pod.status.pod_ip.clone());
    }
    if is_ready(pod) {
        memory.ready.entry(uid.clone()).or_insert_with(|| version(&pod.metadata));
    }
    let is_evicted = |pod: &Pod| pod.status.conditions.iter().any(|own| own.reason == EVICTED);
    // One whose end has begun is evicted whatever its budget says.
    let counts = |before: &Pod| is_ready(before) && before.metadata.deletion_timestamp.is_none();
    if change.before.is_some_and(|before| counts(before) && !is_evicted(before)) && is_evicted(pod) {
        memory.evicted.insert(pod.metadata.name.clone());
    }
    let is_of_job = pod.metadata.owner_references.iter().any(|owner| owner.name == COUNTED);
    let is_held = pod.metadata.finalizers.iter().any(|own| own == TRACKING);
    if is_of_job && pod.status.phase == "Succeeded" && is_held && memory.succeeded.insert(uid.clone()) {
        let is_ending = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        if change.before.is_none_or(is_ending) && is_ending(pod) {
            memory.succeeded_at_the_end.insert(uid.clone());
        }
    }
    if memory.succeeded.contains(uid) && !is_held {
        memory.let_go.entry(uid.clone()).or_insert_with(|| version(&pod.metadata));
    }
}

fn has_ended(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
}

/// The one that an autoscaler sizes keeps to the limits of that.
impl Watched for Deployment {
    type Memory = ();

    fn check(_memory: &mut (), change: &Change<'_, Self>) -> Vec<String> {
        let size = change.now.spec.replicas.unwrap_or(1);
        let is_within = u32::try_from(size).is_ok_and(|size| (FEWEST..=LARGEST).contains(&size));
        if change.now.metadata.name != ELASTIC || is_within {
            return Vec::new();
        }
        vec![format!("{ELASTIC} was scaled to {size}, which is not within {FEWEST} and {LARGEST}")]
    }
}

/// What quotas have said.
#[derive(Default)]
pub(crate) struct Quotas {
    /// How they were exceeded.
    pub(super) exceeded: Vec<String>,
    /// By how many pods what is used rose, where that kept to what is allowed, by version.
    pub(super) charged: BTreeMap<u64, i64>,
}

impl Watched for ResourceQuota {
    type Memory = Quotas;

    fn check(memory: &mut Quotas, change: &Change<'_, Self>) -> Vec<String> {
        let status = &change.now.status;
        let is_over =
            |(resource, used): &(&String, &Quantity)| status.hard.get(*resource).is_some_and(|hard| *used > hard);
        let over = status.used.iter().filter(is_over);
        let over = over.map(|(resource, used)| format!("{used} of {resource} are used, which is more than allowed"));
        let over: Vec<String> = over.collect();
        let pods = |quota: &Self| quota.status.used.get("pods").map_or(0, Quantity::value);
        let rose = pods(change.now) - change.before.map_or(0, pods);
        if over.is_empty() && rose > 0 {
            memory.charged.insert(version(&change.now.metadata), rose);
        }
        memory.exceeded.extend(over);
        Vec::new()
    }
}

/// The names of pods that were ever announced as evicted.
impl Watched for PodDisruptionBudget {
    type Memory = BTreeSet<String>;

    fn check(announced: &mut BTreeSet<String>, change: &Change<'_, Self>) -> Vec<String> {
        let (now, mut broken) = (&change.now.status, Vec::new());
        let room = now.current_healthy.saturating_sub(now.desired_healthy).max(0);
        if now.disruptions_allowed < 0 || now.disruptions_allowed > room {
            broken.push(format!("{} disruptions are allowed where {room} are left", now.disruptions_allowed));
        }
        announced.extend(now.disrupted_pods.keys().cloned());
        let Some(before) = change.before.map(|before| &before.status) else { return broken };
        let new = now.disrupted_pods.keys().filter(|name| !before.disrupted_pods.contains_key(*name)).count();
        let paid = before.disruptions_allowed.saturating_sub(now.disruptions_allowed);
        if i32::try_from(new).is_ok_and(|new| new > 0 && paid != new) {
            broken.push(format!("{new} evictions were paid with {paid}"));
        }
        broken
    }
}

/// What is known of Jobs, by the pods' uids.
#[derive(Default)]
pub(crate) struct Jobs {
    /// The version at which a pod was noted as ended first.
    pub(super) noted: BTreeMap<String, u64>,
    /// The slots of CronJobs that had a Job, with its uid.
    slots: BTreeMap<(String, String), String>,
}

impl Watched for Job {
    type Memory = Jobs;

    fn check(memory: &mut Jobs, change: &Change<'_, Self>) -> Vec<String> {
        let (job, name, mut broken) = (change.now, &change.now.metadata.name, Vec::new());
        for pod in job.status.uncounted_terminated_pods.iter().flat_map(|own| own.succeeded.iter().chain(&own.failed)) {
            memory.noted.entry(pod.clone()).or_insert_with(|| version(&job.metadata));
        }
        if let Some(slot) = job.metadata.annotations.get(SLOT) {
            let owner = job.metadata.owner_references.first().map(|owner| owner.uid.clone()).unwrap_or_default();
            let known = memory.slots.entry((owner, slot.clone())).or_insert_with(|| job.metadata.uid.clone());
            if *known != job.metadata.uid {
                broken.push(format!("{name} is the second one for {slot}"));
            }
        }
        if let Some(before) = change.before.map(|before| &before.status)
            && (job.status.succeeded < before.succeeded || job.status.failed < before.failed)
        {
            broken.push(format!("{name} has fewer ended pods than before"));
        }
        let is_of =
            |outcome: &str| job.status.conditions.iter().any(|own| own.type_ == outcome && own.status == "True");
        if is_of("Complete") && is_of("Failed") {
            broken.push(format!("{name} is both complete and failed"));
        }
        broken
    }
}

/// Where slices ever led: the pod's uid and the address, with the first version at which that was ready.
pub(crate) type Led = BTreeMap<(String, String), u64>;

impl Watched for EndpointSlice {
    type Memory = Led;

    fn check(led: &mut Led, change: &Change<'_, Self>) -> Vec<String> {
        for endpoint in change.now.endpoints.iter().filter(|endpoint| endpoint.conditions.ready == Some(true)) {
            let Some(pod) = endpoint.target_ref.as_ref().filter(|target| target.kind == "Pod") else { continue };
            for address in &endpoint.addresses {
                let at = version(&change.now.metadata);
                led.entry((pod.uid.clone(), address.clone())).or_insert(at);
            }
        }
        Vec::new()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use api_machinery::object::from_value;
    use api_machinery::value::Value;
    use serde_json::json;

    use super::*;

    /// What is remembered and violated when objects change to these, one after the other.
    fn play<T: Watched>(objects: &[Value]) -> (T::Memory, Vec<String>) {
        let (mut memory, mut all, mut found) = (T::Memory::default(), BTreeMap::<String, T>::new(), Vec::new());
        for object in objects {
            let now: T = from_value(object).unwrap();
            let before = all.insert(now.meta().uid.clone(), now.clone());
            found.extend(T::check(&mut memory, &Change { before: before.as_ref(), now: &now, all: &all }));
        }
        (memory, found)
    }

    #[track_caller]
    pub(in super::super) fn case<T: Watched>(objects: &[Value], expected: Option<&str>) {
        let (_, found) = play::<T>(objects);
        match expected {
            None => assert_eq!(found, Vec::<String>::new()),
            Some(text) => assert!(found.iter().any(|line| line.contains(text)), "{text}: {found:?}"),
        }
    }

    #[test]
    fn pods_keep_to_quotas_and_outcomes() {
        let pod = |uid: &str, namespace: &str, rest: Value| {
            let mut pod = json!({"metadata": {"name": uid, "uid": uid, "namespace": namespace}});
            pod.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            pod
        };
        let bounded =
            |count: usize| (0..count).map(|uid| pod(&uid.to_string(), BOUNDED, json!({}))).collect::<Vec<_>>();
        let ended = pod("ended", BOUNDED, json!({"status": {"phase": "Failed"}}));
        let ending = json!({"metadata": {"name": "e", "uid": "e", "namespace": BOUNDED, "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        for (first, count, expected) in [(None, 3, 0), (None, 4, 1), (Some(ended), 3, 0), (Some(ending), 3, 0)] {
            let objects: Vec<Value> = first.into_iter().chain(bounded(count)).collect();
            let (memory, found) = play::<Pod>(&objects);
            assert_eq!((memory.over_quota.len(), found), (expected, Vec::new()));
        }
        let on_node = |uid: &str, cpu: &str, status: Value| {
            let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
            pod(uid, "x", json!({"spec": {"nodeName": "n", "containers": [container]}, "status": status}))
        };
        let (bound, refused) = (json!({}), json!({"phase": "Failed", "reason": testing::OUT_OF_CPU}));
        for (cpu, status, expected) in
            [("3", &bound, 0), ("4", &bound, 1), ("4", &json!({"phase": "Failed"}), 0), ("4", &refused, 1)]
        {
            let running = json!({"phase": "Running"});
            let (memory, found) = play::<Pod>(&[on_node("1", "5", running), on_node("2", cpu, status.clone())]);
            assert_eq!((memory.overcommitted.len(), found), (expected, Vec::new()), "{cpu} {status}");
        }
        let phase = |phase: &str| pod("1", "x", json!({"status": {"phase": phase}}));
        case::<Pod>(&[phase("Running"), phase("Failed"), phase("Failed")], None);
        case::<Pod>(&[phase("Failed"), phase("Running")], Some("had Failed and is Running"));
    }

    #[test]
    fn an_autoscaler_keeps_to_its_limits() {
        let deployment =
            |name: &str, size: i32| json!({"metadata": {"name": name, "uid": name}, "spec": {"replicas": size}});
        case::<Deployment>(&[deployment(ELASTIC, 1), deployment(ELASTIC, 4), deployment("web", 0)], None);
        case::<Deployment>(&[deployment(ELASTIC, 0)], Some("was scaled to 0"));
        case::<Deployment>(&[deployment(ELASTIC, 5)], Some("was scaled to 5"));
    }

    #[test]
    fn quotas_and_budgets_are_kept() {
        let quota =
            |used: &str| json!({"metadata": {"uid": "1"}, "status": {"hard": {"pods": "3"}, "used": {"pods": used}}});
        assert_eq!(play::<ResourceQuota>(&[quota("3")]).0.exceeded, Vec::<String>::new());
        assert_eq!(play::<ResourceQuota>(&[quota("4")]).0.exceeded, ["4 of pods are used, which is more than allowed"]);
        let budget = |healthy: i32, allowed: i32, disrupted: &[&str]| {
            let disrupted: BTreeMap<&str, &str> =
                disrupted.iter().map(|name| (*name, "2026-01-01T00:00:00Z")).collect();
            json!({"metadata": {"uid": "1"}, "status": {
                "currentHealthy": healthy, "desiredHealthy": 2, "disruptionsAllowed": allowed, "disruptedPods": disrupted}})
        };
        case::<PodDisruptionBudget>(&[budget(3, 1, &[]), budget(3, 0, &["a"]), budget(2, 0, &["a"])], None);
        case::<PodDisruptionBudget>(&[budget(3, 2, &[])], Some("2 disruptions are allowed where 1 are left"));
        case::<PodDisruptionBudget>(&[budget(1, -1, &[])], Some("-1 disruptions"));
        case::<PodDisruptionBudget>(&[budget(3, 1, &[]), budget(3, 1, &["a"])], Some("1 evictions were paid with 0"));
        case::<PodDisruptionBudget>(
            &[budget(3, 1, &[]), budget(3, 0, &["a", "b"])],
            Some("2 evictions were paid with 1"),
        );
    }

    #[test]
    fn jobs_come_once_and_only_count_up() {
        let job = |uid: &str, slot: &str, succeeded: i32| json!({"metadata": {"uid": uid, "annotations": {SLOT: slot}}, "status": {"succeeded": succeeded}});
        case::<Job>(&[job("1", "a", 0), job("1", "a", 1), job("2", "b", 0)], None);
        case::<Job>(&[job("1", "a", 0), job("2", "a", 0)], Some("is the second one for a"));
        case::<Job>(&[job("1", "a", 2), job("1", "a", 1)], Some("fewer ended pods"));
    }
}
