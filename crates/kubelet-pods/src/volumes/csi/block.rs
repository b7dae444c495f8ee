//! Drivers' volumes as block devices: staged for the node, published for each pod as a file that is the device, and mapped
//! from there. What is known of each is kept beside it, by the name of the persistent volume.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_types::core_v1::Pod;
use async_trait::async_trait;
use node_api::csi::v1::node_service_capability::rpc::Type as Capability;

use super::data::{self, PodData};
use super::{Csi, CsiError, CsiVolume, Driver, RECOVERED, VolumeReport, parts, request, shared};
use crate::volumes::block::{self, BlockPlace};
use crate::volumes::disk::Disk;
use crate::volumes::empty_dir::make_directory;
use crate::volumes::error::VolumeError;
use crate::volumes::layout::Plugin;
use crate::volumes::plugin::{StagedDevice, VolumePlugin, VolumeSpec};
use crate::volumes::plugins::Tools;
use crate::volumes::world::{Identity, MountedVolume, Steps, VolumeName};

/// The plugin `kubernetes.io/csi`, for volumes that are block devices.
pub(in crate::volumes) struct CsiBlock {
    csi: Csi,
}

impl CsiBlock {
    pub(in crate::volumes) fn new(tools: &Arc<Tools>) -> Self {
        Self { csi: Csi(Arc::clone(tools)) }
    }

    fn tools(&self) -> &Tools {
        &self.csi.0
    }

    fn disk(&self) -> &Disk {
        &self.tools().disk
    }

    fn place(&self, uid: &str, volume: &str) -> BlockPlace {
        let layout = &self.disk().layout;
        BlockPlace::new(layout, layout.csi_block(volume).join("dev"), Plugin::CsiBlock, uid, volume)
    }

    fn data_of(&self, volume: &str) -> PathBuf {
        self.disk().layout.csi_block(volume).join("data")
    }

    /// The persistent volumes that are on disk, with what is known of them.
    async fn known(&self) -> Vec<(String, PodData)> {
        let root = self.disk().layout.csi_block_root();
        let turn = root.display().to_string();
        let found = self.tools().on_disk(&turn, move |_| Ok(PodData::below(&root, "data"))).await;
        found.unwrap_or_default()
    }

    /// Writes down whose volume it is, before anything is asked of the driver, and makes the directory that it is told of.
    async fn keep_data(&self, volume: &CsiVolume, name: &str, place: PathBuf, turn: &str) -> Result<(), VolumeError> {
        let (data, kept) = (PodData::of(volume, name, &self.tools().csi.node_name), self.data_of(name));
        let keep = move |_: &Disk| {
            make_directory(&kept, 0o750)?;
            data.write(&kept)?;
            Ok(make_directory(&place, 0o750)?)
        };
        self.tools().on_disk(turn, keep).await
    }

    /// Has the device brought to `target` for a pod.
    async fn publish(&self, pod: &Pod, spec: &VolumeSpec, driver: &Driver, target: &Path) -> Result<(), VolumeError> {
        let (csi, volume, name) = (&self.csi, Csi::volume(spec)?, spec.directory());
        let staging = self.disk().layout.csi_block_staging(name);
        let request = request::Publish {
            pod,
            volume,
            target,
            staging: driver.can(Capability::StageUnstageVolume).then_some(&*staging),
            read_only: spec.read_only,
            publish_context: csi.publish_context(volume).await?,
            secrets: csi.secret("NodePublishSecretRef", volume.publish_secret.as_ref()).await?,
            tokens: csi.tokens(pod, volume).await?,
            capabilities: &driver.capabilities,
        };
        let request = request.build();
        let parent = target.parent().map(PathBuf::from).unwrap_or_default();
        self.keep_data(volume, name, parent, &pod.metadata.uid).await?;
        Ok(driver.client.publish(request).await.map_err(CsiError::from)?)
    }

    /// How full a device is, by the driver's word.
    pub(in crate::volumes) async fn usage(csi: &Csi, name: &VolumeName, link: PathBuf) -> Option<VolumeReport> {
        let volume = link.file_name()?.to_string_lossy().into_owned();
        let staging = csi.0.disk.layout.csi_block_staging(&volume);
        let published = csi.0.on_disk(&volume, move |_| Ok(std::fs::read_link(link).ok())).await.ok()??;
        csi.usage(name, &published, &staging).await
    }
}

#[async_trait]
impl VolumePlugin for CsiBlock {
    fn identify(&self, _: &str, spec: &VolumeSpec) -> Option<Identity> {
        let volume = spec.csi.as_deref()?;
        let steps =
            Steps { attach: volume.facts.attach_required, device: true, remount: volume.facts.requires_republish };
        Some(shared(Plugin::CsiBlock, &volume.driver, &volume.handle, steps))
    }

    async fn recover(&self, uid: &str, directory: &str) -> Option<Identity> {
        let place = self.data_of(directory);
        let data = self.tools().on_disk(uid, move |_| Ok(PodData::read(&place))).await.ok()??;
        Some(shared(Plugin::CsiBlock, &data.driver_name, &data.volume_handle, RECOVERED))
    }

    async fn recover_devices(&self) -> Vec<StagedDevice> {
        let staged = |data: PodData| StagedDevice {
            found: shared(Plugin::CsiBlock, &data.driver_name, &data.volume_handle, RECOVERED),
            label: String::new(),
        };
        self.known().await.into_iter().map(|(_, data)| staged(data)).collect()
    }

    async fn attach(&self, spec: &VolumeSpec) -> Result<(), VolumeError> {
        self.csi.wait_attached(Csi::volume(spec)?).await
    }

    async fn detach(&self, volume: &VolumeName) -> Result<(), VolumeError> {
        self.csi.detach(volume).await
    }

    async fn mount_device(&self, spec: &VolumeSpec) -> Result<(), VolumeError> {
        let (csi, volume, name) = (&self.csi, Csi::volume(spec)?, spec.directory());
        let driver = csi.driver(&volume.driver, "blockMapper.SetUpDevice failed to get CSI client").await?;
        let staging = self.disk().layout.csi_block_staging(name);
        self.keep_data(volume, name, staging.clone(), &staging.display().to_string()).await?;
        if !driver.can(Capability::StageUnstageVolume) {
            return Ok(());
        }
        let request = request::stage(
            volume,
            &staging,
            csi.publish_context(volume).await?,
            csi.secret("NodeStageSecretRef", volume.stage_secret.as_ref()).await?,
            &driver.capabilities,
        );
        Ok(driver.client.stage(request).await.map_err(CsiError::from)?)
    }

    async fn unmount_device(&self, volume: &VolumeName) -> Result<(), VolumeError> {
        let (driver, handle) = parts(volume)?;
        let own = |data: &PodData| data.driver_name == driver && data.volume_handle == handle;
        for (name, _) in self.known().await.into_iter().filter(|(_, data)| own(data)) {
            let driver = self.csi.driver(driver, "blockMapper.TearDownDevice failed to get CSI client").await?;
            let layout = &self.disk().layout;
            let (staging, place) = (layout.csi_block_staging(&name), layout.csi_block(&name));
            if driver.can(Capability::StageUnstageVolume) {
                driver.client.unstage(handle, &staging).await.map_err(CsiError::Unstage)?;
            }
            let turn = staging.display().to_string();
            self.tools().on_disk(&turn, move |disk| data::remove_block(disk, &place, &staging)).await?;
        }
        Ok(())
    }

    async fn set_up(&self, pod: &Pod, spec: &VolumeSpec) -> Result<MountedVolume, VolumeError> {
        let volume: &CsiVolume = Csi::volume(spec)?;
        volume.check_life()?;
        let driver = self.csi.driver(&volume.driver, "blockMapper.MapPodDevice failed to get CSI client").await?;
        let (uid, name) = (&pod.metadata.uid, spec.directory());
        let (target, place) = (self.disk().layout.csi_block_published(name, uid), self.place(uid, name));
        block::link(self.tools(), uid, &target, &place).await?;
        self.publish(pod, spec, &driver, &target).await?;
        block::map(self.tools(), pod, spec, target, place).await
    }

    async fn grow(&self, pod: &Pod, spec: &VolumeSpec, mounted: &MountedVolume) -> Result<(), VolumeError> {
        let (name, layout) = (spec.directory(), &self.disk().layout);
        let published = layout.csi_block_published(name, &pod.metadata.uid);
        let published = MountedVolume { path: published, ..mounted.clone() };
        self.csi.grow_volume(pod, spec, &published, &layout.csi_block_staging(name)).await
    }

    async fn tear_down(&self, uid: &str, directory: &str) -> Result<(), VolumeError> {
        let place = self.place(uid, directory);
        block::unmap(self.tools(), uid, &place).await?;
        let (kept, target) = (self.data_of(directory), self.disk().layout.csi_block_published(directory, uid));
        let data = self.tools().on_disk(uid, move |_| Ok(PodData::read(&kept))).await?;
        if let Some(data) = data {
            let client = self.tools().csi.drivers.client(&data.driver_name);
            let step = "blockMapper.UnmapPodDevice failed to get CSI client";
            let client = client.map_err(|source| CsiError::NoDriver { place: step, source })?;
            client.unpublish(&data.volume_handle, &target).await.map_err(CsiError::Unpublish)?;
        }
        self.tools().on_disk(uid, move |disk| data::remove_published(disk, &target)).await?;
        block::unlink(self.tools(), uid, place).await
    }
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
