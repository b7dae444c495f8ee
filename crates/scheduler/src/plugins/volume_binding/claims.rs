//! The claims of a pod: whether they will do, and which of them are bound once a node is chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::constants::persistent_volume_claim_phase::LOST;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use component_helpers::volumes::classes::{class_of_claim, waits_for_consumer};
use component_helpers::volumes::matching::is_fully_bound;
use component_helpers::volumes::of_pods::{check_owner, claim_name, claim_names};

use super::{BY_CLASS, VolumeBinding};
use crate::framework::Status;

const UNBOUND: &str = "pod has unbound immediate PersistentVolumeClaims";

/// The claims of a pod, all of which will do.
#[derive(Clone, Default)]
pub(super) struct Claims {
    /// Those that have their volume.
    pub(super) bound: Vec<Arc<PersistentVolumeClaim>>,
    /// Those that wait for the pod to have a node.
    pub(super) delayed: Vec<Arc<PersistentVolumeClaim>>,
    /// The volumes of the classes of those that wait.
    pub(super) volumes: BTreeMap<String, Vec<Arc<PersistentVolume>>>,
}

impl VolumeBinding {
    /// Whether the pod has claims at all, be they bound or not.
    ///
    /// # Errors
    /// When one of them is not there, or will never do.
    pub(super) fn check_claims(&self, pod: &Pod) -> Result<bool, Status> {
        let mut any = false;
        for volume in &pod.spec.volumes {
            if let Some(name) = claim_name(pod, volume) {
                any = true;
                self.check_claim(pod, volume, &name).map_err(Status::unresolvable)?;
            }
        }
        Ok(any)
    }

    fn check_claim(&self, pod: &Pod, volume: &Volume, name: &str) -> Result<(), String> {
        let is_ephemeral = volume.volume_source.ephemeral.is_some();
        let claim = match self.claims.watched().get(&pod.metadata.namespace, name) {
            Ok(claim) => claim,
            Err(_) if is_ephemeral => {
                return Err(format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
                ));
            }
            Err(error) => return Err(error.to_string()),
        };
        if claim.status.phase == LOST {
            let volume = &claim.spec.volume_name;
            return Err(format!("persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"));
        }
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        if is_ephemeral {
            check_owner(pod, &claim).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// The claims of a pod.
    ///
    /// # Errors
    /// When one is neither bound nor waits for the pod.
    pub(super) fn claims_of(&self, pod: &Pod) -> Result<Claims, Status> {
        let mut claims = Claims::default();
        let mut is_unbound = false;
        for name in claim_names(pod) {
            let claim = self.claims.get(&pod.metadata.namespace, &name)?;
            if is_fully_bound(&claim) {
                claims.bound.push(claim);
            } else if self.is_delayed(&claim)? {
                claims.delayed.push(claim);
            } else {
                is_unbound = true;
            }
        }
        if is_unbound {
            return Err(Status::unresolvable(UNBOUND));
        }
        for claim in &claims.delayed {
            let class = class_of_claim(claim).to_owned();
            claims.volumes.entry(class).or_insert_with_key(|class| self.volumes.by_index(BY_CLASS, class));
        }
        Ok(claims)
    }

    /// Whether the claim waits for a pod that has a node.
    fn is_delayed(&self, claim: &PersistentVolumeClaim) -> Result<bool, Status> {
        let class = Some(class_of_claim(claim)).filter(|class| !class.is_empty());
        let Some(class) = class.and_then(|class| self.classes.find("", class)) else { return Ok(false) };
        let waits = waits_for_consumer(&class).map_err(|error| Status::error(error.to_string()))?;
        Ok(waits && claim.spec.volume_name.is_empty())
    }
}
