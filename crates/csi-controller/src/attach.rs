//! Attaches volumes to nodes, and detaches them: what upstream's external-attacher does.

use std::sync::Arc;

use api_machinery::object::Object as _;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::{CSIPersistentVolumeSource, PersistentVolume};
use api_types::storage_v1::{CSINode, VolumeAttachment};
use client::{Change, Informer, ObjectKey, Patch};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use node_api::RpcError;
use node_api::csi::access_mode;
use node_api::csi::v1::controller_service_capability::rpc::Type as Can;
use node_api::csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use node_api::csi::v1::{ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest, VolumeCapability};
use serde_json::json;
use tonic::Code;

use crate::driver::Driver;
use crate::names;
use crate::settings::{Place, Settings};
use crate::{finalizers, secrets};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "csi-attacher",
    aliases: &[],
    gates: &[],
    identity: "csi-attacher",
    event_component: "external-attacher",
    disabled_by_default: false,
    build,
};

/// Attachments by the volume that they are of.
const BY_VOLUME: &str = "attachments-by-volume";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.clone();
    let driver = settings.driver.clone().ok_or_else(|| BuildError::Skipped("there is no driver".into()))?;
    let (queue, volumes) =
        (build.queue_with("attachments", settings.retry.clone()), build.queue_with("attached", settings.retry.clone()));
    let attachments = build
        .watch::<VolumeAttachment>()
        .index(BY_VOLUME, |attachment| attachment.spec.source.persistent_volume_name.clone().into_iter().collect())
        .enqueue_keys(&queue, |change| is_news(change).then(|| change.key()))
        .enqueue_keys(&volumes, |change| {
            change.object().spec.source.persistent_volume_name.clone().map(ObjectKey::cluster)
        })
        .informer();
    let all = build.watch::<PersistentVolume>().enqueue_self(&volumes).informer();
    let csi_nodes = build.watch::<CSINode>().informer();
    let finalizer = names::attacher(&driver.name);
    let attacher =
        Arc::new(Attacher { driver, place: settings.place, finalizer, attachments, volumes: all, csi_nodes });
    build.run(&volumes, 1, Arc::new(Guard(Arc::clone(&attacher))));
    build.run(&queue, settings.workers, attacher);
    Ok(())
}

/// Whether a change is more than what is written here of what went wrong, which would be tried again at once.
fn is_news(change: &Change<VolumeAttachment>) -> bool {
    let now = change.object();
    change.is_resync()
        || change.old().is_none_or(|old| {
            old.status.attached != now.status.attached
                || old.metadata.deletion_timestamp != now.metadata.deletion_timestamp
        })
}

struct Attacher {
    driver: Driver,
    place: Place,
    finalizer: String,
    attachments: Informer<VolumeAttachment>,
    volumes: Informer<PersistentVolume>,
    csi_nodes: Informer<CSINode>,
}

/// What is to be done about an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Nothing,
    /// The driver has nothing to do.
    Mark,
    Attach,
    Detach,
}

fn plan(attachment: &VolumeAttachment, can_attach: bool, finalizer: &str) -> Plan {
    let goes = attachment.metadata.deletion_timestamp.is_some();
    match (goes, can_attach) {
        (true, _) if finalizers::has(attachment, finalizer) => Plan::Detach,
        (true, _) => Plan::Nothing,
        (false, _) if attachment.status.attached => Plan::Nothing,
        (false, true) => Plan::Attach,
        (false, false) => Plan::Mark,
    }
}

#[async_trait::async_trait]
impl Controller for Attacher {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(attachment) = self.attachments.get(key) else { return Ok(Next::Done) };
        let is_elsewhere = self.place.node().is_some_and(|node| node != attachment.spec.node_name);
        if attachment.spec.attacher != self.driver.name || is_elsewhere {
            return Ok(Next::Done);
        }
        match plan(&attachment, self.driver.can(Can::PublishUnpublishVolume), &self.finalizer) {
            Plan::Nothing => {}
            Plan::Mark => write_status(cx, &attachment, json!({"attached": true})).await?,
            Plan::Attach => self.attach(cx, &attachment).await?,
            Plan::Detach => self.detach(cx, &attachment).await?,
        }
        Ok(Next::Done)
    }
}

impl Attacher {
    /// What an attachment is of, by the driver, and how it may be used.
    fn source(
        &self,
        attachment: &VolumeAttachment,
    ) -> Result<(Option<Arc<PersistentVolume>>, CSIPersistentVolumeSource, VolumeCapability), String> {
        let source = &attachment.spec.source;
        let volume = match (&source.persistent_volume_name, &source.inline_volume_spec) {
            (Some(name), None) => {
                Some(self.volumes.find("", name).ok_or_else(|| format!("persistentvolume \"{name}\" not found"))?)
            }
            (None, Some(_)) => None,
            _ => return Err("both InlineCSIVolumeSource and PersistentVolumeName specified in VA source".into()),
        };
        let spec = match (&volume, &source.inline_volume_spec) {
            (Some(volume), _) => &volume.spec,
            (None, Some(inline)) => inline,
            (None, None) => {
                return Err("neither InlineCSIVolumeSource nor PersistentVolumeName specified in VA source".into());
            }
        };
        let csi = spec.persistent_volume_source.csi.as_ref().filter(|csi| csi.driver == self.driver.name);
        let csi = csi.ok_or_else(|| format!("the volume is none of driver {}", self.driver.name))?;
        let access_type = if spec.volume_mode.as_deref() == Some("Block") {
            AccessType::Block(BlockVolume {})
        } else {
            let (fs_type, mount_flags) = (csi.fs_type.clone(), spec.mount_options.clone());
            AccessType::Mount(MountVolume { fs_type, mount_flags, volume_mount_group: String::new() })
        };
        let mode = spec.access_modes.first().map_or("ReadWriteOnce", String::as_str);
        let mode = access_mode(mode, self.driver.can(Can::SingleNodeMultiWriter)).into();
        let capability = VolumeCapability { access_mode: Some(AccessMode { mode }), access_type: Some(access_type) };
        Ok((volume.clone(), csi.clone(), capability))
    }

    /// What the driver calls a node.
    fn node_id(&self, node: &str) -> Result<String, String> {
        let csi = self.csi_nodes.find("", node).ok_or_else(|| format!("CSINode {node} not found"))?;
        let own = csi.spec.drivers.iter().find(|own| own.name == self.driver.name);
        own.map(|own| own.node_id.clone())
            .ok_or_else(|| format!("CSINode {node} does not contain driver {}", self.driver.name))
    }

    async fn attach(&self, cx: &Cx, attachment: &VolumeAttachment) -> Result<(), ReconcileError> {
        let (volume, csi, capability) = match self.source(attachment) {
            Ok(found) => found,
            Err(reason) => return tell(cx, attachment, "attachError", &reason, None).await,
        };
        // The node's name for the driver may come a little later than the pod.
        let node_id = match self.node_id(&attachment.spec.node_name) {
            Ok(node_id) => node_id,
            Err(reason) => return tell(cx, attachment, "attachError", &reason, None).await,
        };
        // Neither goes before the volume is detached again.
        finalizers::set(cx, attachment, &[&self.finalizer], true).await?;
        if let Some(volume) = &volume {
            if volume.metadata.deletion_timestamp.is_some() {
                let name = &volume.metadata.name;
                let reason = format!("PersistentVolume \"{name}\" is marked for deletion");
                return tell(cx, attachment, "attachError", &reason, None).await;
            }
            finalizers::set(cx, &**volume, &[&self.finalizer], true).await?;
        }
        let secrets = secrets::read(cx, csi.controller_publish_secret_ref.as_ref()).await?;
        let request = ControllerPublishVolumeRequest {
            volume_id: csi.volume_handle,
            node_id,
            volume_capability: Some(capability),
            readonly: csi.read_only && self.driver.can(Can::PublishReadonly),
            secrets,
            volume_context: csi.volume_attributes.into_iter().collect(),
        };
        match self.driver.calls.publish_volume(request).await {
            Ok(answer) => {
                let told: std::collections::BTreeMap<_, _> = answer.publish_context.into_iter().collect();
                let status =
                    json!({"attached": true, "attachmentMetadata": told, "attachError": null, "detachError": null});
                write_status(cx, attachment, status).await
            }
            Err(error) => tell_rpc(cx, attachment, "attachError", &error).await,
        }
    }

    async fn detach(&self, cx: &Cx, attachment: &VolumeAttachment) -> Result<(), ReconcileError> {
        let (_, csi, _) = match self.source(attachment) {
            Ok(found) => found,
            Err(reason) => return tell(cx, attachment, "detachError", &reason, None).await,
        };
        // Where the node is gone, its name may be what the driver calls it, too.
        let node_id = self.node_id(&attachment.spec.node_name).unwrap_or_else(|_| attachment.spec.node_name.clone());
        let secrets = secrets::read(cx, csi.controller_publish_secret_ref.as_ref()).await?;
        let request = ControllerUnpublishVolumeRequest { volume_id: csi.volume_handle, node_id, secrets };
        match self.driver.calls.unpublish_volume(request).await {
            Ok(_) => {}
            Err(error) if error.code == Code::NotFound => {}
            Err(error) => return tell_rpc(cx, attachment, "detachError", &error).await,
        }
        if attachment.status.attached {
            write_status(cx, attachment, json!({"attached": false, "attachmentMetadata": null})).await?;
        }
        let now = cx.client.all::<VolumeAttachment>().get_opt(&attachment.metadata.name).await?;
        match now.filter(|now| now.meta().uid == attachment.metadata.uid) {
            Some(now) => finalizers::set(cx, &now, &[&self.finalizer], false).await,
            None => Ok(()),
        }
    }
}

async fn write_status(cx: &Cx, attachment: &VolumeAttachment, status: Value) -> Result<(), ReconcileError> {
    let patch = Patch::Merge(json!({"status": status}));
    match cx.client.all::<VolumeAttachment>().patch_status(&attachment.metadata.name, &patch).await {
        Err(error) if error.is_not_found() => Ok(()),
        done => Ok(done.map(drop)?),
    }
}

async fn tell_rpc(cx: &Cx, attachment: &VolumeAttachment, field: &str, error: &RpcError) -> Result<(), ReconcileError> {
    tell(cx, attachment, field, &error.to_string(), Some(i32::from(error.code))).await
}

/// Writes down what went wrong, for whoever waits; it is tried again.
async fn tell(
    cx: &Cx,
    attachment: &VolumeAttachment,
    field: &str,
    reason: &str,
    code: Option<i32>,
) -> Result<(), ReconcileError> {
    let time = Time::from(cx.clock.wall());
    let mut error = json!({"message": reason, "time": time.to_string()});
    if let Some(code) = code {
        error["errorCode"] = code.into();
    }
    write_status(cx, attachment, json!({field: error})).await?;
    Err(ReconcileError::failed(reason))
}

/// Lets volumes go that nobody has attached any more.
struct Guard(Arc<Attacher>);

#[async_trait::async_trait]
impl Controller for Guard {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(volume) = self.0.volumes.get(key) else { return Ok(Next::Done) };
        let goes = volume.metadata.deletion_timestamp.is_some();
        if goes && self.0.attachments.by_index(BY_VOLUME, &key.name).is_empty() {
            finalizers::set(cx, &*volume, &[&self.0.finalizer], false).await?;
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_come_and_go() {
        let finalizer = names::attacher("a/b");
        assert_eq!(finalizer, "external-attacher/a-b");
        let attachment = |attached: bool, goes: bool, is_held: bool| {
            let mut attachment = VolumeAttachment::default();
            attachment.status.attached = attached;
            attachment.metadata.deletion_timestamp = goes.then(Time::default);
            attachment.metadata.finalizers.extend(is_held.then(|| finalizer.clone()));
            attachment
        };
        for (attached, goes, is_held, can_attach, expected) in [
            (false, false, false, true, Plan::Attach),
            (false, false, true, true, Plan::Attach),
            (true, false, true, true, Plan::Nothing),
            (false, false, false, false, Plan::Mark),
            (true, false, false, false, Plan::Nothing),
            (true, true, true, true, Plan::Detach),
            (false, true, true, true, Plan::Detach),
            (false, true, false, true, Plan::Nothing),
            (true, true, false, false, Plan::Nothing),
        ] {
            let attachment = attachment(attached, goes, is_held);
            assert_eq!(plan(&attachment, can_attach, &finalizer), expected, "{attached} {goes} {is_held} {can_attach}");
        }
    }
}
