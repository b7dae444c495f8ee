//! Volumes made on demand: the claim is told who is to make its volume, and a driver's provisioner does.

use std::sync::Arc;

use api_types::core_v1::PersistentVolumeClaim;
use client::ObjectKey;
use component_helpers::volumes::classes;
use component_helpers::volumes::names::{
    BETA_STORAGE_PROVISIONER, IN_TREE_PREFIX, STORAGE_PROVISIONER, migrated_driver,
};
use controller::{Cx, ReconcileError};

use super::reclaim::no_plugin;
use super::{Binder, migration};
use crate::volumes::notice::Notice;

const HOST_PATH: &str = "kubernetes.io/host-path";

/// Who makes the volumes of a class with this provisioner: the name that a driver's provisioner looks for.
///
/// # Errors
/// Why nobody does, in upstream's words.
pub(super) fn driver_of(provisioner: &str) -> Result<&str, String> {
    match migrated_driver(provisioner) {
        Some(driver) => Ok(driver),
        None if !provisioner.starts_with(IN_TREE_PREFIX) => Ok(provisioner),
        // Upstream can make such volumes for tests on one machine, where a flag allows that.
        None if provisioner == HOST_PATH => {
            Err(format!("Failed to create provisioner: Provisioning in volume plugin \"{provisioner}\" is disabled"))
        }
        None => Err(no_plugin(provisioner, "provisionable")),
    }
}

/// The claim with the name of who makes its volume, or nothing where it has that.
pub(super) fn assigned(claim: &PersistentVolumeClaim, driver: &str) -> Option<PersistentVolumeClaim> {
    if claim.metadata.annotations.get(STORAGE_PROVISIONER).is_some_and(|own| own == driver) {
        return None;
    }
    let mut next = claim.clone();
    for key in [STORAGE_PROVISIONER, BETA_STORAGE_PROVISIONER] {
        next.metadata.annotations.insert(key.to_owned(), driver.to_owned());
    }
    migration::mark_claim(&mut next);
    Some(next)
}

fn wait_for(driver: &str) -> Notice {
    let message = format!(
        "Waiting for a volume to be created either by the external provisioner '{driver}' or manually by the system \
         administrator. If volume creation is delayed, please verify that the provisioner is running and correctly \
         registered."
    );
    Notice::normal("ExternalProvisioning", message)
}

impl Binder {
    /// Has a volume made for a claim. What is wrong with the class is told, and looked at again with the next round.
    pub(super) async fn provision(&self, cx: &Cx, claim: Arc<PersistentVolumeClaim>) -> Result<(), ReconcileError> {
        if !self.provisions {
            return Ok(());
        }
        let failed = |message: String| Notice::warning("ProvisioningFailed", message).tell(cx, &*claim);
        let name = classes::class_of_claim(&claim);
        let Some(class) = self.classes.find("", name) else {
            failed(format!("storageclass.storage.k8s.io \"{name}\" not found"));
            return Ok(());
        };
        let driver = match driver_of(&class.provisioner) {
            Ok(driver) => driver,
            Err(error) => {
                failed(error);
                return Ok(());
            }
        };
        let key = ObjectKey::of(&claim.metadata);
        self.metrics.began(&key, driver, "provision");
        let assigned = match assigned(&claim, driver) {
            None => Arc::clone(&claim),
            Some(next) => match self.write_claim(cx, &next).await {
                Ok(written) => written,
                Err(error) => {
                    failed(format!("Error saving claim: {error}"));
                    self.metrics.ended(&key, false);
                    return Err(error);
                }
            },
        };
        wait_for(driver).tell(cx, &*assigned);
        Ok(())
    }
}
