//! Brings claims and volumes together: finds the volume of each claim, has one made where the claim's class says by whom,
//! and lets go of a volume whose claim is gone.
//!
//! Binding is four writes, each left out where it is not needed (`write`), so that a look after a crash goes on where the
//! last one stopped. Deliberately not here: making, recycling and deleting volumes by this process itself. Drivers do
//! that; a volume that asks for recycling fails, as upstream's fail that no plugin can recycle.

mod claims;
mod giving;
mod metrics;
mod migration;
mod provision;
mod reclaim;
#[cfg(test)]
mod tests;
mod volumes;
mod write;

use std::sync::Arc;

use api_types::core_v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod};
use api_types::storage_v1::StorageClass;
use client::{Change, Informer, ObjectKey};
use component_helpers::volumes::classes;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, Queue, ReconcileError};

use super::newest::Newest;
use super::{PODS_BY_CLAIM, keys_of_claims};
use crate::Settings;
use giving::Giving;
use metrics::BinderMetrics;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "persistentvolume-binder-controller",
    aliases: &["persistentvolume-binder"],
    gates: &[],
    identity: "persistent-volume-binder",
    event_component: "persistentvolume-controller",
    disabled_by_default: false,
    build,
};

/// How many claims, and how many volumes, are looked after at once: what takes time is the four writes of a binding, one
/// after the other. Upstream has one worker for each of the two.
const WORKERS: usize = 10;
/// Index of volumes that nobody has a claim to, by class.
const FREE_BY_CLASS: &str = "free-volumes-by-class";
/// Index of volumes by the claim that they name.
const BY_CLAIM: &str = "volumes-by-claim";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.binder.clone();
    let (claim_queue, volume_queue) = (build.queue("claims"), build.queue("volumes"));
    let metrics = Arc::new(BinderMetrics::new(build.metrics(), build.clock()));
    let (queue, told) = (volume_queue.clone(), Arc::clone(&metrics));
    let claims = build.watch::<PersistentVolumeClaim>().observe(move |change| claim_changed(change, &queue, &told));
    let claims = claims.resync(settings.sync_period).enqueue_self(&claim_queue).informer();
    let (queue, told) = (claim_queue.clone(), Arc::clone(&metrics));
    let volumes = build.watch::<PersistentVolume>().index(FREE_BY_CLASS, free_in_class).index(BY_CLAIM, claim_of);
    let volumes = volumes.observe(move |change| volume_changed(change, &queue, &told));
    let volumes = volumes.resync(settings.sync_period).enqueue_self(&volume_queue).informer();
    let storage_classes = build.watch::<StorageClass>().informer();
    let pods = build.watch::<Pod>().index(PODS_BY_CLAIM, keys_of_claims).informer();
    metrics::collect(build.metrics(), &volumes, &claims);
    let binder = Arc::new(Binder {
        claims: Newest::new(claims),
        volumes: Newest::new(volumes),
        classes: storage_classes,
        pods,
        claim_queue: claim_queue.clone(),
        giving: Giving::default(),
        provisions: settings.dynamic_provisioning,
        metrics,
    });
    build.run(&claim_queue, WORKERS, Arc::new(Claims(Arc::clone(&binder))));
    build.run(&volume_queue, WORKERS, Arc::new(Volumes(binder)));
    Ok(())
}

/// The volume of a claim that is gone is looked at at once, not with the next round.
fn claim_changed(change: &Change<PersistentVolumeClaim>, volumes: &Queue, metrics: &BinderMetrics) {
    if !change.is_deleted() {
        return;
    }
    metrics.forget(&change.key());
    let volume = &change.object().spec.volume_name;
    if !volume.is_empty() {
        volumes.add(ObjectKey::cluster(volume));
    }
}

/// The same for the claim of a volume that is gone.
fn volume_changed(change: &Change<PersistentVolume>, claims: &Queue, metrics: &BinderMetrics) {
    if !change.is_deleted() {
        return;
    }
    metrics.succeeded(&change.key());
    if let Some(claim) = &change.object().spec.claim_ref {
        claims.add(key_of(claim));
    }
}

fn free_in_class(volume: &PersistentVolume) -> Vec<String> {
    let is_free = volume.spec.claim_ref.is_none();
    is_free.then(|| classes::class_of_volume(volume).to_owned()).into_iter().collect()
}

fn claim_of(volume: &PersistentVolume) -> Vec<String> {
    volume.spec.claim_ref.iter().map(|claim| key_of(claim).to_string()).collect()
}

fn key_of(reference: &ObjectReference) -> ObjectKey {
    ObjectKey::new(reference.namespace.clone(), reference.name.clone())
}

/// What looks at claims and at volumes have in common.
struct Binder {
    claims: Newest<PersistentVolumeClaim>,
    volumes: Newest<PersistentVolume>,
    classes: Informer<StorageClass>,
    pods: Informer<Pod>,
    claim_queue: Queue,
    giving: Giving,
    /// Whether volumes are made on demand at all.
    provisions: bool,
    metrics: Arc<BinderMetrics>,
}

struct Claims(Arc<Binder>);
struct Volumes(Arc<Binder>);

#[async_trait::async_trait]
impl Controller for Claims {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        if let Some(claim) = self.0.claims.get(key) {
            self.0.sync_claim(cx, claim).await?;
        }
        Ok(Next::Done)
    }
}

#[async_trait::async_trait]
impl Controller for Volumes {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        if let Some(volume) = self.0.volumes.get(key) {
            self.0.sync_volume(cx, volume).await?;
        }
        Ok(Next::Done)
    }
}
