//! The claims of a pod: whether they will do, and which of them are bound once a node is chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::constants::persistent_volume_claim_phase::LOST;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use api_types::storage_v1::StorageClass;
use client::ObjectKey;
use component_helpers::volumes::classes::{class_of_claim, class_of_volume, waits_for_consumer};
use component_helpers::volumes::matching::{is_fully_bound, storage};
use component_helpers::volumes::names::{NO_PROVISIONER, SELECTED_NODE};
use component_helpers::volumes::of_pods::{check_owner, claim_name, claim_names};

use super::capacity::Rooms;
use super::node_volumes::{NodeVolumes, Provision};
use super::{BY_CLAIM, BY_CLASS, VolumeBinding};
use crate::framework::Status;

const UNBOUND: &str = "pod has unbound immediate PersistentVolumeClaims";

/// The claims of a pod, all of which will do.
#[derive(Clone, Default)]
pub(super) struct Claims {
    /// The volumes of those that have one; none where that is not there.
    pub(super) bound: Vec<Option<Arc<PersistentVolume>>>,
    /// Those that wait for the pod to have a node, the smallest first.
    pub(super) delayed: Vec<Arc<PersistentVolumeClaim>>,
    /// The classes of those that wait.
    pub(super) classes: BTreeMap<String, ClaimClass>,
}

/// A class of claims that wait, looked up once for all nodes.
#[derive(Clone)]
pub(super) struct ClaimClass {
    /// The class itself; none where it has gone since.
    pub(super) class: Option<Arc<StorageClass>>,
    /// Its volumes that are free, or wait for a claim of the pod.
    pub(super) volumes: Vec<Arc<PersistentVolume>>,
    /// Where its driver has room for more.
    pub(super) rooms: Rooms,
}

impl Claims {
    /// The volumes that the pod has on whichever node; none where nodes differ, or one of them may be wrong.
    pub(super) fn everywhere(&self) -> Option<NodeVolumes> {
        let is_everywhere = |volume: &PersistentVolume| {
            volume.spec.node_affinity.as_ref().is_none_or(|affinity| affinity.required.is_none())
        };
        let bound = self.bound.iter().all(|volume| volume.as_deref().is_some_and(is_everywhere));
        let are_everywhere = bound && self.delayed.iter().all(|claim| self.is_made_everywhere(claim));
        let made = || self.delayed.iter().map(|claim| Provision { claim: Arc::clone(claim), room: None }).collect();
        are_everywhere.then(|| NodeVolumes { matched: Vec::new(), provisioned: made() })
    }

    /// Whether a volume is made for the claim whichever node is chosen, as there is none to choose from, no node was chosen
    /// for it before, and neither its class nor its driver minds.
    fn is_made_everywhere(&self, claim: &PersistentVolumeClaim) -> bool {
        let Some(known) = self.classes.get(class_of_claim(claim)) else { return false };
        let is_made = |class: &StorageClass| is_provisioned(class) && class.allowed_topologies.is_empty();
        let is_free = !claim.metadata.annotations.contains_key(SELECTED_NODE);
        is_free && known.volumes.is_empty() && known.class.as_deref().is_some_and(is_made) && known.rooms.are_unknown()
    }
}

/// Whether anybody makes volumes of a class.
pub(super) fn is_provisioned(class: &StorageClass) -> bool {
    !class.provisioner.is_empty() && class.provisioner != NO_PROVISIONER
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
                claims.bound.push(self.volumes.find("", &claim.spec.volume_name));
            } else if self.is_delayed(&claim)? {
                claims.delayed.push(claim);
            } else {
                is_unbound = true;
            }
        }
        if is_unbound {
            return Err(Status::unresolvable(UNBOUND));
        }
        claims.delayed.sort_by_cached_key(|claim| storage(&claim.spec.resources.requests).clone());
        for claim in &claims.delayed {
            let name = class_of_claim(claim);
            let class = claims.classes.entry(name.to_owned()).or_insert_with(|| self.class(name));
            let named = self.volumes.by_index(BY_CLAIM, &ObjectKey::of(&claim.metadata).to_string());
            class.volumes.extend(named.into_iter().filter(|volume| class_of_volume(volume) == name));
        }
        Ok(claims)
    }

    /// A class, with its volumes that are free.
    fn class(&self, name: &str) -> ClaimClass {
        let class = self.classes.find("", name);
        let rooms = class.as_deref().map_or_else(Rooms::default, |class| self.rooms_of(class));
        ClaimClass { class, volumes: self.volumes.by_index(BY_CLASS, name), rooms }
    }

    /// Whether the claim waits for a pod that has a node.
    fn is_delayed(&self, claim: &PersistentVolumeClaim) -> Result<bool, Status> {
        let class = Some(class_of_claim(claim)).filter(|class| !class.is_empty());
        let Some(class) = class.and_then(|class| self.classes.find("", class)) else { return Ok(false) };
        let waits = waits_for_consumer(&class).map_err(|error| Status::error(error.to_string()))?;
        Ok(waits && claim.spec.volume_name.is_empty())
    }
}
