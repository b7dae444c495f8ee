//! Warns of pods that share a volume and would mount it with different SELinux labels: once volumes are mounted with
//! labels, such pods cannot run on the same node. Off unless it is named. KEP-1710.

mod conflicts;
mod label;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use api_types::storage_v1::CSIDriver;
use client::{Change, Informer, ObjectKey};
use component_base::Feature;
use component_base::metrics::{Desc, Stability, Value};
use component_helpers::pod_state;
use component_helpers::volumes::{attaching, of_pods};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use parking_lot::Mutex;

use super::notice::Notice;
use super::{PODS_BY_CLAIM, keys_of_claims, plugins};
use conflicts::{Uses, Using};

/// The gate of upstream's controller.
pub(crate) const GATE: Feature = Feature::named("SELinuxChangePolicy");

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "selinux-warning-controller",
    aliases: &[],
    gates: &[GATE],
    identity: "selinux-warning-controller",
    event_component: "selinux_warning",
    disabled_by_default: true,
    build,
};

const CONFLICTS: Desc = Desc::new(
    "selinux_warning_controller_selinux_volume_conflict",
    "Pods that would mount the same volume differently.",
    Stability::Alpha,
)
.labels(&["property", "pod1_namespace", "pod1_name", "pod1_value", "pod2_namespace", "pod2_name", "pod2_value"]);

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("selinux_warning");
    let pods = build.watch::<Pod>().index(PODS_BY_CLAIM, keys_of_claims).enqueue_keys(&queue, pod_itself).informer();
    let users = pods.clone();
    let of_claim = move |change: &Change<PersistentVolumeClaim>| {
        let is_same = change.old().is_some_and(|old| old.spec.volume_name == change.object().spec.volume_name);
        if is_same && !change.is_deleted() { Vec::new() } else { pods_of(&change.key(), &users) }
    };
    let claims = build.watch::<PersistentVolumeClaim>().enqueue_keys(&queue, of_claim).informer();
    let users = pods.clone();
    let of_volume = move |change: &Change<PersistentVolume>| {
        let claim = |volume: &PersistentVolume| volume.spec.claim_ref.clone();
        let is_same = change.old().is_some_and(|old| claim(old) == claim(change.object()));
        let named = claim(change.object()).filter(|_| !is_same || change.is_deleted());
        named.map(|claim| pods_of(&ObjectKey::new(claim.namespace, claim.name), &users)).unwrap_or_default()
    };
    let volumes = build.watch::<PersistentVolume>().enqueue_keys(&queue, of_volume).informer();
    let users = pods.clone();
    let of_driver = move |change: &Change<CSIDriver>| {
        let is_same = change.old().is_some_and(|old| mounts_labels(old) == mounts_labels(change.object()));
        if is_same { Vec::new() } else { users.keys() }
    };
    let drivers = build.watch::<CSIDriver>().enqueue_keys(&queue, of_driver).informer();
    let uses = Arc::new(Mutex::new(Uses::default()));
    let shown = Arc::clone(&uses);
    let samples = move || shown.lock().all().into_iter().map(|labels| (labels, Value::Gauge(1.0))).collect();
    build.metrics().computed_gauges(&CONFLICTS, Box::new(samples));
    build.run(&queue, 1, Arc::new(Warning { pods, claims, volumes, drivers, uses }));
    Ok(())
}

/// A pod that came, went or ended.
fn pod_itself(change: &Change<Pod>) -> Option<ObjectKey> {
    let is_same =
        change.old().is_some_and(|old| pod_state::is_terminal(old) == pod_state::is_terminal(change.object()));
    (change.is_deleted() || !is_same).then(|| change.key())
}

fn pods_of(claim: &ObjectKey, pods: &Informer<Pod>) -> Vec<ObjectKey> {
    pods.by_index(PODS_BY_CLAIM, &claim.to_string()).iter().map(|pod| ObjectKey::of(&pod.metadata)).collect()
}

fn mounts_labels(driver: &CSIDriver) -> bool {
    driver.spec.se_linux_mount == Some(true)
}

struct Warning {
    pods: Informer<Pod>,
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    drivers: Informer<CSIDriver>,
    uses: Arc<Mutex<Uses>>,
}

impl Warning {
    /// The volumes of a pod that others may have, too, by a name that is the same for all, and what warns of the pod
    /// alone.
    fn uses_of(&self, pod: &Pod) -> (BTreeMap<String, Using>, Vec<Notice>) {
        let (mut uses, mut notices) = (BTreeMap::new(), Vec::new());
        for volume in &pod.spec.volumes {
            let Some((name, has_labels)) = of_pods::claim_name(pod, volume).and_then(|claim| self.shared(pod, &claim))
            else {
                continue;
            };
            match label::of_volume(pod, &volume.name) {
                Some(Ok(label)) => {
                    uses.insert(name, Using::new(pod, label, has_labels));
                }
                Some(Err(notice)) => notices.push(notice),
                None => {}
            }
        }
        (uses, notices)
    }

    /// The volume of a claim, and whether its plugin can mount it with a label.
    fn shared(&self, pod: &Pod, claim: &str) -> Option<(String, bool)> {
        let claim = self.claims.find(&pod.metadata.namespace, claim)?;
        let volume = self.volumes.find("", &claim.spec.volume_name)?;
        let source = &volume.spec.persistent_volume_source;
        if let Some(csi) = &source.csi {
            let has_labels = self.drivers.find("", &csi.driver).is_some_and(|driver| mounts_labels(&driver));
            return Some((attaching::unique_name(&csi.driver, &csi.volume_handle), has_labels));
        }
        let has_labels = source.iscsi.is_some() || source.fc.is_some();
        Some((format!("{}/{}", plugins::plugin_of(source)?, volume.metadata.name), has_labels))
    }
}

#[async_trait::async_trait]
impl Controller for Warning {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let pod = self.pods.get(key).filter(|pod| !pod_state::is_terminal(pod));
        let (uses, notices) = pod.as_ref().map(|pod| self.uses_of(pod)).unwrap_or_default();
        let conflicts = self.uses.lock().replace(key, uses);
        let Some(pod) = pod else { return Ok(Next::Done) };
        notices.iter().for_each(|notice| notice.tell(cx, &*pod));
        for conflict in conflicts {
            if let Some(about) = self.pods.get(&conflict.pod) {
                conflict.notice().tell(cx, &*about);
            }
        }
        Ok(Next::Done)
    }
}
