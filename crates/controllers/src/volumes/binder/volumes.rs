//! What a volume wants next.

use std::sync::Arc;

use api_types::core_v1::constants::{persistent_volume_phase as phase, persistent_volume_reclaim_policy as policy};
use api_types::core_v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};
use client::ObjectKey;
use component_helpers::volumes::matching::has_other_mode;
use component_helpers::volumes::names::{BOUND_BY_CONTROLLER, PROVISIONED_BY};
use controller::{Cx, ReconcileError};

use super::{Binder, key_of};
use crate::volumes::notice::Notice;

/// What is to be done for a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// It is nobody's, or waits for a claim that has not taken it yet.
    Free,
    /// Its claim has it.
    Bound,
    /// Its claim has not taken it yet: that is looked at.
    WakeClaim,
    /// Its claim cannot take it: one is a block device.
    Mismatch,
    /// Its claim is gone, or has another volume instead.
    LetGo,
    /// Its claim has another volume: it is free for others.
    Untie,
}

pub(super) fn plan(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> Plan {
    if volume.spec.claim_ref.as_ref().is_none_or(|claim| claim.uid.is_empty()) {
        return Plan::Free;
    }
    let Some(claim) = claim else { return Plan::LetGo };
    if claim.spec.volume_name.is_empty() {
        return if has_other_mode(volume, claim) { Plan::Mismatch } else { Plan::WakeClaim };
    }
    if claim.spec.volume_name == volume.metadata.name {
        return Plan::Bound;
    }
    let is_made = volume.metadata.annotations.contains_key(PROVISIONED_BY);
    let is_unneeded = is_made && volume.spec.persistent_volume_reclaim_policy == policy::DELETE;
    if is_unneeded { Plan::LetGo } else { Plan::Untie }
}

/// The volume without its claim: free for anybody, or for whoever has the name that a user wrote.
pub(super) fn untied(volume: &PersistentVolume) -> PersistentVolume {
    let mut next = volume.clone();
    if next.metadata.annotations.remove(BOUND_BY_CONTROLLER).is_some() {
        next.spec.claim_ref = None;
    } else if let Some(claim) = &mut next.spec.claim_ref {
        claim.uid.clear();
    }
    next
}

impl Binder {
    pub(super) async fn sync_volume(&self, cx: &Cx, volume: Arc<PersistentVolume>) -> Result<(), ReconcileError> {
        let volume = self.mark_migrated_volume(cx, volume).await?;
        let claim = match &volume.spec.claim_ref {
            Some(named) if !named.uid.is_empty() => self.find_claim(cx, named, &volume).await?,
            _ => None,
        };
        match plan(&volume, claim.as_deref()) {
            Plan::Free => self.set_volume_phase(cx, volume, phase::AVAILABLE, "").await.map(drop),
            Plan::Bound => self.set_volume_phase(cx, volume, phase::BOUND, "").await.map(drop),
            Plan::WakeClaim => {
                if let Some(claim) = claim {
                    self.claim_queue.add(ObjectKey::of(&claim.metadata));
                }
                Ok(())
            }
            Plan::Mismatch => {
                if let Some(claim) = claim {
                    tell_mismatch(cx, &volume, &claim);
                }
                Ok(())
            }
            Plan::LetGo => {
                let is_known = matches!(volume.status.phase.as_str(), phase::RELEASED | phase::FAILED);
                let volume =
                    if is_known { volume } else { self.set_volume_phase(cx, volume, phase::RELEASED, "").await? };
                self.reclaim(cx, volume).await
            }
            Plan::Untie => {
                let volume = self.write_volume(cx, &untied(&volume)).await?;
                self.set_volume_phase(cx, volume, phase::AVAILABLE, "").await.map(drop)
            }
        }
    }

    /// The very claim that a volume names. Before a volume is let go the server is asked, as the cache may not have
    /// heard of a claim that a provisioner or the scheduler has just bound.
    async fn find_claim(
        &self,
        cx: &Cx,
        named: &ObjectReference,
        volume: &PersistentVolume,
    ) -> Result<Option<Arc<PersistentVolumeClaim>>, ReconcileError> {
        let seen = self.claims.get(&key_of(named));
        let is_let_go = matches!(volume.status.phase.as_str(), phase::RELEASED | phase::FAILED);
        match seen {
            Some(claim) if claim.metadata.uid == named.uid => return Ok(Some(claim)),
            None if is_let_go => return Ok(None),
            _ => {}
        }
        let live = cx.client.namespaced::<PersistentVolumeClaim>(&named.namespace).get_opt(&named.name).await?;
        Ok(live.filter(|claim| claim.metadata.uid == named.uid).map(Arc::new))
    }
}

fn tell_mismatch(cx: &Cx, volume: &PersistentVolume, claim: &PersistentVolumeClaim) {
    let (own, other) = (&volume.metadata.name, &claim.metadata.name);
    let of_volume = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim \"{other}\" due to incompatible volumeMode."
    );
    let of_claim = format!(
        "Cannot bind PersistentVolume \"{own}\" to requested PersistentVolumeClaim due to incompatible volumeMode."
    );
    Notice::warning("VolumeMismatch", of_volume).tell(cx, volume);
    Notice::warning("VolumeMismatch", of_claim).tell(cx, claim);
}
