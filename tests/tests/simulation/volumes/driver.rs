//! A hollow driver of volumes: what the sidecars of a CSI driver do, over disks that are numbers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_machinery::object::from_value;
use api_machinery::quantity::Quantity;
use api_machinery::value::Value;
use api_types::core_v1::constants::{claim_resource_status, persistent_volume_claim_condition_type as condition};
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, ResourceList};
use api_types::storage_v1::VolumeAttachment;
use base::TaskGroup;
use client::{Client, ClientError, Patch};
use component_base::serving::BoxError;
use parking_lot::Mutex;
use serde_json::json;

use super::disks::Disks;
use crate::workloads::NAMESPACE;

pub(crate) const DRIVER: &str = "disk.csi.test";
const CHOSEN: &str = "volume.kubernetes.io/selected-node";
const FINALIZER: &str = "external-attacher/disk-csi-test";
const PERIOD: Duration = Duration::from_millis(500);

/// Starts the driver; it ends, wherever it is, when the group is cancelled.
pub(crate) fn start(disks: &Disks, admin: &Client) -> TaskGroup {
    let tasks = admin.tasks().child("driver");
    let driver = Driver { disks: disks.clone(), admin: admin.clone(), tasks: tasks.clone(), busy: Arc::default() };
    disks.steps.set_down(false);
    tasks.spawn_cancellable("driver", async move {
        loop {
            if let Err(error) = driver.round().await {
                tracing::info!(%error, "A request of the driver failed");
            }
            tokio::time::sleep(PERIOD).await;
        }
    });
    tasks
}

#[derive(Clone)]
struct Driver {
    disks: Disks,
    admin: Client,
    tasks: TaskGroup,
    /// What something is being done about, as kind and name.
    busy: Arc<Mutex<BTreeSet<(&'static str, String)>>>,
}

/// One that is there already, or gone already, is fine.
fn settled<T>(outcome: Result<T, ClientError>) -> Result<(), BoxError> {
    match outcome {
        Err(error) if error.is_already_exists() || error.is_not_found() || error.is_conflict() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

fn storage(of: &ResourceList) -> Quantity {
    of.get("storage").cloned().unwrap_or_default()
}

/// The size that a claim asks for.
fn asked(claim: &PersistentVolumeClaim) -> Quantity {
    storage(&claim.spec.resources.requests)
}

/// Whether something is to be done about a claim: its disk is to be made, or to be grown once its node has done its part of
/// the last time.
fn is_to_be_served(claim: &PersistentVolumeClaim) -> bool {
    let (meta, status) = (&claim.metadata, &claim.status);
    if meta.deletion_timestamp.is_some() {
        return false;
    }
    if claim.spec.volume_name.is_empty() {
        return meta.annotations.contains_key(CHOSEN);
    }
    let (has, is_on_node) = (storage(&status.capacity), !status.allocated_resource_statuses.is_empty());
    !has.is_zero() && has < asked(claim) && !is_on_node
}

/// Whether something is to be done about an attachment.
fn is_to_be_followed(attachment: &VolumeAttachment) -> bool {
    let is_ours = attachment.metadata.finalizers.iter().any(|own| own == FINALIZER);
    if attachment.metadata.deletion_timestamp.is_some() { is_ours } else { !is_ours || !attachment.status.attached }
}

impl Driver {
    /// Looks at everything once. What takes time is done beside each other, as sidecars do.
    async fn round(&self) -> Result<(), BoxError> {
        let all = ListOptions::default();
        let claims = self.admin.namespaced::<PersistentVolumeClaim>(NAMESPACE).list_all(&all).await?.items;
        claims.iter().for_each(|claim| self.disks.tell_room(&claim.spec.volume_name, &storage(&claim.status.capacity)));
        for claim in claims.into_iter().filter(is_to_be_served) {
            let (driver, name) = (self.clone(), claim.metadata.name);
            self.begin("claim", name.clone(), async move { driver.serve(&name).await });
        }
        let attachments = self.admin.all::<VolumeAttachment>().list_all(&all).await?.items;
        for volume in self.admin.all::<PersistentVolume>().list_all(&all).await?.items {
            let name = Some(&volume.metadata.name);
            let is_attached = attachments.iter().any(|own| own.spec.source.persistent_volume_name.as_ref() == name);
            if volume.status.phase == "Released" && !is_attached {
                self.disks.remove(&volume.metadata.name);
                let volumes = self.admin.all::<PersistentVolume>();
                settled(volumes.delete(&volume.metadata.name, &DeleteOptions::default()).await)?;
            }
        }
        for attachment in attachments.into_iter().filter(is_to_be_followed) {
            let (driver, name) = (self.clone(), attachment.metadata.name);
            self.begin("attachment", name.clone(), async move { driver.attach(&name).await });
        }
        Ok(())
    }

    /// Does something about an object, unless something is being done about it.
    fn begin(
        &self,
        kind: &'static str,
        name: String,
        work: impl Future<Output = Result<(), BoxError>> + Send + 'static,
    ) {
        let (busy, key) = (Arc::clone(&self.busy), (kind, name));
        if !busy.lock().insert(key.clone()) {
            return;
        }
        self.tasks.spawn_cancellable(kind, async move {
            if let Err(error) = work.await {
                tracing::info!(%error, ?key, "A request of the driver failed");
            }
            busy.lock().remove(&key);
        });
    }

    /// Gives a claim what it asks for.
    async fn serve(&self, name: &str) -> Result<(), BoxError> {
        let claims = self.admin.namespaced::<PersistentVolumeClaim>(NAMESPACE);
        let Some(claim) = claims.get_opt(name).await?.filter(is_to_be_served) else { return Ok(()) };
        if claim.spec.volume_name.is_empty() { self.provision(&claim).await } else { self.grow(&claim).await }
    }

    /// Makes the disk of a claim whose pod has a node.
    async fn provision(&self, claim: &PersistentVolumeClaim) -> Result<(), BoxError> {
        let meta = &claim.metadata;
        let name = format!("pvc-{}", meta.uid);
        if self.admin.all::<PersistentVolume>().get_opt(&name).await?.is_some() {
            return Ok(());
        }
        // Who is told that it has failed does not know whether it has.
        while let Err(error) = self.disks.provision(&name, &asked(claim)).await {
            tracing::info!(%error, "A disk could not be made");
            tokio::time::sleep(PERIOD).await;
        }
        let volume: Value = json!({"metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER}},
            "spec": {"capacity": {"storage": asked(claim).to_string()}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": claim.spec.storage_class_name, "persistentVolumeReclaimPolicy": "Delete",
                "csi": {"driver": DRIVER, "volumeHandle": name},
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": meta.namespace,
                    "name": meta.name, "uid": meta.uid}}});
        let volume = from_value::<PersistentVolume>(&volume).expect("a volume");
        // The disk is there: whatever becomes of the claim, somebody has to know of it.
        while let Err(error) = settled(self.admin.all::<PersistentVolume>().create(&volume).await) {
            tracing::info!(%error, "A volume could not be created");
            tokio::time::sleep(PERIOD).await;
        }
        Ok(())
    }

    /// Grows the disk of a claim. The rest is for the node on which a pod uses it.
    async fn grow(&self, claim: &PersistentVolumeClaim) -> Result<(), BoxError> {
        let (volume, size) = (&claim.spec.volume_name, asked(claim));
        self.disks.resize(volume, &size).await?;
        let storage = json!({"storage": size.to_string()});
        let grown = Patch::Merge(json!({"spec": {"capacity": storage}}));
        settled(self.admin.all::<PersistentVolume>().patch(volume, &grown).await)?;
        let condition = json!({"type": condition::FILE_SYSTEM_RESIZE_PENDING, "status": "True"});
        let status = json!({"allocatedResources": storage, "conditions": [condition],
            "allocatedResourceStatuses": {"storage": claim_resource_status::NODE_RESIZE_PENDING}});
        let claims = self.admin.namespaced::<PersistentVolumeClaim>(NAMESPACE);
        let version = &claim.metadata.resource_version;
        let pending = Patch::Merge(json!({"metadata": {"resourceVersion": version}, "status": status}));
        settled(claims.patch_status(&claim.metadata.name, &pending).await)
    }

    async fn attach(&self, name: &str) -> Result<(), BoxError> {
        let attachments = self.admin.all::<VolumeAttachment>();
        let Some(attachment) = attachments.get_opt(name).await?.filter(is_to_be_followed) else { return Ok(()) };
        let (meta, node) = (&attachment.metadata, &attachment.spec.node_name);
        let handle = attachment.spec.source.persistent_volume_name.clone().unwrap_or_default();
        let is_ours = meta.finalizers.iter().any(|own| own == FINALIZER);
        if meta.deletion_timestamp.is_some() {
            self.disks.detach(&handle, node).await?;
            let mut next = attachment.clone();
            next.metadata.finalizers.retain(|own| own != FINALIZER);
            return settled(attachments.update(&next).await);
        }
        // An attachment that was asked for long ago may be of a volume that has gone since.
        if self.admin.all::<PersistentVolume>().get_opt(&handle).await?.is_none() {
            return Ok(());
        }
        if !is_ours {
            let mut next = attachment.clone();
            next.metadata.finalizers.push(FINALIZER.to_owned());
            return settled(attachments.update(&next).await);
        }
        self.disks.attach(&handle, node).await?;
        let patch = Patch::Merge(json!({"status": {"attached": true}}));
        settled(attachments.patch_status(&meta.name, &patch).await)
    }
}
