//! Deletes pods that use devices with a `NoExecute` taint that their claims do not tolerate, or no longer (KEP-5055).
//!
//! When a pod is to go follows from when the taint was added, so that a restart changes nothing. Slices have taints, and rules
//! give them to devices (gate `DRADeviceTaintRules`); a rule's status tells what it has come to.

mod due;
mod rule_status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::{Pod, PodCondition};
use api_types::resource_v1::constants::device_taint_effect::NO_EXECUTE;
use api_types::resource_v1::{DeviceTaint, ResourceClaim, ResourceSlice};
use api_types::resource_v1alpha3::DeviceTaintRule;
use client::{Change, EventType, ObjectKey};
use component_base::Feature;
use component_base::metrics::{Counters, Desc, Histograms, Stability};
use component_base::shared_gates::{DEVICE_TAINT_RULES, DEVICE_TAINTS, DEVICES, GROUP_CLAIMS};
use component_helpers::group_claims::Whose;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, Queue, ReconcileError};
use parking_lot::Mutex;

use crate::Settings;
use crate::devices::resource_claim::groups::{BY_GROUP, groups_of};
use crate::nodes::taint_eviction::evict_once;
use due::{BY_POOL, Due, RuleId, World, is_about, results};
use rule_status::{Evicted, PERIOD, RuleStatus};

/// The gates that this controller asks.
pub(crate) const GATES: &[Feature] = &[DEVICE_TAINTS, DEVICE_TAINT_RULES, GROUP_CLAIMS];

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "device-taint-eviction-controller",
    aliases: &[],
    gates: &[DEVICES, DEVICE_TAINTS],
    identity: "device-taint-eviction-controller",
    event_component: "device-taint-eviction-controller",
    disabled_by_default: false,
    build,
};

const DELETIONS: Desc =
    Desc::new("device_taint_eviction_controller_pod_deletions_total", "Pods that were deleted.", Stability::Alpha);
const DELAYS: Desc = Desc::new(
    "device_taint_eviction_controller_pod_deletion_duration_seconds",
    "From the time a pod had to leave until it was deleted.",
    Stability::Alpha,
)
.buckets(&[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0]);
const REASON: &str = "DeviceTaintManagerEviction";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let syncs = build.settings::<Settings>()?.device_taint_eviction_syncs;
    let queue = build.queue("device-taint-eviction-controller");
    let slices = build.watch::<ResourceSlice>().index(BY_POOL, |slice| vec![pool_of(slice)]).informer();
    let claims = build.watch::<ResourceClaim>().index(BY_POOL, pools_of).informer();
    let mut pods = build.watch::<Pod>().enqueue_keys(&queue, concerned);
    let mut whose = Whose::Own;
    if build.gates().enabled(GROUP_CLAIMS) {
        (pods, whose) = (pods.index(BY_GROUP, groups_of), Whose::OwnOrGroups);
    }
    let mut world = World { slices, claims, pods: pods.informer(), whose, rules: None };
    follow_devices(build, &queue, &world);
    let told = build.gates().enabled(DEVICE_TAINT_RULES).then(|| follow_rules(build, &queue, &mut world));
    let (deletions, delays) = (build.metrics().counters(&DELETIONS), build.metrics().histograms(&DELAYS));
    let eviction = DeviceTaintEviction { world, planned: Mutex::default(), told, deletions, delays };
    build.run(&queue, syncs, Arc::new(eviction));
    Ok(())
}

/// Has who uses devices looked at when these change, or whose they are.
fn follow_devices(build: &mut Build<'_>, queue: &Queue, world: &World) {
    let of_claims = world.clone();
    drop(build.watch::<ResourceClaim>().enqueue_keys(queue, move |change| consumers_after(&of_claims, change)));
    let using = world.clone();
    let tainted = move |change: &Change<ResourceSlice>| {
        let pools = change.old().map(|old| pool_of(old)).into_iter().chain([pool_of(change.object())]);
        let is_same = change.old().is_some_and(|old| taints_of(old) == taints_of(change.object()));
        if is_same {
            return Vec::new();
        }
        let claims = pools.flat_map(|pool| using.claims.by_index(BY_POOL, &pool));
        claims.flat_map(|claim| using.consumers(&claim)).collect()
    };
    drop(build.watch::<ResourceSlice>().enqueue_keys(queue, tainted));
}

/// Has rules count, and tells of them.
fn follow_rules(build: &mut Build<'_>, pods: &Queue, world: &mut World) -> Told {
    let queue = build.queue("device-taint-eviction-controller-rules");
    let using = world.clone();
    let changed = |change: &Change<DeviceTaintRule>| {
        change.is_deleted() || change.old().is_none_or(|old| old.spec != change.object().spec)
    };
    let concerned = move |change: &Change<DeviceTaintRule>| {
        if !changed(change) {
            return Vec::new();
        }
        let rules = change.old().map(AsRef::as_ref).into_iter().chain([change.object().as_ref()]);
        let rules: Vec<&DeviceTaintRule> = rules.filter(|rule| rule.spec.taint.effect == NO_EXECUTE).collect();
        let claims = using.claims.list().into_iter();
        let claims = claims.filter(|claim| results(claim).any(|own| rules.iter().any(|rule| is_about(rule, own))));
        claims.flat_map(|claim| using.consumers(&claim)).collect()
    };
    let rules = build.watch::<DeviceTaintRule>().enqueue_keys(pods, concerned);
    let rules = rules.enqueue_keys(&queue, move |change| changed(change).then(|| change.key())).informer();
    world.rules = Some(rules);
    let evicted = Evicted::default();
    let status = RuleStatus { world: world.clone(), evicted: Arc::clone(&evicted) };
    build.run(&queue, 1, Arc::new(status));
    Told { queue, evicted }
}

fn pool_of(slice: &ResourceSlice) -> String {
    format!("{}/{}", slice.spec.driver, slice.spec.pool.name)
}

fn pools_of(claim: &ResourceClaim) -> Vec<String> {
    let mut pools: Vec<_> = results(claim).map(|result| format!("{}/{}", result.driver, result.pool)).collect();
    pools.sort_unstable();
    pools.dedup();
    pools
}

/// What a slice says that matters here: which devices drive pods away, and in which generation of the pool.
fn taints_of(slice: &ResourceSlice) -> (String, i64, Vec<(&str, &DeviceTaint)>) {
    let devices = slice.spec.devices.iter();
    let taints = devices.flat_map(|device| device.taints.iter().map(|taint| (device.name.as_str(), taint)));
    (pool_of(slice), slice.spec.pool.generation, taints.filter(|(_, taint)| taint.effect == NO_EXECUTE).collect())
}

fn consumers_after(world: &World, change: &Change<ResourceClaim>) -> Vec<ObjectKey> {
    let before = change.old().map(|old| old.as_ref());
    let is_same = before.is_some_and(|old| {
        let (old, new) = (&old.status, &change.object().status);
        old.allocation == new.allocation && old.reserved_for == new.reserved_for
    });
    if is_same {
        return Vec::new();
    }
    before.into_iter().chain([change.object().as_ref()]).flat_map(|claim| world.consumers(claim)).collect()
}

/// Pods that are new or gone, or whose node or claims changed.
fn concerned(change: &Change<Pod>) -> Option<ObjectKey> {
    let pod = change.object();
    let is_same = change.old().is_some_and(|old| {
        old.spec.node_name == pod.spec.node_name
            && old.status.resource_claim_statuses == pod.status.resource_claim_statuses
    });
    (!is_same && !pod.spec.resource_claims.is_empty()).then(|| change.key())
}

/// A pod that is to go.
struct Planned {
    uid: String,
    due: Due,
}

/// Who is told of what becomes of pods that rules drive away.
struct Told {
    queue: Queue,
    evicted: Evicted,
}

impl Told {
    /// Has the status of rules looked at, once more may have happened.
    fn look<'r>(&self, rules: impl IntoIterator<Item = &'r RuleId>) {
        for (name, _) in rules {
            self.queue.add_after(ObjectKey::cluster(name.clone()), PERIOD);
        }
    }

    fn evicted(&self, rules: &BTreeSet<RuleId>) {
        let mut evicted = self.evicted.lock();
        for (_, uid) in rules {
            *evicted.entry(uid.clone()).or_default() += 1;
        }
        drop(evicted);
        self.look(rules);
    }
}

struct DeviceTaintEviction {
    world: World,
    /// Pods that are to go; bounded by the pods there are.
    planned: Mutex<HashMap<ObjectKey, Planned>>,
    /// None where no rules count.
    told: Option<Told>,
    deletions: Counters,
    delays: Histograms,
}

impl DeviceTaintEviction {
    /// Notes what is planned with a pod, and tells the rules that are concerned.
    fn plan(&self, key: &ObjectKey, planned: Option<Planned>) -> Option<Planned> {
        let rules_of = |planned: Option<&Planned>| planned.map(|own| own.due.rules.clone()).unwrap_or_default();
        let now = rules_of(planned.as_ref());
        let mut all = self.planned.lock();
        let before = match planned {
            Some(planned) => all.insert(key.clone(), planned),
            None => all.remove(key),
        };
        drop(all);
        if let Some(told) = &self.told {
            told.look(now.symmetric_difference(&rules_of(before.as_ref())));
        }
        before
    }

    /// Gives a plan up: somebody took the taint away, or the pod its claim.
    fn cancel(&self, cx: &Cx, key: &ObjectKey, pod: Option<&Pod>) {
        if let (Some(planned), Some(pod)) = (self.plan(key, None), pod)
            && planned.uid == pod.metadata.uid
            && pod.metadata.deletion_timestamp.is_none()
        {
            cx.events.event(pod, EventType::Normal, REASON, "Cancelling deletion");
        }
    }
}

fn by_device_taint(pod: &Pod) -> PodCondition {
    PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        observed_generation: pod.metadata.generation,
        reason: "DeletionByDeviceTaintManager".to_owned(),
        message: "Device Taint manager: deleting due to NoExecute taint".to_owned(),
        ..PodCondition::default()
    }
}

#[async_trait::async_trait]
impl Controller for DeviceTaintEviction {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let pod = self.world.pods.get(key);
        let Some((pod, due)) = pod.as_ref().and_then(|pod| Some((pod, self.world.due(pod)?))) else {
            self.cancel(cx, key, pod.as_deref());
            return Ok(Next::Done);
        };
        if pod.metadata.deletion_timestamp.is_some() {
            self.plan(key, None);
            return Ok(Next::Done);
        }
        let now = Time::from(cx.clock.wall());
        self.plan(key, Some(Planned { uid: pod.metadata.uid.clone(), due: due.clone() }));
        if now < due.at {
            return Ok(Next::After(due.at.since(now)));
        }
        let announce = || cx.events.event(pod.as_ref(), EventType::Normal, REASON, "Marking for deletion");
        match evict_once(cx, key, &pod.metadata.uid, by_device_taint, announce).await {
            Ok(false) => {}
            Ok(true) => {
                self.deletions.with(&[]).inc();
                self.delays.with(&[]).observe(now.since(due.at).as_secs_f64());
                self.told.iter().for_each(|told| told.evicted(&due.rules));
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        self.plan(key, None);
        Ok(Next::Done)
    }
}
