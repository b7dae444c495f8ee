//! Volumes that containers have as block devices: the device is bound to where the node keeps those of the volume, one for
//! each pod, kept open there ([`super::loop_device`]), and linked to from the pod's directory. The link is made first and
//! goes last: by it the next kubelet knows of the rest. Local volumes are all here; drivers' come from [`super::csi`]. See
//! <https://kep.k8s.io/351>.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_types::core_v1::Pod;
use async_trait::async_trait;
use client::object_reference;
use sys::mounts::{Depth, Mount};

use super::disk::Disk;
use super::empty_dir::make_directory;
use super::error::VolumeError;
use super::file_error::{FileError, gone};
use super::layout::{Layout, Plugin};
use super::loop_device;
use super::plugin::{VolumePlugin, VolumeSpec};
use super::plugins::Tools;
use super::world::{MountedVolume, Steps, VolumeName};
use crate::interfaces::Level;

/// Where a pod has a device.
#[derive(Debug, Clone)]
pub(super) struct BlockPlace {
    /// Where those of the volume are bound.
    pub(super) map: PathBuf,
    /// Where this one is.
    pub(super) bound: PathBuf,
    /// What containers are given.
    pub(super) link: PathBuf,
}

impl BlockPlace {
    /// Of a volume whose devices are bound below `map`.
    pub(super) fn new(layout: &Layout, map: PathBuf, plugin: Plugin, uid: &str, volume: &str) -> Self {
        Self { bound: layout.bound_device(&map, uid), map, link: layout.device(uid, plugin, volume) }
    }
}

impl Disk {
    /// Notes that a pod is to have a device, whether that is there yet or not.
    fn link_device(device: &Path, link: &Path) -> Result<(), VolumeError> {
        if let Some(parent) = link.parent() {
            make_directory(parent, 0o750)?;
        }
        if std::fs::read_link(link).is_ok_and(|target| target == device) {
            return Ok(());
        }
        gone(std::fs::remove_file(link), link)?;
        Ok(symlink(device, link).map_err(FileError::of("link", link))?)
    }

    fn unlink_device(link: &Path) -> Result<(), VolumeError> {
        gone(std::fs::remove_file(link), link)?;
        // The directory of the plugin's devices, and that of all.
        link.ancestors().skip(1).take(2).for_each(remove_empty);
        Ok(())
    }

    /// Binds a device. Returns where it is, without links on the way.
    fn bind_device(&self, device: &Path, place: &BlockPlace) -> Result<PathBuf, VolumeError> {
        make_directory(&place.map, 0o750)?;
        // Once it is bound, to open the file were to open the device.
        if !self.mounts.is_mount_point(&place.bound)? {
            let made = File::options().create(true).append(true).open(&place.bound);
            made.map_err(FileError::of("open", &place.bound))?;
            self.mounts.mount(&Mount::bind(device, &place.bound, Depth::One))?;
        }
        Ok(place.bound.canonicalize().map_err(FileError::of("find", &place.bound))?)
    }

    fn unbind_device(&self, place: &BlockPlace) -> Result<(), VolumeError> {
        if place.bound.exists() {
            self.unmount_all(&place.bound)?;
        }
        gone(std::fs::remove_file(&place.bound), &place.bound)?;
        remove_empty(&place.map);
        Ok(())
    }
}

/// Other pods, and other volumes of the pod, may have something in the directory.
pub(super) fn remove_empty(directory: &Path) {
    let _ = std::fs::remove_dir(directory);
}

/// Notes on disk that a pod is to have a device, before anything is done for it.
pub(super) async fn link(tools: &Tools, uid: &str, device: &Path, place: &BlockPlace) -> Result<(), VolumeError> {
    let (device, link) = (device.to_owned(), place.link.clone());
    tools.on_disk(uid, move |_| Disk::link_device(&device, &link)).await
}

/// Undoes that, after everything else.
pub(super) async fn unlink(tools: &Tools, uid: &str, place: BlockPlace) -> Result<(), VolumeError> {
    tools.on_disk(uid, move |_| Disk::unlink_device(&place.link)).await
}

/// Brings a device into place for a pod, keeps it open, and tells the pod's owner.
pub(super) async fn map(
    tools: &Tools,
    pod: &Pod,
    spec: &VolumeSpec,
    device: PathBuf,
    place: BlockPlace,
) -> Result<MountedVolume, VolumeError> {
    let own = place.clone();
    let bound = tools.on_disk(&pod.metadata.uid, move |disk| disk.bind_device(&device, &own)).await?;
    if loop_device::hold(&*tools.exec, &bound).await? {
        let name = spec.directory();
        for (kind, path) in [("globalMapPath", Some(&*place.map)), ("volumeMapPath", place.link.parent())] {
            let path = path.unwrap_or(&place.link).display();
            let text = format!("MapVolume.MapPodDevice succeeded for volume {name:?} {kind} \"{path}\"");
            tools.events.event(object_reference(pod), Level::Normal, "SuccessfulMountVolume", &text);
        }
    }
    let group = spec.claim.as_ref().and_then(|claim| claim.group);
    Ok(MountedVolume { path: place.link, read_only: spec.read_only, relabel: true, group })
}

/// Takes a device from a pod; what is not there is no error.
pub(super) async fn unmap(tools: &Tools, uid: &str, place: &BlockPlace) -> Result<(), VolumeError> {
    let bound = place.bound.clone();
    // The loop device is known by the path without links.
    if let Some(bound) = tools.on_disk(uid, move |_| Ok(bound.canonicalize().ok())).await? {
        loop_device::let_go(&*tools.exec, &bound).await?;
    }
    let place = place.clone();
    tools.on_disk(uid, move |disk| disk.unbind_device(&place)).await
}

/// Block devices of the machine behind claims.
pub(super) struct LocalBlock(pub(super) Arc<Tools>);

impl LocalBlock {
    fn place(&self, uid: &str, volume: &str) -> BlockPlace {
        let layout = &self.0.disk.layout;
        BlockPlace::new(layout, layout.local_block(volume), Plugin::LocalBlock, uid, volume)
    }

    /// The device that a volume stands for.
    async fn device(&self, turn: &str, spec: &VolumeSpec) -> Result<PathBuf, VolumeError> {
        let path = spec.claim.as_ref().ok_or(VolumeError::NoClaim)?.path()?.to_owned();
        self.0.on_disk(turn, move |_| device_at(&path)).await
    }
}

fn device_at(path: &Path) -> Result<PathBuf, VolumeError> {
    let missing = |source| VolumeError::NoLocalPath { path: path.to_owned(), source };
    let device = path.canonicalize().map_err(missing)?;
    let is_block = std::fs::metadata(&device).map_err(missing)?.file_type().is_block_device();
    if is_block { Ok(device) } else { Err(VolumeError::NoBlockDevice(path.to_owned())) }
}

#[async_trait]
impl VolumePlugin for LocalBlock {
    fn steps(&self) -> Steps {
        Steps { device: true, ..Steps::default() }
    }

    async fn mount_device(&self, spec: &VolumeSpec) -> Result<(), VolumeError> {
        // By the volume, not by the pod: it may be another pod's turn that hangs.
        self.device(spec.directory(), spec).await.map(drop)
    }

    async fn unmount_device(&self, _: &VolumeName) -> Result<(), VolumeError> {
        Ok(())
    }

    async fn set_up(&self, pod: &Pod, spec: &VolumeSpec) -> Result<MountedVolume, VolumeError> {
        let uid = &pod.metadata.uid;
        let (device, place) = (self.device(uid, spec).await?, self.place(uid, spec.directory()));
        link(&self.0, uid, &device, &place).await?;
        map(&self.0, pod, spec, device, place).await
    }

    async fn tear_down(&self, uid: &str, directory: &str) -> Result<(), VolumeError> {
        let place = self.place(uid, directory);
        unmap(&self.0, uid, &place).await?;
        unlink(&self.0, uid, place).await
    }
}
