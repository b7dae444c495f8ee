//! How full the file systems behind claims are.

use std::sync::Arc;

use api_types::core_v1::Pod;

use super::claims::claim_name;
use super::plan::{Kind, kind_of};
use super::set::VolumeSet;
use crate::node::{FileSystem, filesystem};

/// A claim in use by a pod, and the file system behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimRoom {
    /// The pod's uid, and its name for the volume.
    pub(crate) uid: String,
    pub(crate) volume: String,
    pub(crate) namespace: String,
    pub(crate) claim: String,
    pub(crate) room: FileSystem,
}

impl VolumeSet {
    /// What the claims of pods have. Directories of the machine that are mounted as they are have no size of their own.
    pub(crate) fn claimed_rooms(&self, pods: &[Arc<Pod>]) -> Vec<ClaimRoom> {
        let mut rooms = Vec::new();
        for pod in pods {
            for volume in &pod.spec.volumes {
                let Kind::Claim { name, ephemeral, .. } = kind_of(volume) else { continue };
                let place = self.place(&pod.metadata.uid, &volume.name).filter(|place| place.managed);
                let Some(Ok(room)) = place.map(|place| filesystem(&place.path)) else { continue };
                rooms.push(ClaimRoom {
                    uid: pod.metadata.uid.clone(),
                    volume: volume.name.clone(),
                    namespace: pod.metadata.namespace.clone(),
                    claim: claim_name(pod, &volume.name, ephemeral, name),
                    room,
                });
            }
        }
        rooms
    }
}
