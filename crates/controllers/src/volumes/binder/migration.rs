//! Annotations and finalizers of claims and volumes of plugins that were in the tree: CSI drivers do their work, and are to
//! know which objects are theirs.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::constants::persistent_volume_reclaim_policy as policy;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use component_helpers::volumes::names::{
    BETA_STORAGE_PROVISIONER, IN_TREE_PREFIX, MIGRATED_TO, PROVISIONED_BY, STORAGE_PROVISIONER, migrated_driver,
};
use controller::{Cx, ReconcileError};

use super::Binder;

/// Holds a volume until its plugin in the tree has deleted it.
const IN_TREE_FINALIZER: &str = "kubernetes.io/pv-controller";
/// Holds a volume until its driver has deleted it.
const EXTERNAL_FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";

/// Sets or takes away the name of the driver that took over. Says whether anything changed.
fn mark(annotations: &mut BTreeMap<String, String>, provisioner: Option<String>) -> bool {
    let Some(provisioner) = provisioner else { return false };
    match migrated_driver(&provisioner) {
        Some(driver) => annotations.insert(MIGRATED_TO.to_owned(), driver.to_owned()).as_deref() != Some(driver),
        None => annotations.remove(MIGRATED_TO).is_some_and(|former| !former.is_empty()),
    }
}

/// Marks a claim. Says whether anything changed.
pub(super) fn mark_claim(claim: &mut PersistentVolumeClaim) -> bool {
    let annotations = &mut claim.metadata.annotations;
    let provisioner = [STORAGE_PROVISIONER, BETA_STORAGE_PROVISIONER].iter().find_map(|key| annotations.get(*key));
    let provisioner = provisioner.cloned();
    mark(annotations, provisioner)
}

/// Marks a volume and gives it the finalizers of who is to delete it. Says whether anything changed.
pub(super) fn mark_volume(volume: &mut PersistentVolume) -> bool {
    let Some(provisioner) = volume.metadata.annotations.get(PROVISIONED_BY).cloned() else { return false };
    let former = volume.metadata.finalizers.clone();
    let finalizers = &mut volume.metadata.finalizers;
    let mut drop_one = |name: &str| finalizers.retain(|own| own != name);
    if migrated_driver(&provisioner).is_some() {
        drop_one(IN_TREE_FINALIZER);
    } else if provisioner.starts_with(IN_TREE_PREFIX) {
        drop_one(EXTERNAL_FINALIZER);
        let is_kept = volume.spec.persistent_volume_reclaim_policy != policy::DELETE;
        if is_kept {
            drop_one(IN_TREE_FINALIZER);
        } else if !finalizers.iter().any(|own| own == IN_TREE_FINALIZER) {
            finalizers.push(IN_TREE_FINALIZER.to_owned());
        }
    }
    let is_held_anew = *finalizers != former;
    mark(&mut volume.metadata.annotations, Some(provisioner)) | is_held_anew
}

impl Binder {
    pub(super) async fn mark_migrated_claim(
        &self,
        cx: &Cx,
        claim: Arc<PersistentVolumeClaim>,
    ) -> Result<Arc<PersistentVolumeClaim>, ReconcileError> {
        // A look at what is most often right needs no copy of it.
        if !has_any(&claim.metadata.annotations, &[STORAGE_PROVISIONER, BETA_STORAGE_PROVISIONER]) {
            return Ok(claim);
        }
        let mut next = PersistentVolumeClaim::clone(&claim);
        if mark_claim(&mut next) { self.write_claim(cx, &next).await } else { Ok(claim) }
    }

    pub(super) async fn mark_migrated_volume(
        &self,
        cx: &Cx,
        volume: Arc<PersistentVolume>,
    ) -> Result<Arc<PersistentVolume>, ReconcileError> {
        if !has_any(&volume.metadata.annotations, &[PROVISIONED_BY]) {
            return Ok(volume);
        }
        let mut next = PersistentVolume::clone(&volume);
        if mark_volume(&mut next) { self.write_volume(cx, &next).await } else { Ok(volume) }
    }
}

fn has_any(annotations: &BTreeMap<String, String>, keys: &[&str]) -> bool {
    keys.iter().any(|key| annotations.contains_key(*key))
}
