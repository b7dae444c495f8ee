//! The writes of the binder, each left out where nothing would change.

use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::core_v1::constants::{
    persistent_volume_claim_phase as claim_phase, persistent_volume_phase as volume_phase,
};
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus};
use component_helpers::volumes::binding;
use component_helpers::volumes::names::{BIND_COMPLETED, BOUND_BY_CONTROLLER, PRE_RESIZE_CAPACITY, YES};
use controller::{Cx, ReconcileError};

use super::Binder;

/// A bound volume says nothing of its size, so the claim cannot say what it got.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PersistentVolume \"{0}\" is without a storage capacity")]
pub(super) struct NoCapacity(String);

/// The claim with its volume's name, or nothing where it has that. A claim that had no name before is marked as bound by
/// the control plane.
pub(super) fn named(claim: &PersistentVolumeClaim, volume: &str) -> Option<PersistentVolumeClaim> {
    let is_named = claim.spec.volume_name == volume;
    if is_named && claim.metadata.annotations.contains_key(BIND_COMPLETED) {
        return None;
    }
    let mut next = claim.clone();
    if !is_named {
        volume.clone_into(&mut next.spec.volume_name);
        next.metadata.annotations.insert(BOUND_BY_CONTROLLER.to_owned(), YES.to_owned());
    }
    next.metadata.annotations.insert(BIND_COMPLETED.to_owned(), YES.to_owned());
    Some(next)
}

/// The status of a claim in this phase with this volume. What the claim got is only taken over from the volume when
/// the phase changes: a volume that grows under a claim is announced by whoever grows the file system on it.
///
/// # Errors
/// When the volume does not say how large it is.
pub(super) fn status(
    claim: &PersistentVolumeClaim,
    phase: &str,
    volume: Option<&PersistentVolume>,
) -> Result<PersistentVolumeClaimStatus, NoCapacity> {
    let former = &claim.status;
    let mut next = PersistentVolumeClaimStatus { phase: phase.to_owned(), ..former.clone() };
    let Some(volume) = volume else {
        next.access_modes.clear();
        next.capacity.clear();
        next.current_volume_attributes_class_name = None;
        return Ok(next);
    };
    next.access_modes.clone_from(&volume.spec.access_modes);
    if former.phase == phase {
        return Ok(next);
    }
    let size = volume.spec.capacity.get("storage").ok_or_else(|| NoCapacity(volume.metadata.name.clone()))?;
    let before = volume.metadata.annotations.get(PRE_RESIZE_CAPACITY).and_then(|text| Quantity::parse(text).ok());
    match before {
        Some(before) => next.capacity = [("storage".to_owned(), before)].into(),
        None if former.capacity.get("storage") != Some(size) => next.capacity.clone_from(&volume.spec.capacity),
        None => {}
    }
    if former.phase == claim_phase::PENDING && phase == claim_phase::BOUND {
        next.current_volume_attributes_class_name.clone_from(&volume.spec.volume_attributes_class_name);
    }
    Ok(next)
}

impl Binder {
    /// Ties claim and volume together, or does what is left of that. The volume is said to be bound before the claim has it:
    /// by that phase alone it is kept from who deletes it, also where nobody is left to write the rest.
    pub(super) async fn bind(
        &self,
        cx: &Cx,
        claim: &Arc<PersistentVolumeClaim>,
        volume: Arc<PersistentVolume>,
    ) -> Result<(), ReconcileError> {
        let volume = match binding::tied(&volume, claim) {
            Some(next) => self.write_volume(cx, &next).await?,
            None => volume,
        };
        let volume = self.set_volume_phase(cx, volume, volume_phase::BOUND, "").await?;
        let claim = match named(claim, &volume.metadata.name) {
            Some(next) => self.write_claim(cx, &next).await?,
            None => Arc::clone(claim),
        };
        self.set_claim_status(cx, claim, claim_phase::BOUND, Some(&volume)).await.map(drop)
    }

    pub(super) async fn set_claim_status(
        &self,
        cx: &Cx,
        claim: Arc<PersistentVolumeClaim>,
        phase: &str,
        volume: Option<&PersistentVolume>,
    ) -> Result<Arc<PersistentVolumeClaim>, ReconcileError> {
        let status = status(&claim, phase, volume).map_err(|error| ReconcileError::failed(error.to_string()))?;
        if status == claim.status {
            return Ok(claim);
        }
        let next = PersistentVolumeClaim { status, ..PersistentVolumeClaim::clone(&claim) };
        let api = cx.client.namespaced::<PersistentVolumeClaim>(&claim.metadata.namespace);
        Ok(self.claims.wrote(api.update_status(&next).await?))
    }

    pub(super) async fn set_volume_phase(
        &self,
        cx: &Cx,
        volume: Arc<PersistentVolume>,
        phase: &str,
        message: &str,
    ) -> Result<Arc<PersistentVolume>, ReconcileError> {
        if volume.status.phase == phase {
            return Ok(volume);
        }
        let mut next = PersistentVolume::clone(&volume);
        phase.clone_into(&mut next.status.phase);
        message.clone_into(&mut next.status.message);
        Ok(self.volumes.wrote(cx.client.all::<PersistentVolume>().update_status(&next).await?))
    }

    pub(super) async fn write_volume(
        &self,
        cx: &Cx,
        next: &PersistentVolume,
    ) -> Result<Arc<PersistentVolume>, ReconcileError> {
        Ok(self.volumes.wrote(cx.client.all::<PersistentVolume>().update(next).await?))
    }

    pub(super) async fn write_claim(
        &self,
        cx: &Cx,
        next: &PersistentVolumeClaim,
    ) -> Result<Arc<PersistentVolumeClaim>, ReconcileError> {
        let api = cx.client.namespaced::<PersistentVolumeClaim>(&next.metadata.namespace);
        Ok(self.claims.wrote(api.update(next).await?))
    }
}
