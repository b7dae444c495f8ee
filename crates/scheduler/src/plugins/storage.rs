//! What the plugins for volumes share: which claims a pod names itself, and which disks of the tree CSI drivers serve.

use std::sync::Arc;

use api_types::core_v1::{PersistentVolumeClaim, PersistentVolumeSource, Pod, VolumeSource};
use component_helpers::volumes::names::migrated_driver;
use component_helpers::volumes::of_pods::claim_names;

use crate::framework::{EventObject, Hint, Status};
use crate::listers::NotFound;

impl From<NotFound> for Status {
    /// What a pod names and nobody has cannot be had by evicting others.
    fn from(error: NotFound) -> Self {
        Self::unresolvable(error.to_string())
    }
}

/// The claims that the pod names, without those of its ephemeral volumes.
pub(super) fn named_claims(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.volumes.iter();
    volumes.filter_map(|volume| Some(volume.volume_source.persistent_volume_claim.as_ref()?.claim_name.as_str()))
}

/// A claim that the pod names has come or changed.
pub(super) fn hint_of_named_claim(pod: &Pod, object: &EventObject) -> Hint {
    let Some(claim) = object.other::<PersistentVolumeClaim>() else { return Hint::Queue };
    let is_near = claim.metadata.namespace == pod.metadata.namespace;
    Hint::queue_if(is_near && named_claims(pod).any(|name| name == claim.metadata.name))
}

/// A claim that the pod names, or has for an ephemeral volume, has come or changed.
pub(super) fn hint_of_claim(pod: &Pod, object: &EventObject) -> Hint {
    let Some(claim) = object.other::<PersistentVolumeClaim>() else { return Hint::Queue };
    let is_near = claim.metadata.namespace == pod.metadata.namespace;
    Hint::queue_if(is_near && claim_names(pod).any(|name| name == claim.metadata.name))
}

/// The disk of the tree that a source of volumes or pods has, as the driver that serves it knows it.
macro_rules! migrated {
    ($source:expr) => {{
        let disk = $source.aws_elastic_block_store.as_ref().map(|disk| (AWS, &disk.volume_id));
        let disk = disk.or_else(|| $source.gce_persistent_disk.as_ref().map(|disk| (GCE, &disk.pd_name)));
        let disk = disk.or_else(|| $source.azure_disk.as_ref().map(|disk| (AZURE, &disk.disk_uri)));
        let disk = disk.or_else(|| $source.cinder.as_ref().map(|disk| (CINDER, &disk.volume_id)));
        let disk = disk.or_else(|| $source.portworx_volume.as_ref().map(|disk| (PORTWORX, &disk.volume_id)));
        disk.and_then(|(plugin, handle)| Some(Self::new(counted_driver(plugin)?, handle)))
    }};
}

/// A volume as a CSI driver knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DriverVolume {
    /// The driver.
    pub(super) driver: Arc<str>,
    /// What the driver calls the volume.
    pub(super) handle: Arc<str>,
}

impl DriverVolume {
    pub(super) fn new(driver: &str, handle: &str) -> Self {
        Self { driver: driver.into(), handle: handle.into() }
    }

    /// The volume of a driver, its own or one of the tree that it serves; none for others.
    pub(super) fn of_source(source: &PersistentVolumeSource) -> Option<Self> {
        let csi = source.csi.as_ref().map(|csi| Self::new(&csi.driver, &csi.volume_handle));
        csi.or_else(|| migrated!(source))
    }

    /// The same of a disk that a pod names without a claim.
    pub(super) fn inline(source: &VolumeSource) -> Option<Self> {
        migrated!(source)
    }
}

const AWS: &str = "kubernetes.io/aws-ebs";
const GCE: &str = "kubernetes.io/gce-pd";
const AZURE: &str = "kubernetes.io/azure-disk";
const CINDER: &str = "kubernetes.io/cinder";
const PORTWORX: &str = "kubernetes.io/portworx-volume";

/// The driver that serves a plugin of the tree, of those whose disks count against what a node can attach.
pub(super) fn counted_driver(plugin: &str) -> Option<&'static str> {
    [AWS, GCE, AZURE, CINDER, PORTWORX].contains(&plugin).then(|| migrated_driver(plugin)).flatten()
}
