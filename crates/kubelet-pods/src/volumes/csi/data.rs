//! What is kept on disk of a driver's volume, so that the next kubelet knows whom to ask. The files are upstream's.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use component_helpers::volumes::attaching::attachment_name;

use super::volume::CsiVolume;
use crate::volumes::block::remove_empty;
use crate::volumes::disk::Disk;
use crate::volumes::error::VolumeError;
use crate::volumes::file_error::{FileError, gone};

const FILE: &str = "vol_data.json";
/// The largest file that is read; these are a few names.
const MAX_BYTES: u64 = 64 * 1024;
/// Volumes that are looked for; a node has a few hundred.
const MAX_DEVICES: usize = 10_000;

type Fields = BTreeMap<String, String>;

fn read(directory: &Path) -> Option<Fields> {
    let mut text = String::new();
    std::fs::File::open(directory.join(FILE)).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    let fields = serde_json::from_str(&text);
    fields
        .inspect_err(|error| tracing::warn!(path = %directory.display(), %error, "A volume's data cannot be read"))
        .ok()
}

fn write(directory: &Path, fields: &[(&str, &str)]) -> Result<(), FileError> {
    let fields: BTreeMap<&str, &str> = fields.iter().copied().collect();
    let path = directory.join(FILE);
    let text = serde_json::to_string(&fields).unwrap_or_default();
    sys::fs::write_atomic(&path, text.as_bytes(), 0o644).map_err(FileError::of("write", &path))
}

/// A volume as one pod has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodData {
    pub(super) driver_name: String,
    pub(super) volume_handle: String,
    directory: String,
    node_name: String,
    life: String,
    /// That it is mounted with (SELinux); empty for none.
    label: String,
}

impl PodData {
    pub(super) fn of(volume: &CsiVolume, directory: &str, node_name: &str) -> Self {
        Self {
            driver_name: volume.driver.clone(),
            volume_handle: volume.handle.clone(),
            directory: directory.to_owned(),
            node_name: node_name.to_owned(),
            life: volume.life().to_owned(),
            label: volume.label.clone().unwrap_or_default(),
        }
    }

    /// What an earlier call wrote; `None` where nothing of use is there.
    pub(super) fn read(directory: &Path) -> Option<Self> {
        let mut fields = read(directory)?;
        let mut take = |name: &str| fields.remove(name).unwrap_or_default();
        let data = Self {
            driver_name: take("driverName"),
            volume_handle: take("volumeHandle"),
            directory: take("specVolID"),
            node_name: take("nodeName"),
            life: take("volumeLifecycleMode"),
            label: take("seLinuxMountContext"),
        };
        (!data.driver_name.is_empty() && !data.volume_handle.is_empty()).then_some(data)
    }

    pub(super) fn write(&self, directory: &Path) -> Result<(), FileError> {
        let attachment = match self.is_persistent() {
            true => attachment_name(&self.driver_name, &self.volume_handle, &self.node_name),
            false => String::new(),
        };
        let fields = [
            ("specVolID", self.directory.as_str()),
            ("volumeHandle", &self.volume_handle),
            ("driverName", &self.driver_name),
            ("nodeName", &self.node_name),
            ("volumeLifecycleMode", &self.life),
            ("attachmentID", &attachment),
            ("seLinuxMountContext", &self.label),
        ];
        write(directory, &fields)
    }

    /// Those of all volumes below a directory, each in a directory of this name within the volume's own.
    pub(super) fn below(root: &Path, name: &str) -> Vec<(String, Self)> {
        let entries = std::fs::read_dir(root).into_iter().flatten().flatten().take(MAX_DEVICES);
        let volume = |entry: std::fs::DirEntry| {
            let data = Self::read(&entry.path().join(name))?;
            Some((entry.file_name().to_string_lossy().into_owned(), data))
        };
        entries.filter_map(volume).collect()
    }

    pub(super) fn is_persistent(&self) -> bool {
        self.life != "Ephemeral"
    }
}

/// A volume as it is staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeviceData {
    pub(super) driver_name: String,
    pub(super) volume_handle: String,
    /// That it is mounted with (SELinux); empty for none.
    pub(super) label: String,
}

impl DeviceData {
    pub(super) fn of(volume: &CsiVolume) -> Self {
        Self {
            driver_name: volume.driver.clone(),
            volume_handle: volume.handle.clone(),
            label: volume.label.clone().unwrap_or_default(),
        }
    }

    pub(super) fn write(&self, directory: &Path) -> Result<(), FileError> {
        let fields = [
            ("volumeHandle", self.volume_handle.as_str()),
            ("driverName", &self.driver_name),
            ("seLinuxMountContext", &self.label),
        ];
        write(directory, &fields)
    }

    /// All volumes that are staged, or were to be.
    pub(super) fn all(root: &Path) -> Vec<Self> {
        let below = |path: &Path| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).take(MAX_DEVICES).collect()
        };
        let directories = below(root).into_iter().flat_map(|driver| below(&driver)).take(MAX_DEVICES);
        let read = directories.filter_map(|directory| {
            let mut fields = read(&directory)?;
            let driver_name = fields.remove("driverName").filter(|name| !name.is_empty())?;
            let label = fields.remove("seLinuxMountContext").unwrap_or_default();
            Some(Self { driver_name, volume_handle: fields.remove("volumeHandle")?, label })
        });
        read.collect()
    }
}

/// Removes what is left of a volume that a driver has taken from a pod.
pub(super) fn remove_pod_volume(disk: &Disk, directory: &Path) -> Result<(), VolumeError> {
    remove(disk, directory, &directory.join("mount"))
}

/// Removes what is left of a volume that a driver has unstaged.
pub(super) fn remove_device(disk: &Disk, directory: &Path) -> Result<(), VolumeError> {
    remove(disk, directory, &directory.join("globalmount"))
}

/// Removes what is left of a block device that a driver has taken from a pod.
pub(super) fn remove_published(disk: &Disk, target: &Path) -> Result<(), VolumeError> {
    remove_target(disk, target)?;
    target.ancestors().skip(1).take(1).for_each(remove_empty);
    Ok(())
}

/// Removes what is left of a block device that a driver has unstaged.
pub(super) fn remove_block(disk: &Disk, place: &Path, staging: &Path) -> Result<(), VolumeError> {
    remove_target(disk, staging)?;
    remove_empty(&place.join("dev"));
    // The data goes last: without it nobody knows whom to ask.
    let data = place.join("data");
    gone(std::fs::remove_file(data.join(FILE)), &data)?;
    gone(std::fs::remove_dir(&data), &data)?;
    Ok(gone(std::fs::remove_dir(place), place)?)
}

/// What the driver left mounted is unmounted. What holds anything then may be somebody's data, and stays.
fn remove(disk: &Disk, directory: &Path, target: &Path) -> Result<(), VolumeError> {
    remove_target(disk, target)?;
    gone(std::fs::remove_file(directory.join(FILE)), &directory.join(FILE))?;
    Ok(gone(std::fs::remove_dir(directory), directory)?)
}

fn remove_target(disk: &Disk, target: &Path) -> Result<(), VolumeError> {
    if target.exists() {
        disk.unmount_all(target)?;
    }
    let removed = match std::fs::symlink_metadata(target) {
        // A driver may bring single files into place, and links.
        Ok(meta) if !meta.is_dir() => std::fs::remove_file(target),
        _ => std::fs::remove_dir(target),
    };
    Ok(gone(removed, target)?)
}
