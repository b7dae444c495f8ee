//! Deletes pods that use devices with a `NoExecute` taint that their claims do not tolerate, or no longer (KEP-5055).
//!
//! When a pod is to go follows from when the taint was added, so that a restart changes nothing. Deliberately not here: taints
//! by rule (gate `DRADeviceTaintRules`) are not part of this build.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::{Pod, PodCondition};
use api_types::resource_v1::{
    DeviceRequestAllocationResult, DeviceTaint, DeviceToleration, ResourceClaim, ResourceSlice,
};
use client::{Change, EventType, Informer, ObjectKey};
use component_base::metrics::{Counters, Desc, Histograms, Stability};
use component_base::shared_gates::{DEVICE_TAINTS, DEVICES};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use parking_lot::Mutex;

use super::resource_claim::naming::{Named, is_of, is_reserved};
use crate::Settings;
use crate::nodes::taint_eviction::evict_once;

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
const NO_EXECUTE: &str = "NoExecute";
const REASON: &str = "DeviceTaintManagerEviction";
/// Index of slices, and of claims by the devices that they have: `{driver}/{pool}`.
const BY_POOL: &str = "device-pools";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let syncs = build.settings::<Settings>()?.device_taint_eviction_syncs;
    let queue = build.queue("device-taint-eviction-controller");
    let slices = build.watch::<ResourceSlice>().index(BY_POOL, |slice| vec![pool_of(slice)]).informer();
    let claims = build.watch::<ResourceClaim>().index(BY_POOL, pools_of).informer();
    let pods = build.watch::<Pod>().enqueue_keys(&queue, concerned).informer();
    drop(build.watch::<ResourceClaim>().enqueue_keys(&queue, consumers_after));
    let using = claims.clone();
    let tainted = move |change: &Change<ResourceSlice>| {
        let pools = change.old().map(|old| pool_of(old)).into_iter().chain([pool_of(change.object())]);
        let is_same = change.old().is_some_and(|old| taints_of(old) == taints_of(change.object()));
        if is_same {
            return Vec::new();
        }
        pools.flat_map(|pool| using.by_index(BY_POOL, &pool)).flat_map(|claim| consumers(&claim)).collect()
    };
    drop(build.watch::<ResourceSlice>().enqueue_keys(&queue, tainted));
    let (deletions, delays) = (build.metrics().counters(&DELETIONS), build.metrics().histograms(&DELAYS));
    let eviction = DeviceTaintEviction { slices, claims, pods, planned: Mutex::default(), deletions, delays };
    build.run(&queue, syncs, Arc::new(eviction));
    Ok(())
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

fn results(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    claim.status.allocation.iter().flat_map(|allocation| &allocation.devices.results)
}

/// What a slice says that matters here: which devices drive pods away, and in which generation of the pool.
fn taints_of(slice: &ResourceSlice) -> (String, i64, Vec<(&str, &DeviceTaint)>) {
    let devices = slice.spec.devices.iter();
    let taints = devices.flat_map(|device| device.taints.iter().map(|taint| (device.name.as_str(), taint)));
    (pool_of(slice), slice.spec.pool.generation, taints.filter(|(_, taint)| taint.effect == NO_EXECUTE).collect())
}

/// The pods that a claim is set aside for.
fn consumers(claim: &ResourceClaim) -> Vec<ObjectKey> {
    let pods = claim.status.reserved_for.iter().filter(|own| own.api_group.is_empty() && own.resource == "pods");
    pods.map(|own| ObjectKey::new(claim.metadata.namespace.clone(), own.name.clone())).collect()
}

fn consumers_after(change: &Change<ResourceClaim>) -> Vec<ObjectKey> {
    let before = change.old().map(|old| old.as_ref());
    let is_same = before.is_some_and(|old| {
        let (old, new) = (&old.status, &change.object().status);
        old.allocation == new.allocation && old.reserved_for == new.reserved_for
    });
    if is_same {
        return Vec::new();
    }
    before.into_iter().chain([change.object().as_ref()]).flat_map(consumers).collect()
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

struct DeviceTaintEviction {
    slices: Informer<ResourceSlice>,
    claims: Informer<ResourceClaim>,
    pods: Informer<Pod>,
    /// Pods that are to go, with their uids and when; bounded by the pods there are.
    planned: Mutex<HashMap<ObjectKey, (String, Time)>>,
    deletions: Counters,
    delays: Histograms,
}

/// Whether a toleration is of a taint.
fn tolerates(toleration: &DeviceToleration, taint: &DeviceTaint) -> bool {
    let is_key = toleration.key.is_empty() || toleration.key == taint.key;
    let is_value = match toleration.operator.as_str() {
        "" | "Equal" => toleration.value == taint.value,
        "Exists" => true,
        _ => false,
    };
    toleration.effect == NO_EXECUTE && is_key && is_value
}

/// When a taint drives away who has these tolerations; never where one of them bears it for good.
fn due(taint: &DeviceTaint, tolerations: &[DeviceToleration]) -> Option<Time> {
    let added = taint.time_added.unwrap_or_default();
    let fitting: Vec<_> = tolerations.iter().filter(|toleration| tolerates(toleration, taint)).collect();
    if fitting.iter().any(|toleration| toleration.toleration_seconds.is_none()) {
        return None;
    }
    let shortest = fitting.iter().filter_map(|toleration| toleration.toleration_seconds).min().unwrap_or(0);
    Some(added + Duration::from_secs(u64::try_from(shortest).unwrap_or(0)))
}

/// The taints of a device that drive pods away, by the newest generation of its pool.
fn taints<'a>(slices: &'a [Arc<ResourceSlice>], device: &str) -> Vec<&'a DeviceTaint> {
    let newest = slices.iter().map(|slice| slice.spec.pool.generation).max();
    let current = slices.iter().filter(|slice| Some(slice.spec.pool.generation) == newest);
    let devices = current.flat_map(|slice| &slice.spec.devices).filter(|own| own.name == device);
    devices.flat_map(|own| &own.taints).filter(|taint| taint.effect == NO_EXECUTE).collect()
}

impl DeviceTaintEviction {
    /// When a pod is to go: by the first of its devices that drives it away.
    fn due(&self, pod: &Pod) -> Option<Time> {
        if pod.spec.node_name.is_empty() {
            return None;
        }
        let claims = pod.spec.resource_claims.iter().filter_map(|entry| {
            let Named::Claim { name, is_made } = Named::of(pod, entry) else { return None };
            let claim = self.claims.find(&pod.metadata.namespace, name)?;
            (is_reserved(&claim, pod) && (!is_made || is_of(&claim, pod))).then_some(claim)
        });
        claims.filter_map(|claim| self.due_of_claim(&claim)).min()
    }

    fn due_of_claim(&self, claim: &ResourceClaim) -> Option<Time> {
        let of_device = |result: &DeviceRequestAllocationResult| {
            let slices = self.slices.by_index(BY_POOL, &format!("{}/{}", result.driver, result.pool));
            taints(&slices, &result.device).into_iter().filter_map(|taint| due(taint, &result.tolerations)).min()
        };
        results(claim).filter_map(of_device).min()
    }

    /// Gives a plan up: somebody took the taint away, or the pod its claim.
    fn cancel(&self, cx: &Cx, key: &ObjectKey, pod: Option<&Pod>) {
        let planned = self.planned.lock().remove(key);
        if let (Some((uid, _)), Some(pod)) = (planned, pod)
            && uid == pod.metadata.uid
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
        let pod = self.pods.get(key);
        let Some((pod, due)) = pod.as_ref().and_then(|pod| Some((pod, self.due(pod)?))) else {
            self.cancel(cx, key, pod.as_deref());
            return Ok(Next::Done);
        };
        if pod.metadata.deletion_timestamp.is_some() {
            self.planned.lock().remove(key);
            return Ok(Next::Done);
        }
        let now = Time::from(cx.clock.wall());
        self.planned.lock().insert(key.clone(), (pod.metadata.uid.clone(), due));
        if now < due {
            return Ok(Next::After(due.since(now)));
        }
        cx.events.event(pod.as_ref(), EventType::Normal, REASON, "Marking for deletion");
        match evict_once(cx, key, &pod.metadata.uid, by_device_taint).await {
            Ok(false) => {}
            Ok(true) => {
                self.deletions.with(&[]).inc();
                self.delays.with(&[]).observe(now.since(due).as_secs_f64());
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        self.planned.lock().remove(key);
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::object::from_value;
    use api_machinery::value::Value;
    use serde_json::json;

    use super::*;
    use crate::workloads::fixtures::{Running, at, pod, run_until_idle};

    const KNOWN: &[Descriptor] = &[DESCRIPTOR];
    const SLICES: &str = "resource.k8s.io/v1/resourceslices";

    fn taint(key: &str, added: i64) -> DeviceTaint {
        DeviceTaint {
            key: key.into(),
            effect: NO_EXECUTE.into(),
            time_added: Some(at(added)),
            ..DeviceTaint::default()
        }
    }

    fn toleration(key: &str, operator: &str, effect: &str, seconds: Option<i64>) -> DeviceToleration {
        DeviceToleration {
            key: key.into(),
            operator: operator.into(),
            effect: effect.into(),
            toleration_seconds: seconds,
            ..DeviceToleration::default()
        }
    }

    #[test]
    fn tolerations_put_off_what_is_due() {
        let exists = |key, seconds| toleration(key, "Exists", NO_EXECUTE, seconds);
        for (case, tolerations, expected) in [
            ("none", vec![], Some(100)),
            ("for good", vec![exists("a", None)], None),
            ("any key", vec![exists("", None)], None),
            ("another key", vec![exists("b", None)], Some(100)),
            ("another effect", vec![toleration("a", "Exists", "", None)], Some(100)),
            ("another operator", vec![toleration("a", "Lt", NO_EXECUTE, None)], Some(100)),
            ("the same value", vec![toleration("a", "", NO_EXECUTE, Some(5))], Some(105)),
            ("the shortest", vec![exists("a", Some(60)), exists("", Some(30))], Some(130)),
            ("less than nothing", vec![exists("a", Some(-5))], Some(100)),
            ("for a while, and for good", vec![exists("a", Some(60)), exists("a", None)], None),
        ] {
            assert_eq!(due(&taint("a", 100), &tolerations), expected.map(at), "{case}");
        }
    }

    fn slice(name: &str, generation: i64, taint: Option<Value>) -> ResourceSlice {
        let device = json!({"name": "dev", "taints": taint.into_iter().collect::<Vec<_>>()});
        let pool = json!({"name": "p", "generation": generation, "resourceSliceCount": 1});
        from_value(&json!({"metadata": {"name": name}, "spec": {"driver": "d", "pool": pool, "devices": [device]}}))
            .expect("a slice")
    }

    #[test]
    fn only_the_newest_generation_counts() {
        let no_execute = || Some(json!({"key": "a", "effect": NO_EXECUTE}));
        let (old, new) = (Arc::new(slice("one", 1, no_execute())), Arc::new(slice("two", 2, None)));
        assert_eq!(taints(std::slice::from_ref(&old), "dev").len(), 1);
        assert!(taints(&[old, new], "dev").is_empty());
    }

    /// A running pod with a claim that has the one device, and the time it is.
    fn start(tolerated_seconds: i64) -> (Running, String) {
        let running = Running::start_gated(KNOWN, DESCRIPTOR.gates);
        let mut user = pod("p", "Running", None);
        user.spec.resource_claims.push(from_value(&json!({"name": "e", "resourceClaimName": "c"})).expect("an entry"));
        running.put("v1/pods", &user);
        let toleration = json!({"operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": tolerated_seconds});
        let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "dev", "tolerations": [toleration]});
        let status = json!({"allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "p-uid"}]});
        let claim: ResourceClaim =
            from_value(&json!({"metadata": {"name": "c", "namespace": "ns"}, "status": status})).expect("a claim");
        running.put("resource.k8s.io/v1/resourceclaims", &claim);
        running.put(SLICES, &slice("s", 1, None));
        let now = Time::from(running.client.clock().wall()).to_string();
        (running, now)
    }

    fn events(running: &Running) -> Vec<String> {
        running.server.objects("v1/events").iter().map(|event| event["message"].to_string()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_goes_when_its_device_is_tainted_for_longer_than_it_bears() {
        let (running, now) = start(60);
        run_until_idle().await;
        running.put(SLICES, &slice("s", 1, Some(json!({"key": "a", "effect": NO_EXECUTE, "timeAdded": now}))));
        tokio::time::sleep(Duration::from_secs(50)).await;
        assert_eq!((running.count("v1/pods"), events(&running)), (1, vec![]));
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(running.count("v1/pods"), 0);
        assert_eq!(events(&running), ["\"Marking for deletion\""]);
        assert_eq!(running.requests("PATCH", "/pods/p/status"), 1);
        running.assert_shows("device_taint_eviction_controller_pod_deletions_total 1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_taint_that_goes_in_time_is_forgotten() {
        let (running, now) = start(60);
        running.put(SLICES, &slice("s", 1, Some(json!({"key": "a", "effect": NO_EXECUTE, "timeAdded": now}))));
        tokio::time::sleep(Duration::from_secs(30)).await;
        running.put(SLICES, &slice("s", 1, None));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(running.count("v1/pods"), 1);
        assert_eq!(events(&running), ["\"Cancelling deletion\""]);
    }
}
