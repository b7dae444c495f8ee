//! Volumes of the machine itself behind claims: directories, and file systems on its block devices. A directory is bound
//! into the pod's; a device is mounted once for all pods, after it was given a file system where it had none, and bound
//! from there.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use api_types::core_v1::{LocalVolumeSource, ObjectReference, PersistentVolume, Pod};
use async_trait::async_trait;
use client::object_reference;
use tokio::runtime::Handle;

use super::claims::{Backing, Resolved};
use super::disk::{Disk, ForeignGroup};
use super::empty_dir::make_directory;
use super::error::VolumeError;
use super::file_error::gone;
use super::format::{self, FormatError};
use super::layout::Plugin;
use super::mount_program::MountOptions;
use super::ownership::told_of;
use super::plugin::{StagedDevice, VolumePlugin, VolumeSpec};
use super::plugins::Tools;
use super::world::{Identity, MountedVolume, Steps, VolumeName};
use crate::interfaces::Level;

/// What a device is given that is not said to hold anything else.
const DEFAULT_KIND: &str = "ext4";
const STEPS: Steps = Steps { attach: false, device: true, remount: false };

/// A device is not mounted.
#[derive(Debug, thiserror::Error)]
#[error(
    "local: failed to mount device {} at {} (fstype: {kind}), error {source}",
    .device.display(),
    .place.display()
)]
pub(super) struct DeviceError {
    device: PathBuf,
    place: PathBuf,
    kind: String,
    source: FormatError,
}

/// A place of the machine, and how it is mounted where it is a device.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LocalVolume {
    pub(super) path: PathBuf,
    kind: String,
    options: MountOptions,
    /// Its persistent volume.
    object: ObjectReference,
}

impl LocalVolume {
    pub(super) fn of_claim(source: &LocalVolumeSource, volume: &PersistentVolume) -> Self {
        Self {
            path: source.path.clone().into(),
            kind: source.fs_type.clone().unwrap_or_else(|| DEFAULT_KIND.to_owned()),
            options: MountOptions::of_volume(volume),
            object: object_reference(volume),
        }
    }

    #[cfg(test)]
    pub(super) fn at(path: &Path) -> Self {
        let source = LocalVolumeSource { path: path.display().to_string(), ..LocalVolumeSource::default() };
        Self::of_claim(&source, &PersistentVolume::default())
    }

    /// Whether it is a device; otherwise it is a directory.
    fn is_device(&self) -> Result<bool, VolumeError> {
        let path = &self.path;
        let missing = |source| VolumeError::NoLocalPath { path: path.clone(), source };
        let meta = std::fs::metadata(path).map_err(missing)?;
        match meta.file_type() {
            kind if kind.is_block_device() => Ok(true),
            kind if kind.is_dir() => Ok(false),
            _ => Err(VolumeError::NoDirectory),
        }
    }

    /// The device, as it is mounted.
    fn device(&self, read_only: bool) -> format::Device<'_> {
        format::Device { path: &self.path, kind: &self.kind, options: self.options.list(read_only) }
    }

    fn failed(&self, place: &Path, source: FormatError) -> VolumeError {
        let (device, place, kind) = (self.path.clone(), place.to_owned(), self.kind.clone());
        VolumeError::LocalDevice(Box::new(DeviceError { device, place, kind, source }))
    }
}

/// The plugin `kubernetes.io/local-volume`, for file systems.
pub(super) struct Local(pub(super) Arc<Tools>);

impl Local {
    fn claim(spec: &VolumeSpec) -> Result<(&Resolved, &LocalVolume), VolumeError> {
        let claim = spec.claim.as_ref().ok_or(VolumeError::NoClaim)?;
        match &claim.backing {
            Backing::Local(local) => Ok((claim, local)),
            _ => Err(VolumeError::Unmatched),
        }
    }

    /// Where a volume's device is mounted.
    fn place(&self, volume: &str) -> PathBuf {
        self.0.disk.layout.local_device(volume)
    }
}

/// What calls about a volume's device take turns by; no uid.
fn turn(volume: &str) -> String {
    format!("{}/{volume}", Plugin::Local.directory())
}

#[async_trait]
impl VolumePlugin for Local {
    fn steps(&self) -> Steps {
        STEPS
    }

    async fn recover_devices(&self) -> Vec<StagedDevice> {
        let root = self.0.disk.layout.local_devices();
        let turn = root.display().to_string();
        let listed = move |_: &Disk| {
            let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
            Ok(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>())
        };
        let found = self.0.on_disk(&turn, listed).await.unwrap_or_default();
        let staged = |id: String| StagedDevice {
            found: Identity { name: VolumeName { plugin: Plugin::Local, id }, steps: STEPS },
            label: String::new(),
        };
        found.into_iter().map(staged).collect()
    }

    async fn mount_device(&self, spec: &VolumeSpec) -> Result<(), VolumeError> {
        let local = Self::claim(spec)?.1.clone();
        let (place, read_only) = (self.place(spec.directory()), spec.read_only);
        let (exec, events, runtime) = (Arc::clone(&self.0.exec), Arc::clone(&self.0.events), Handle::current());
        let volume = spec.directory().to_owned();
        let mount = move |disk: &Disk| {
            if !local.is_device()? || disk.mounts.is_mount_point(&place)? {
                return Ok(());
            }
            make_directory(&place, 0o750)?;
            let Err(error) = runtime.block_on(local.device(read_only).mount(&*exec, &place)) else { return Ok(()) };
            // Only an empty directory goes, and only where nothing is mounted after all.
            let _ = std::fs::remove_dir(&place);
            let is_mismatch = error.is_mismatch();
            let error = local.failed(&place, error);
            if is_mismatch {
                let text = format!("MountVolume failed for volume {volume:?} {error}");
                events.event(local.object.clone(), Level::Warning, "FailedMountOnFilesystemMismatch", &text);
            }
            Err(error)
        };
        // By the volume, not by the pod: it may be another pod's turn that hangs. Whoever waits may stop waiting, but a file
        // system is not left half made.
        self.0.on_disk(&turn(spec.directory()), mount).await
    }

    async fn unmount_device(&self, volume: &VolumeName) -> Result<(), VolumeError> {
        let place = self.place(&volume.id);
        let unmount = move |disk: &Disk| {
            if disk.mounts.is_mount_point(&place)? {
                disk.unmount_all(&place)?;
            }
            // Only an empty one: what is not mounted here is nobody's to remove.
            Ok(gone(std::fs::remove_dir(&place), &place)?)
        };
        self.0.on_disk(&turn(&volume.id), unmount).await
    }

    async fn set_up(&self, pod: &Pod, spec: &VolumeSpec) -> Result<MountedVolume, VolumeError> {
        let (claim, local) = Self::claim(spec)?;
        let (group, volume, local) = (claim.group, claim.volume.clone(), local.clone());
        let (owned, read_only, place) = (pod.clone(), spec.read_only, self.place(spec.directory()));
        let (uid, given) = (&pod.metadata.uid, Arc::new(AtomicU64::default()));
        let counted = Arc::clone(&given);
        let bind = move |disk: &Disk| {
            let source = match local.is_device()? {
                true if disk.mounts.is_mount_point(&place)? => place,
                true => return Err(VolumeError::NotMounted(place)),
                false => local.path,
            };
            let (path, foreign) = disk.claimed(&owned, &volume, &source, read_only, &counted)?;
            Ok((MountedVolume { path, read_only, relabel: true, group }, foreign))
        };
        let shown = self.0.disk.layout.volume(uid, Plugin::Local, &claim.volume);
        let bound = self.0.on_disk(uid, bind);
        let (mounted, foreign) = told_of(bound, &*self.0.events, pod, &shown, &given).await?;
        if let Some(ForeignGroup { wanted, of }) = foreign {
            let volume = &claim.volume;
            let text = format!(
                "The requested fsGroup is {wanted}, but the volume {volume} has GID {of}. The volume may not be shareable."
            );
            self.0.events.event(object_reference(pod), Level::Warning, "AlreadyMountedVolume", &text);
        }
        Ok(mounted)
    }

    async fn tear_down(&self, uid: &str, directory: &str) -> Result<(), VolumeError> {
        self.0.remove(Plugin::Local, uid, directory).await
    }
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
