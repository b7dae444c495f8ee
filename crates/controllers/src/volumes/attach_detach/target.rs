//! Which volumes a pod needs attached to its node.

use api_types::core_v1::constants::{
    persistent_volume_access_mode as access_mode, persistent_volume_claim_phase as claim_phase,
};
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use api_types::storage_v1::{CSIDriver, VolumeAttachment};
use client::{Informer, ObjectKey};
use component_helpers::volumes::{attaching, of_pods};

/// A volume of a driver, as it is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The driver.
    pub(super) driver: String,
    /// The driver's name of the volume.
    pub(super) handle: String,
    /// The persistent volume; empty where only a node's status tells of it.
    pub(super) volume: String,
    /// Whether it can be on one node only. Where only a node's status tells of it, that is assumed.
    pub(super) is_exclusive: bool,
}

impl Target {
    /// The volume of a persistent volume, if it is a driver's.
    pub(super) fn of_volume(volume: &PersistentVolume) -> Option<Self> {
        let csi = volume.spec.persistent_volume_source.csi.as_ref()?;
        let modes = &volume.spec.access_modes;
        let is_shared =
            |mode: &String| matches!(mode.as_str(), access_mode::READ_WRITE_MANY | access_mode::READ_ONLY_MANY);
        Some(Self {
            driver: csi.driver.clone(),
            handle: csi.volume_handle.clone(),
            volume: volume.metadata.name.clone(),
            is_exclusive: !modes.is_empty() && !modes.iter().any(is_shared),
        })
    }

    /// The volume of a name that a node's status lists, if it is a driver's.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let (driver, handle) = attaching::parse_unique_name(name)?;
        Some(Self { driver: driver.to_owned(), handle: handle.to_owned(), volume: String::new(), is_exclusive: true })
    }

    /// Its name in the cluster.
    pub(super) fn name(&self) -> String {
        attaching::unique_name(&self.driver, &self.handle)
    }

    /// The name of its VolumeAttachment on a node.
    pub(super) fn attachment(&self, node: &str) -> String {
        attaching::attachment_name(&self.driver, &self.handle, node)
    }

    /// What events call it.
    pub(super) fn shown(&self) -> &str {
        if self.volume.is_empty() { &self.handle } else { &self.volume }
    }
}

/// Where pods' volumes are looked up.
pub(super) struct Lookup {
    pub(super) claims: Informer<PersistentVolumeClaim>,
    pub(super) volumes: Informer<PersistentVolume>,
    pub(super) drivers: Informer<CSIDriver>,
}

impl Lookup {
    /// What a pod's volume needs attached, as far as it is known: a claim that is not bound yet, or whose volume is not the
    /// claim's, needs nothing for now.
    pub(super) fn target(&self, pod: &Pod, volume: &Volume) -> Option<Target> {
        let name = of_pods::claim_name(pod, volume)?;
        let claim = self.claims.find(&pod.metadata.namespace, &name)?;
        if volume.volume_source.ephemeral.is_some() && of_pods::check_owner(pod, &claim).is_err() {
            return None;
        }
        let volume = self.volumes.find("", volume_of(&claim)?)?;
        let is_ours = volume.spec.claim_ref.as_ref().is_some_and(|named| named.uid == claim.metadata.uid);
        let target = Target::of_volume(&volume).filter(|_| is_ours)?;
        self.needs_attaching(&target.driver).then_some(target)
    }

    /// The volume of a VolumeAttachment.
    pub(super) fn target_of_attachment(&self, attachment: &VolumeAttachment) -> Option<Target> {
        let name = attachment.spec.source.persistent_volume_name.as_deref()?;
        let volume = self.volumes.get(&ObjectKey::cluster(name))?;
        Target::of_volume(&volume)
    }

    /// A driver that is not known, or does not say otherwise, attaches.
    fn needs_attaching(&self, driver: &str) -> bool {
        self.drivers.find("", driver).is_none_or(|driver| driver.spec.attach_required != Some(false))
    }
}

/// The volume of a claim that is bound.
fn volume_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let name = claim.spec.volume_name.as_str();
    (claim.status.phase == claim_phase::BOUND && !name.is_empty()).then_some(name)
}
