//! What a kind of volume has to be able to do.

use api_types::core_v1::{Pod, Volume};
use async_trait::async_trait;

use super::claims::Resolved;
use super::error::VolumeError;
use super::layout::Plugin;
use super::world::{MountedVolume, Steps, VolumeName};

/// A volume as its pod and its claim describe it.
#[derive(Debug, Clone)]
pub(super) struct VolumeSpec {
    pub(super) plugin: Plugin,
    pub(super) volume: Volume,
    /// What its claim was resolved to.
    pub(super) claim: Option<Resolved>,
    /// Whether containers may never write to it.
    pub(super) read_only: bool,
}

impl VolumeSpec {
    /// Its directory below the pod's: by the pod's name for it, or that of the persistent volume.
    pub(super) fn directory(&self) -> &str {
        self.claim.as_ref().map_or(&self.volume.name, |claim| &claim.volume)
    }
}

/// One kind of volume. Every step is idempotent, and may be asked for after it was broken off, by this kubelet or an
/// earlier one.
#[async_trait]
pub(super) trait VolumePlugin: Send + Sync + 'static {
    /// Which steps there are.
    fn steps(&self) -> Steps {
        Steps::default()
    }

    /// Waits until the volume is attached to the node.
    async fn attach(&self, spec: &VolumeSpec) -> Result<(), VolumeError> {
        let _ = spec;
        Ok(())
    }

    /// The node needs the volume no more.
    async fn detach(&self, volume: &VolumeName) -> Result<(), VolumeError> {
        let _ = volume;
        Ok(())
    }

    /// Mounts the device where all pods get it from (stages it).
    async fn mount_device(&self, spec: &VolumeSpec) -> Result<(), VolumeError> {
        let _ = spec;
        Ok(())
    }

    /// Undoes that.
    async fn unmount_device(&self, volume: &VolumeName) -> Result<(), VolumeError> {
        let _ = volume;
        Ok(())
    }

    /// Brings the volume into place for a pod (publishes it), or its content up to date.
    async fn set_up(&self, pod: &Pod, spec: &VolumeSpec) -> Result<MountedVolume, VolumeError>;

    /// Takes it away from a pod; the directory is known also where nothing else is.
    async fn tear_down(&self, uid: &str, directory: &str) -> Result<(), VolumeError>;
}
