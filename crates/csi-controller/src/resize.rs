//! Grows volumes, and changes their attributes: what upstream's external-resizer does. How far it is stands in the claim's
//! status, so that whoever comes next goes on from there.

mod grow;
mod modify;
mod plan;

use std::sync::Arc;

use api_types::core_v1::constants::persistent_volume_claim_phase as phase;
use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim};
use api_types::storage_v1::VolumeAttributesClass;
use client::{Change, Informer, ObjectKey};
use component_helpers::volumes::matching::{names_claim, storage};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use node_api::csi::v1::controller_service_capability::rpc::Type as Can;

use crate::driver::Driver;
use crate::place::Duty;
use crate::settings::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "csi-resizer",
    aliases: &[],
    gates: &[],
    identity: "csi-resizer",
    event_component: "external-resizer",
    disabled_by_default: false,
    build,
};

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.clone();
    let driver = settings.driver.clone().ok_or_else(|| BuildError::Skipped("there is no driver".into()))?;
    if !driver.can(Can::ExpandVolume) && !driver.can(Can::ModifyVolume) {
        return Err(BuildError::Skipped("the driver neither grows volumes nor changes them".into()));
    }
    let queue = build.queue_with("resize", settings.retry.clone());
    let claims = build.watch::<PersistentVolumeClaim>();
    let claims = claims.enqueue_keys(&queue, |change| is_news(change).then(|| change.key())).informer();
    let volumes = build.watch::<PersistentVolume>().enqueue_keys(&queue, claim_of_new).informer();
    let classes = build.watch::<VolumeAttributesClass>().informer();
    let nodes = build.watch::<Node>().informer();
    let duty = Duty::new(&driver.name, settings.place, nodes);
    build.run(&queue, settings.workers, Arc::new(Resizer { driver, duty, claims, volumes, classes }));
    Ok(())
}

/// Whether a change is more than how far growing is, which is written here: it would be tried again at once.
fn is_news(change: &Change<PersistentVolumeClaim>) -> bool {
    let now = change.object();
    let asks = |claim: &PersistentVolumeClaim| {
        let (spec, status) = (&claim.spec, &claim.status);
        (
            storage(&spec.resources.requests).clone(),
            spec.volume_attributes_class_name.clone(),
            spec.volume_name.clone(),
            status.phase.clone(),
            storage(&status.capacity).clone(),
        )
    };
    change.is_resync() || change.old().is_none_or(|old| asks(old) != asks(now))
}

/// The claim of a volume that was not known before.
fn claim_of_new(change: &Change<PersistentVolume>) -> Option<ObjectKey> {
    let named = change.object().spec.claim_ref.as_ref().filter(|_| change.old().is_none())?;
    Some(ObjectKey::new(named.namespace.clone(), named.name.clone()))
}

struct Resizer {
    driver: Driver,
    duty: Duty,
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    classes: Informer<VolumeAttributesClass>,
}

#[async_trait::async_trait]
impl Controller for Resizer {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(claim) = self.claims.get(key) else { return Ok(Next::Done) };
        let is_ready = claim.status.phase == phase::BOUND && claim.metadata.deletion_timestamp.is_none();
        let Some(volume) = self.volumes.find("", &claim.spec.volume_name).filter(|_| is_ready) else {
            return Ok(Next::Done);
        };
        let Some(handle) = self.duty.handle(&volume).filter(|_| names_claim(&volume, &claim)) else {
            return Ok(Next::Done);
        };
        if self.driver.can(Can::ExpandVolume) {
            self.grow(cx, &claim, &volume, handle).await?;
        }
        if self.driver.can(Can::ModifyVolume) {
            self.modify(cx, &claim, &volume, handle).await?;
        }
        Ok(Next::Done)
    }
}
