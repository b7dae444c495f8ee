//! `VolumeRestrictions`: disks that one node cannot have for two pods, and claims of the access mode `ReadWriteOncePod`,
//! which one pod of the whole cluster has.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_types::core_v1::constants::persistent_volume_access_mode::READ_WRITE_ONCE_POD;
use api_types::core_v1::{PersistentVolumeClaim, Pod, VolumeSource};

use super::storage::{hint_of_named_claim, named_claims};
use crate::cache::Snapshot;
use crate::framework::{
    Action, BuildCx, CycleCx, CycleState, EventObject, Filter, Hint, Plugin, PluginError, PreFilter, PreFiltered,
    Registration, Resource, Status, StatusResult, by_volumes,
};
use crate::listers::Lister;
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(super) const NAME: &str = "VolumeRestrictions";
const REASON_DISK: &str = "node(s) had no available disk";
const REASON_ONE_POD: &str =
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";

struct VolumeRestrictions {
    claims: Lister<PersistentVolumeClaim>,
}

/// The claims of the pod that no other pod may have, and how often others have them.
#[derive(Clone)]
struct Exclusive {
    claims: BTreeSet<String>,
    in_use: i64,
}

pub(super) fn build(cx: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    let plugin = Arc::new(VolumeRestrictions { claims: cx.listers.of() });
    let events = vec![
        Registration::hinted(Resource::Pod, Action::DELETE, hint_of_pod),
        Registration::always(Resource::Node, Action::ADD),
        Registration::hinted(Resource::of::<PersistentVolumeClaim>(), Action::ADD, hint_of_named_claim),
    ];
    let plugin = Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin).wakes_on(events);
    Ok(plugin.signed_by(by_volumes))
}

/// Whether a pod that is gone stood in the way.
fn hint_of_pod(pod: &Pod, object: &EventObject) -> Hint {
    let Some(gone) = object.pod() else { return Hint::Queue };
    if gone.metadata.namespace != pod.metadata.namespace {
        return Hint::Skip;
    }
    let shares_claim = || named_claims(pod).any(|name| named_claims(gone).any(|other| other == name));
    Hint::queue_if(disks(pod).any(|disk| conflicts(disk, gone)) || shares_claim())
}

/// The disks of a pod that one node may not have twice.
fn disks(pod: &Pod) -> impl Iterator<Item = &VolumeSource> {
    pod.spec.volumes.iter().map(|volume| &volume.volume_source).filter(|source| {
        source.gce_persistent_disk.is_some()
            || source.aws_elastic_block_store.is_some()
            || source.iscsi.is_some()
            || source.rbd.is_some()
    })
}

/// Whether one node cannot have the disk while it has the other pod.
fn conflicts(disk: &VolumeSource, other: &Pod) -> bool {
    disks(other).any(|theirs| are_at_odds(disk, theirs))
}

fn are_at_odds(own: &VolumeSource, other: &VolumeSource) -> bool {
    if let (Some(own), Some(other)) = (&own.gce_persistent_disk, &other.gce_persistent_disk) {
        return own.pd_name == other.pd_name && !(own.read_only && other.read_only);
    }
    if let (Some(own), Some(other)) = (&own.aws_elastic_block_store, &other.aws_elastic_block_store) {
        return own.volume_id == other.volume_id;
    }
    if let (Some(own), Some(other)) = (&own.iscsi, &other.iscsi) {
        return own.iqn == other.iqn && !(own.read_only && other.read_only);
    }
    if let (Some(own), Some(other)) = (&own.rbd, &other.rbd) {
        let shares_monitor = own.monitors.iter().any(|monitor| other.monitors.contains(monitor));
        let is_same = own.pool == other.pool && own.image == other.image;
        return shares_monitor && is_same && !(own.read_only && other.read_only);
    }
    false
}

/// How many of the claims of a namespace some pod of the cluster has.
fn count_in_use(snapshot: &Snapshot, namespace: &str, claims: &BTreeSet<String>) -> i64 {
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for node in snapshot.with_volumes() {
        for pod in node.info.pods.iter().filter(|pod| pod.has_volumes() && pod.pod.metadata.namespace == namespace) {
            used.extend(named_claims(&pod.pod).filter(|name| claims.contains(*name)));
        }
    }
    i64::try_from(used.len()).unwrap_or(i64::MAX)
}

impl VolumeRestrictions {
    /// The claims of the pod that it must have alone.
    fn exclusive(&self, pod: &Pod) -> Result<BTreeSet<String>, Status> {
        let mut exclusive = BTreeSet::new();
        for name in named_claims(pod) {
            let claim = self.claims.get(&pod.metadata.namespace, name)?;
            if claim.spec.access_modes.iter().any(|mode| mode == READ_WRITE_ONCE_POD) {
                exclusive.insert(name.to_owned());
            }
        }
        Ok(exclusive)
    }
}

/// Follows a pod that came to a node or left it, as an assumption.
fn follow(state: &mut CycleState, pod: &PodInfo, other: &PodInfo, step: i64) {
    if !other.has_volumes() || other.pod.metadata.namespace != pod.pod.metadata.namespace {
        return;
    }
    let Some(exclusive) = state.get_mut::<Exclusive>() else { return };
    let shared = named_claims(&other.pod).filter(|name| exclusive.claims.contains(*name)).count();
    exclusive.in_use += step * i64::try_from(shared).unwrap_or(0);
}

impl PreFilter for VolumeRestrictions {
    fn pre_filter(&self, cx: CycleCx<'_>, state: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        if !pod.has_volumes() {
            return Ok(PreFiltered::Skip);
        }
        let claims = self.exclusive(&pod.pod)?;
        let in_use =
            if claims.is_empty() { 0 } else { count_in_use(cx.snapshot, &pod.pod.metadata.namespace, &claims) };
        if in_use == 0 && disks(&pod.pod).next().is_none() {
            return Ok(PreFiltered::Skip);
        }
        state.put(Exclusive { claims, in_use });
        Ok(PreFiltered::All)
    }

    fn add_pod(&self, state: &mut CycleState, pod: &PodInfo, added: &PodInfo, _: NodeView<'_>) -> StatusResult {
        follow(state, pod, added, 1);
        Ok(())
    }

    fn remove_pod(&self, state: &mut CycleState, pod: &PodInfo, removed: &PodInfo, _: NodeView<'_>) -> StatusResult {
        follow(state, pod, removed, -1);
        Ok(())
    }
}

impl Filter for VolumeRestrictions {
    fn filter(&self, state: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let others = || node.info.pods.iter().filter(|other| other.has_volumes());
        if node.shared_volumes > 0 && disks(&pod.pod).any(|disk| others().any(|other| conflicts(disk, &other.pod))) {
            return Err(Status::unschedulable(REASON_DISK));
        }
        if state.get::<Exclusive>().is_some_and(|exclusive| exclusive.in_use > 0) {
            return Err(Status::unschedulable(REASON_ONE_POD));
        }
        Ok(())
    }
}
