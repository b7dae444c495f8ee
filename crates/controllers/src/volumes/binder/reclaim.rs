//! What becomes of a volume whose claim is gone.

use std::sync::Arc;

use api_types::core_v1::PersistentVolume;
use api_types::core_v1::constants::{persistent_volume_phase as phase, persistent_volume_reclaim_policy as policy};
use client::ObjectKey;
use component_helpers::volumes::names::{IN_TREE_PREFIX, MIGRATED_TO, PROVISIONED_BY};
use controller::{Cx, ReconcileError};

use super::Binder;
use crate::volumes::notice::Notice;
use crate::volumes::plugins;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reclaim {
    /// Nothing: it is kept for whoever looks after it.
    Keep,
    /// Nothing: its driver deletes it, which is timed.
    External(String),
    /// To be said failed, as nobody here can do what it asks for.
    Fail(Notice),
}

pub(super) fn plan(volume: &PersistentVolume) -> Reclaim {
    let annotation =
        |key: &str| volume.metadata.annotations.get(key).map(String::as_str).filter(|value| !value.is_empty());
    if annotation(MIGRATED_TO).is_some() {
        return Reclaim::Keep;
    }
    match volume.spec.persistent_volume_reclaim_policy.as_str() {
        policy::RETAIN => Reclaim::Keep,
        policy::DELETE => plan_deletion(volume, annotation(PROVISIONED_BY)),
        policy::RECYCLE => {
            Reclaim::Fail(Notice::warning("VolumeFailedRecycle", "No recycler plugin found for the volume!"))
        }
        _ => {
            let message = "Volume has unrecognized PersistentVolumeReclaimPolicy";
            Reclaim::Fail(Notice::warning("VolumeUnknownReclaimPolicy", message))
        }
    }
}

fn plan_deletion(volume: &PersistentVolume, provisioner: Option<&str>) -> Reclaim {
    let source = &volume.spec.persistent_volume_source;
    let fail = |message: String| Reclaim::Fail(Notice::warning("VolumeFailedDelete", message));
    match provisioner {
        Some(plugin) if plugin.starts_with(IN_TREE_PREFIX) => fail(no_plugin(plugin, "deletable")),
        Some(driver) => Reclaim::External(driver.to_owned()),
        None => match &source.csi {
            Some(csi) => Reclaim::External(csi.driver.clone()),
            None => {
                let error = match plugins::plugin_of(source) {
                    Some(_) => "no deletable volume plugin matched",
                    None => "no volume plugin matched",
                };
                let name = &volume.metadata.name;
                fail(format!("error getting deleter volume plugin for volume \"{name}\": {error}"))
            }
        },
    }
}

/// A plugin of this name cannot do this; most of those that could have left the tree.
pub(super) fn no_plugin(name: &str, ability: &str) -> String {
    if plugins::is_plugin(name) {
        format!("no {ability} volume plugin matched")
    } else {
        format!("no volume plugin matched name: {name}")
    }
}

impl Binder {
    pub(super) async fn reclaim(&self, cx: &Cx, volume: Arc<PersistentVolume>) -> Result<(), ReconcileError> {
        match plan(&volume) {
            Reclaim::Keep => Ok(()),
            Reclaim::External(driver) => {
                self.metrics.began(&ObjectKey::of(&volume.metadata), &driver, "delete");
                Ok(())
            }
            Reclaim::Fail(_) if volume.status.phase == phase::FAILED => Ok(()),
            Reclaim::Fail(notice) => {
                let volume = self.set_volume_phase(cx, volume, phase::FAILED, notice.message()).await?;
                notice.tell(cx, &*volume);
                Ok(())
            }
        }
    }
}
