//! What a kind of volume has to be able to do.

use api_types::core_v1::{Pod, Volume};
use async_trait::async_trait;

use super::claims::Resolved;
use super::csi::CsiVolume;
use super::error::VolumeError;
use super::layout::Plugin;
use super::world::{Identity, MountedVolume, Steps, VolumeName};

/// A volume as its pod and its claim describe it.
#[derive(Debug, Clone)]
pub(super) struct VolumeSpec {
    pub(super) plugin: Plugin,
    pub(super) volume: Volume,
    /// What its claim was resolved to.
    pub(super) claim: Option<Resolved>,
    /// What a driver is told of it, where it is a driver's.
    pub(super) csi: Option<Box<CsiVolume>>,
    /// Whether containers may never write to it.
    pub(super) read_only: bool,
}

impl VolumeSpec {
    /// Its directory below the pod's: by the pod's name for it, or that of the persistent volume.
    pub(super) fn directory(&self) -> &str {
        self.claim.as_ref().map_or(&self.volume.name, |claim| &claim.volume)
    }
}

/// What pods share of a volume, as an earlier kubelet left it.
pub(super) struct StagedDevice {
    pub(super) found: Identity,
    /// That it is mounted with (SELinux); empty for none.
    pub(super) label: String,
}

/// One kind of volume. Every step is idempotent, and may be asked for after it was broken off, by this kubelet or an
/// earlier one.
#[async_trait]
pub(super) trait VolumePlugin: Send + Sync + 'static {
    /// Which steps there are.
    fn steps(&self) -> Steps {
        Steps::default()
    }

    /// Which volume it is, where that does not follow from its directory.
    fn identify(&self, uid: &str, spec: &VolumeSpec) -> Option<Identity> {
        let _ = (uid, spec);
        None
    }

    /// The same of a directory that an earlier kubelet left.
    async fn recover(&self, uid: &str, directory: &str) -> Option<Identity> {
        let _ = (uid, directory);
        None
    }

    /// What pods share, also where no pod has it any more.
    async fn recover_devices(&self) -> Vec<StagedDevice> {
        Vec::new()
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

    /// Grows what is on a volume in place, where the volume itself has grown.
    async fn grow(&self, pod: &Pod, spec: &VolumeSpec, mounted: &MountedVolume) -> Result<(), VolumeError> {
        let _ = (pod, spec, mounted);
        Ok(())
    }

    /// Takes it away from a pod; the directory is known also where nothing else is.
    async fn tear_down(&self, uid: &str, directory: &str) -> Result<(), VolumeError>;
}
