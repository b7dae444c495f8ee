//! What a hollow node does about volumes: a pod starts once its volumes are attached, staged and published, and the node tells
//! which are in use, so that nobody detaches them. Who serves the volumes is the test's (see [`NodeDriver`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use api_types::storage_v1::VolumeAttachment;
use async_trait::async_trait;
use client::{Client, ClientError, Patch};
use component_helpers::volumes::attaching::{attachment_name, unique_name};
use parking_lot::Mutex;
use serde_json::json;

/// The driver does not answer, or not well.
#[derive(Debug, thiserror::Error)]
#[error("the driver has failed: {0}")]
pub struct DriverError(pub String);

/// The service of a driver of volumes on all nodes. Each call may be made again.
#[async_trait]
pub trait NodeDriver: Send + Sync {
    /// Makes a volume usable on a node that it is attached to; formats it where it is new.
    async fn stage(&self, node: &str, handle: &str) -> Result<(), DriverError>;
    /// Gives a volume that is staged to a pod.
    async fn publish(&self, node: &str, handle: &str, pod_uid: &str) -> Result<(), DriverError>;
    /// Takes a volume from a pod.
    async fn unpublish(&self, node: &str, handle: &str, pod_uid: &str) -> Result<(), DriverError>;
    /// The node uses a volume no more.
    async fn unstage(&self, node: &str, handle: &str) -> Result<(), DriverError>;
    /// Has what is on a volume grow to a size that the volume has already, while it is staged.
    async fn expand(&self, node: &str, handle: &str, size: &Quantity) -> Result<(), DriverError>;
}

/// A volume of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsedVolume {
    /// The driver.
    pub driver: String,
    /// What the driver calls it.
    pub handle: String,
}

impl UsedVolume {
    /// As the node's status has it.
    fn name(&self) -> String {
        unique_name(&self.driver, &self.handle)
    }
}

/// What a pod needs could not be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unmet {
    #[error("a volume is not there yet")]
    Volume,
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error(transparent)]
    Request(#[from] ClientError),
}

/// The volumes of a node. They stay while no kubelet runs.
pub(crate) struct NodeVolumes {
    driver: Mutex<Option<Arc<dyn NodeDriver>>>,
    /// Those that are mounted, or about to be, by the pod's uid.
    mounts: Mutex<BTreeMap<String, Vec<UsedVolume>>>,
    /// Those in use that the node's status tells of; none while that is in doubt.
    told: Mutex<Option<BTreeSet<UsedVolume>>>,
}

impl Default for NodeVolumes {
    fn default() -> Self {
        // The status of a new node tells of none.
        Self { driver: Mutex::default(), mounts: Mutex::default(), told: Mutex::new(Some(BTreeSet::new())) }
    }
}

impl NodeVolumes {
    pub(crate) fn set_driver(&self, driver: Arc<dyn NodeDriver>) {
        *self.driver.lock() = Some(driver);
    }

    pub(crate) fn driver(&self) -> Result<Arc<dyn NodeDriver>, Unmet> {
        self.driver.lock().clone().ok_or(Unmet::Volume)
    }

    /// Mounts the volumes of a pod, which are used from now on: that is told before it is seen whether they are attached, so
    /// that nobody detaches them in between. Those that have grown meanwhile grow with it.
    pub(crate) async fn mount(&self, client: &Client, node: &str, pod: &Pod) -> Result<Vec<UsedVolume>, Unmet> {
        let volumes = volumes_of(client, pod).await?.ok_or(Unmet::Volume)?;
        if volumes.is_empty() {
            return Ok(volumes);
        }
        let uid = &pod.metadata.uid;
        self.mounts.lock().insert(uid.clone(), volumes.clone());
        self.tell(client, node).await?;
        if !are_attached(client, node, &volumes).await? {
            return Err(Unmet::Volume);
        }
        let driver = self.driver()?;
        for UsedVolume { handle, .. } in &volumes {
            driver.stage(node, handle).await?;
            driver.publish(node, handle, uid).await?;
        }
        self.grow(client, node, pod).await?;
        Ok(volumes)
    }

    /// Takes from a pod the volumes that it has, so that it may go. The node uses them until it [cleans up](Self::clean_up).
    pub(crate) async fn release(&self, node: &str, uid: &str) -> Result<(), Unmet> {
        for volume in self.of(uid) {
            self.driver()?.unpublish(node, &volume.handle, uid).await?;
        }
        Ok(())
    }

    /// Unmounts what none of these pods has, and tells what is in use.
    pub(crate) async fn clean_up(&self, client: &Client, node: &str, using: &BTreeSet<&String>) -> Result<(), Unmet> {
        let gone = self.mounts.lock().keys().filter(|uid| !using.contains(uid)).cloned().collect::<Vec<_>>();
        for uid in gone {
            self.release(node, &uid).await?;
            for volume in self.of(&uid) {
                let is_shared =
                    |(other, theirs): (&String, &Vec<UsedVolume>)| *other != uid && theirs.contains(&volume);
                if !self.mounts.lock().iter().any(is_shared) {
                    self.driver()?.unstage(node, &volume.handle).await?;
                }
            }
            self.mounts.lock().remove(&uid);
        }
        self.tell(client, node).await
    }

    fn of(&self, uid: &str) -> Vec<UsedVolume> {
        self.mounts.lock().get(uid).cloned().unwrap_or_default()
    }

    /// Tells which volumes are in use, where the node's status may say otherwise.
    async fn tell(&self, client: &Client, node: &str) -> Result<(), Unmet> {
        let used: BTreeSet<UsedVolume> = self.mounts.lock().values().flatten().cloned().collect();
        if self.told.lock().as_ref() == Some(&used) {
            return Ok(());
        }
        *self.told.lock() = None;
        let names: BTreeSet<String> = used.iter().map(UsedVolume::name).collect();
        let patch = json!({"status": {"volumesInUse": names}});
        client.all::<Node>().patch_status(node, &Patch::Merge(patch)).await?;
        *self.told.lock() = Some(used);
        Ok(())
    }
}

/// The volumes of a pod's claims; none while one of them has no volume.
async fn volumes_of(client: &Client, pod: &Pod) -> Result<Option<Vec<UsedVolume>>, ClientError> {
    let mut volumes = Vec::new();
    for name in claims_of(pod) {
        let claims = client.namespaced::<PersistentVolumeClaim>(&pod.metadata.namespace);
        let Some(claim) = claims.get_opt(name).await? else { return Ok(None) };
        let Some(volume) = volume_of(client, &claim).await? else { return Ok(None) };
        volumes.push(volume);
    }
    Ok(Some(volumes))
}

/// The names of the claims that a pod uses.
pub(crate) fn claims_of(pod: &Pod) -> impl Iterator<Item = &str> {
    let claims = pod.spec.volumes.iter().filter_map(|volume| volume.volume_source.persistent_volume_claim.as_ref());
    claims.map(|claim| claim.claim_name.as_str())
}

/// The volume of a claim, if it has one.
pub(crate) async fn volume_of(
    client: &Client,
    claim: &PersistentVolumeClaim,
) -> Result<Option<UsedVolume>, ClientError> {
    if claim.spec.volume_name.is_empty() {
        return Ok(None);
    }
    let volume = client.all::<PersistentVolume>().get_opt(&claim.spec.volume_name).await?;
    let csi = volume.and_then(|volume| volume.spec.persistent_volume_source.csi);
    Ok(csi.map(|csi| UsedVolume { driver: csi.driver, handle: csi.volume_handle }))
}

/// Whether all volumes are attached to a node, as its status and the attachments say.
async fn are_attached(client: &Client, node: &str, volumes: &[UsedVolume]) -> Result<bool, ClientError> {
    let listed = client.all::<Node>().get(node).await?.status.volumes_attached;
    for volume in volumes {
        if !listed.iter().any(|own| own.name == volume.name()) {
            return Ok(false);
        }
        let name = attachment_name(&volume.driver, &volume.handle, node);
        let attachment = client.all::<VolumeAttachment>().get_opt(&name).await?;
        let is_attached = |own: &VolumeAttachment| own.status.attached && own.metadata.deletion_timestamp.is_none();
        if !attachment.as_ref().is_some_and(is_attached) {
            return Ok(false);
        }
    }
    Ok(true)
}
