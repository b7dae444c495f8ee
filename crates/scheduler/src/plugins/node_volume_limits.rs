//! `NodeVolumeLimits`: a driver can attach so many volumes to a node, as the node's `CSINode` says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use api_types::storage_v1::{CSIDriver, CSINode, CSINodeDriver, StorageClass, VolumeAttachment};
use component_base::shared_gates::VOLUME_LIMIT_SCALING;
use component_helpers::volumes::classes::class_of_claim;
use component_helpers::volumes::of_pods::{check_owner, claim_name};

use super::attach_room::{AttachRoom, BY_NODE, Seen};
use super::storage::{DriverVolume, counted_driver, hint_of_claim};
use crate::framework::{
    Action, BuildCx, CycleCx, CycleState, EventObject, Filter, Hint, Plugin, PluginError, PreFilter, PreFiltered,
    Registration, Resource, Status, StatusResult, by_volumes, is_placed,
};
use crate::listers::Lister;
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(super) const NAME: &str = "NodeVolumeLimits";
const REASON: &str = "node(s) exceed max volume count";
/// What the handles of volumes begin with that are yet to be made. No driver's handle does.
const UNMADE: &str = "\u{0}unmade/";

struct NodeVolumeLimits {
    nodes: Lister<CSINode>,
    claims: Lister<PersistentVolumeClaim>,
    volumes: Lister<PersistentVolume>,
    classes: Lister<StorageClass>,
    attachments: Lister<VolumeAttachment>,
    room: Arc<AttachRoom>,
    /// Where drivers may say that they must be there.
    drivers: Option<Lister<CSIDriver>>,
}

/// What is found out once for all nodes.
#[derive(Clone)]
struct Wanted {
    /// The volumes of the pod that drivers attach, or why they cannot be told.
    volumes: Result<BTreeSet<DriverVolume>, Status>,
    seen: Seen,
}

pub(super) fn build(cx: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    let plugin = Arc::new(NodeVolumeLimits {
        nodes: cx.listers.of(),
        claims: cx.listers.of(),
        volumes: cx.listers.of(),
        classes: cx.listers.of(),
        attachments: cx.listers.of(),
        room: AttachRoom::new(cx.listers.of(), cx.listers.of()),
        drivers: cx.gates.enabled(VOLUME_LIMIT_SCALING).then(|| cx.listers.of()),
    });
    let events = vec![
        Registration::hinted(Resource::of::<CSINode>(), Action::ADD.and(Action::UPDATE), hint_of_node),
        Registration::hinted(Resource::Pod, Action::DELETE, |_, object| {
            Hint::queue_if(object.pod().is_none_or(|gone| is_placed(gone) && may_be_attached(gone)))
        }),
        Registration::hinted(Resource::of::<PersistentVolumeClaim>(), Action::ADD, hint_of_claim),
        Registration::hinted(Resource::of::<VolumeAttachment>(), Action::DELETE, hint_of_attachment),
    ];
    let plugin = Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin).wakes_on(events);
    Ok(plugin.signed_by(by_volumes))
}

fn count_of(driver: &CSINodeDriver) -> Option<i64> {
    driver.allocatable.as_ref()?.count.map(i64::from)
}

/// The limit that a node has for a driver.
fn limit_of(node: &CSINode, driver: &str) -> Option<i64> {
    node.spec.drivers.iter().find(|own| own.name == driver).and_then(count_of)
}

/// The limits that a node has, by driver.
fn limits(node: &CSINode) -> BTreeMap<&str, i64> {
    let drivers = node.spec.drivers.iter();
    drivers.filter_map(|driver| Some((driver.name.as_str(), count_of(driver)?))).collect()
}

fn hint_of_node(_: &Pod, object: &EventObject) -> Hint {
    let (Some(old), Some(new)) = object.change::<CSINode>() else { return Hint::Queue };
    let before = limits(old);
    Hint::queue_if(limits(new).iter().any(|(driver, limit)| *limit > before.get(driver).copied().unwrap_or(0)))
}

fn hint_of_attachment(pod: &Pod, object: &EventObject) -> Hint {
    let Some(gone) = object.other::<VolumeAttachment>() else { return Hint::Queue };
    let mut volumes = pod.spec.volumes.iter();
    Hint::queue_if(volumes.any(|volume| {
        let inline = || DriverVolume::inline(&volume.volume_source);
        claim_name(pod, volume).is_some() || inline().is_some_and(|disk| *disk.driver == gone.spec.attacher)
    }))
}

/// Whether the pod may have volumes that drivers attach.
fn may_be_attached(pod: &Pod) -> bool {
    let mut volumes = pod.spec.volumes.iter();
    volumes.any(|volume| claim_name(pod, volume).is_some() || DriverVolume::inline(&volume.volume_source).is_some())
}

impl NodeVolumeLimits {
    /// The volumes of a pod that drivers attach.
    fn of_pod(&self, pod: &Pod) -> Result<BTreeSet<DriverVolume>, Status> {
        let mut found = BTreeSet::new();
        for volume in &pod.spec.volumes {
            found.extend(self.of_volume(pod, volume)?);
        }
        Ok(found)
    }

    /// The same of a pod that is there; claims that cannot be found do not count.
    fn of_present_pod<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = DriverVolume> + 'a {
        pod.spec.volumes.iter().filter_map(|volume| self.of_volume(pod, volume).ok().flatten())
    }

    fn of_volume(&self, pod: &Pod, volume: &Volume) -> Result<Option<DriverVolume>, Status> {
        let Some(name) = claim_name(pod, volume) else { return Ok(DriverVolume::inline(&volume.volume_source)) };
        let namespace = &pod.metadata.namespace;
        let claim = self.claims.get(namespace, &name);
        let claim =
            claim.map_err(|error| Status::unresolvable(format!("looking up PVC {namespace}/{name}: {error}")))?;
        if volume.volume_source.ephemeral.is_some() {
            check_owner(pod, &claim).map_err(|error| Status::unresolvable(error.to_string()))?;
        }
        Ok(self.of_claim(&claim))
    }

    /// The volume of a claim; where there is none yet, one of the driver that will make it.
    fn of_claim(&self, claim: &PersistentVolumeClaim) -> Option<DriverVolume> {
        let named = Some(&claim.spec.volume_name).filter(|name| !name.is_empty());
        if let Some(volume) = named.and_then(|name| self.volumes.find("", name)) {
            return DriverVolume::of_source(&volume.spec.persistent_volume_source);
        }
        let class = self.classes.find("", class_of_claim(claim))?;
        let driver = match counted_driver(&class.provisioner) {
            Some(driver) => driver,
            None => &class.provisioner,
        };
        let handle = format!("{UNMADE}{}/{}", claim.metadata.namespace, claim.metadata.name);
        Some(DriverVolume::new(driver, &handle))
    }

    /// A driver of the pod that must be on the node and is not.
    fn missing<'a>(&self, node: Option<&CSINode>, wanted: &'a BTreeSet<DriverVolume>) -> Option<&'a str> {
        let drivers = self.drivers.as_ref()?;
        let is_there = |name: &str| node.is_some_and(|node| node.spec.drivers.iter().any(|own| own.name == name));
        let insists = |name: &str| {
            drivers.find("", name).is_some_and(|driver| driver.spec.prevent_pod_scheduling_if_missing == Some(true))
        };
        wanted.iter().map(|volume| &*volume.driver).find(|driver| !is_there(driver) && insists(driver))
    }

    /// The volumes that are attached to a node, or will be for the pods on it.
    fn attached(&self, node: NodeView<'_>) -> BTreeSet<DriverVolume> {
        let pods = node.info.pods.iter().filter(|pod| pod.has_volumes());
        let mut attached: BTreeSet<_> = pods.flat_map(|pod| self.of_present_pod(&pod.pod)).collect();
        for attachment in self.attachments.by_index(BY_NODE, &node.name) {
            let name = attachment.spec.source.persistent_volume_name.as_deref();
            let volume = name.and_then(|name| self.volumes.find("", name));
            let csi = volume.as_ref().and_then(|volume| volume.spec.persistent_volume_source.csi.as_ref());
            attached.extend(csi.map(|csi| DriverVolume::new(&csi.driver, &csi.volume_handle)));
        }
        attached
    }
}

impl PreFilter for NodeVolumeLimits {
    fn pre_filter(&self, _: CycleCx<'_>, state: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        if !pod.has_volumes() || !may_be_attached(&pod.pod) {
            return Ok(PreFiltered::Skip);
        }
        state.put(Wanted { volumes: self.of_pod(&pod.pod), seen: self.room.now() });
        Ok(PreFiltered::All)
    }
}

impl Filter for NodeVolumeLimits {
    fn filter(&self, state: &CycleState, _: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let Some(Wanted { volumes, seen }) = state.get::<Wanted>() else { return Ok(()) };
        let wanted = volumes.as_ref().map_err(Clone::clone)?;
        let csi = || self.nodes.find("", &node.name);
        if self.drivers.is_some()
            && let Some(driver) = self.missing(csi().as_deref(), wanted)
        {
            return Err(Status::unschedulable(format!("{driver} CSI driver is not installed on the node")));
        }
        let room = self.room.of(seen, node);
        if room.is_certain(wanted.len(), room.lowest) {
            return Ok(());
        }
        let Some(csi) = csi() else { return Ok(()) };
        let lowest = wanted.iter().filter_map(|volume| limit_of(&csi, &volume.driver)).min();
        if room.is_certain(wanted.len(), lowest) {
            return Ok(());
        }
        let limits = limits(&csi);
        let attached = self.attached(node);
        for (driver, limit) in limits {
            let of_driver = |volume: &&DriverVolume| *volume.driver == *driver;
            let new = wanted.difference(&attached).filter(of_driver).count();
            let all = attached.iter().filter(of_driver).count() + new;
            if new > 0 && i64::try_from(all).unwrap_or(i64::MAX) > limit {
                return Err(Status::unschedulable(REASON));
            }
        }
        Ok(())
    }
}
