//! Volumes that cannot be brought into place, and what the pod's events say of them.

use std::collections::{BTreeMap, BTreeSet};

use api_types::core_v1::{Pod, Volume};

use super::claims::ClaimError;
use super::spec::{Refused, device_names, mounted_names};
use crate::interfaces::{SideError, VolumeProblem};

/// The step at which a volume failed, and why.
#[derive(Clone)]
pub(super) struct Failure {
    /// The volume as events name it: a claim's by its persistent volume.
    pub(super) volume: String,
    pub(super) block: bool,
    /// The step as events name it.
    pub(super) step: &'static str,
    pub(super) error: SideError,
}

/// Why a volume cannot be brought into place.
pub(super) enum Unusable {
    /// Its claim is not ready: it is not known what it is made from.
    Unprocessed(ClaimError),
    /// A step would fail, and is not even begun.
    Failed(Failure),
}

impl Unusable {
    /// No plugin here has it; the volume is named as events name it.
    pub(super) fn refused(volume: String, block: bool, why: Refused) -> Self {
        Self::Failed(Failure { volume, block, step: why.step(block), error: SideError::new(why.to_string()) })
    }
}

impl From<ClaimError> for Unusable {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::Refused { volume, block, why } => Self::refused(volume, block, why),
            ClaimError::OtherNode { ref volume, block } => {
                let step = if block { "MapVolume.NodeAffinity check" } else { "MountVolume.NodeAffinity check" };
                Self::Failed(Failure { volume: volume.clone(), block, step, error: SideError::of(&error) })
            }
            ClaimError::NoOptions { ref volume } => {
                let step = "MountVolume.MountOptionSupport check";
                Self::Failed(Failure { volume: volume.clone(), block: false, step, error: SideError::of(&error) })
            }
            error => Self::Unprocessed(error),
        }
    }
}

/// A claim's volume is used as what it is.
pub(super) fn check_mode(pod: &Pod, volume: &Volume, block: bool) -> Result<(), ClaimError> {
    let used = if block { mounted_names(pod) } else { device_names(pod) };
    if !used.contains(volume.name.as_str()) {
        return Ok(());
    }
    let (mode, used) = if block { ("Block", "volumeMounts") } else { ("Filesystem", "volumeDevices") };
    Err(ClaimError::Mode { volume: volume.name.clone(), mode, used })
}

/// What the pod's events say about volumes that are not in place.
pub(super) fn report(unprocessed: &BTreeMap<String, String>, failed: &BTreeMap<String, Failure>) -> Vec<VolumeProblem> {
    let steps = failed.values().map(|failure| {
        let Failure { volume, block, step, error } = failure;
        let text = format!("{step} failed for volume {volume:?} : {error}");
        VolumeProblem { reason: if *block { "FailedMapVolume" } else { "FailedMount" }, text }
    });
    let mut messages: Vec<VolumeProblem> = steps.collect();
    if !unprocessed.is_empty() {
        let unmounted: BTreeSet<&str> = unprocessed.keys().chain(failed.keys()).map(String::as_str).collect();
        let unmounted: Vec<&str> = unmounted.into_iter().collect();
        let names: Vec<&str> = unprocessed.keys().map(String::as_str).collect();
        let causes: Vec<&str> = unprocessed.values().map(String::as_str).collect();
        let text = format!(
            "Unable to attach or mount volumes: unmounted volumes=[{}], unattached volumes=[], failed to process \
             volumes=[{}]: {}",
            unmounted.join(" "),
            names.join(" "),
            causes.join(", ")
        );
        messages.push(text.as_str().into());
    }
    messages
}
