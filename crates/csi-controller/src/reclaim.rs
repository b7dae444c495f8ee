//! Removes volumes whose claims are gone: the other half of upstream's external-provisioner.

use std::sync::Arc;

use api_machinery::meta::DeleteOptions;
use api_types::core_v1::constants::{persistent_volume_phase as phase, persistent_volume_reclaim_policy as policy};
use api_types::core_v1::{Node, PersistentVolume, SecretReference};
use api_types::storage_v1::VolumeAttachment;
use client::{Informer, ObjectKey};
use component_helpers::volumes::names::PROVISIONED_BY;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use node_api::csi::v1::DeleteVolumeRequest;
use node_api::csi::v1::controller_service_capability::rpc::Type as Can;

use crate::driver::Driver;
use crate::finalizers;
use crate::names::{DELETION_SECRET_NAME, DELETION_SECRET_NAMESPACE, PROVISIONER};
use crate::notice;
use crate::place::Duty;
use crate::secrets;
use crate::settings::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "csi-reclaimer",
    aliases: &[],
    gates: &[],
    identity: "csi-provisioner",
    event_component: "external-provisioner",
    disabled_by_default: false,
    build,
};

/// Attachments by the volume that they are of.
const BY_VOLUME: &str = "volume";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.clone();
    let driver = settings.driver.clone().ok_or_else(|| BuildError::Skipped("there is no driver".into()))?;
    if !driver.can(Can::CreateDeleteVolume) {
        return Err(BuildError::Skipped("the driver removes no volumes".into()));
    }
    let queue = build.queue_with("volumes", settings.retry.clone());
    let volumes = build.watch::<PersistentVolume>().enqueue_self(&queue).informer();
    let attachments = build
        .watch::<VolumeAttachment>()
        .index(BY_VOLUME, |attachment| attachment.spec.source.persistent_volume_name.clone().into_iter().collect())
        .enqueue_keys(&queue, |change| {
            change.object().spec.source.persistent_volume_name.clone().map(ObjectKey::cluster)
        })
        .informer();
    let nodes = build.watch::<Node>().informer();
    let duty = Duty::new(&driver.name, settings.place.clone(), nodes);
    build.run(&queue, settings.workers, Arc::new(Reclaimer { driver, duty, volumes, attachments }));
    Ok(())
}

struct Reclaimer {
    driver: Driver,
    duty: Duty,
    volumes: Informer<PersistentVolume>,
    attachments: Informer<VolumeAttachment>,
}

/// What is to be done about a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plan {
    Nothing,
    /// It must not go before the driver has removed it.
    Protect,
    /// It may go, and the driver keeps it.
    Release,
    /// The driver removes it.
    Remove,
}

fn plan(volume: &PersistentVolume, driver: &str) -> Plan {
    if volume.metadata.annotations.get(PROVISIONED_BY).map(String::as_str) != Some(driver) {
        return Plan::Nothing;
    }
    let is_protected = finalizers::has(volume, PROVISIONER);
    let (goes, deletes) =
        (volume.metadata.deletion_timestamp.is_some(), volume.spec.persistent_volume_reclaim_policy == policy::DELETE);
    match (deletes, is_protected) {
        (false, true) => Plan::Release,
        (false, false) => Plan::Nothing,
        (true, _) if volume.status.phase == phase::RELEASED && (is_protected || !goes) => Plan::Remove,
        (true, false) if !goes => Plan::Protect,
        (true, _) => Plan::Nothing,
    }
}

#[async_trait::async_trait]
impl Controller for Reclaimer {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(volume) = self.volumes.get(key) else { return Ok(Next::Done) };
        let Some(handle) = self.duty.handle(&volume) else { return Ok(Next::Done) };
        match plan(&volume, &self.driver.name) {
            Plan::Nothing => {}
            Plan::Protect => finalizers::set(cx, &*volume, &[PROVISIONER], true).await?,
            Plan::Release => finalizers::set(cx, &*volume, &[PROVISIONER], false).await?,
            Plan::Remove => match self.remove(cx, &volume, handle).await {
                Ok(()) => {}
                Err(error) => {
                    notice::warning(cx, &*volume, "VolumeFailedDelete", error.to_string());
                    return Err(error);
                }
            },
        }
        Ok(Next::Done)
    }
}

impl Reclaimer {
    async fn remove(&self, cx: &Cx, volume: &PersistentVolume, handle: &str) -> Result<(), ReconcileError> {
        let name = &volume.metadata.name;
        if let Some(attachment) = self.attachments.by_index(BY_VOLUME, name).first() {
            let node = &attachment.spec.node_name;
            return Err(ReconcileError::failed(format!("persistentvolume {name} is still attached to node {node}")));
        }
        let secrets = secrets::read(cx, deletion_secret(volume).as_ref()).await?;
        let request = DeleteVolumeRequest { volume_id: handle.to_owned(), secrets };
        let removed = self.driver.calls.delete_volume(request).await;
        removed.map_err(|error| ReconcileError::failed(error.to_string()))?;
        if volume.metadata.deletion_timestamp.is_none() {
            cx.client.all::<PersistentVolume>().delete_this(&volume.metadata, DeleteOptions::default()).await?;
        }
        // Only now may it be forgotten: who is killed before asks the driver once more.
        match cx.client.all::<PersistentVolume>().get_opt(name).await? {
            Some(now) if now.metadata.uid == volume.metadata.uid => {
                finalizers::set(cx, &now, &[PROVISIONER], false).await
            }
            _ => Ok(()),
        }
    }
}

fn deletion_secret(volume: &PersistentVolume) -> Option<SecretReference> {
    let text = |key| volume.metadata.annotations.get(key).filter(|text| !text.is_empty()).cloned();
    Some(SecretReference { name: text(DELETION_SECRET_NAME)?, namespace: text(DELETION_SECRET_NAMESPACE)? })
}

#[cfg(test)]
mod tests {
    use api_machinery::time::Time;

    use super::*;

    #[test]
    fn volumes_go_when_they_are_to() {
        let volume = |policy: &str, phase: &str, is_protected: bool, goes: bool| {
            let mut volume = PersistentVolume::default();
            volume.metadata.annotations.insert(PROVISIONED_BY.into(), "d".into());
            volume.metadata.finalizers.extend(is_protected.then(|| PROVISIONER.into()));
            volume.metadata.deletion_timestamp = goes.then(Time::default);
            volume.spec.persistent_volume_reclaim_policy = policy.into();
            volume.status.phase = phase.into();
            volume
        };
        for (policy, phase, is_protected, goes, expected) in [
            ("Delete", "Bound", true, false, Plan::Nothing),
            ("Delete", "Bound", false, false, Plan::Protect),
            ("Delete", "Released", true, false, Plan::Remove),
            ("Delete", "Released", false, false, Plan::Remove),
            ("Delete", "Released", true, true, Plan::Remove),
            ("Delete", "Released", false, true, Plan::Nothing),
            ("Delete", "Bound", true, true, Plan::Nothing),
            ("Delete", "Available", true, false, Plan::Nothing),
            ("Retain", "Released", true, false, Plan::Release),
            ("Retain", "Released", false, false, Plan::Nothing),
        ] {
            let volume = volume(policy, phase, is_protected, goes);
            assert_eq!(plan(&volume, "d"), expected, "{policy} {phase} {is_protected} {goes}");
            assert_eq!(plan(&volume, "other"), Plan::Nothing, "another driver's");
        }
    }
}
