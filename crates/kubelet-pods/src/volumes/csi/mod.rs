//! Volumes of drivers (CSI): waited for until they are attached, staged once for the node, published for each pod.
//!
//! What is asked of a driver is made in [`request`], what is kept on disk for the next kubelet in [`data`]; [`grow`] and
//! [`usage`] are what is asked about volumes in place, and [`block`] is all of it for block devices. Mounts with an SELinux
//! label are not here yet.
//! See <https://kubernetes-csi.github.io/docs/>.

mod block;
mod data;
mod error;
mod grow;
mod limit;
mod request;
#[cfg(test)]
mod tests;
mod usage;
mod volume;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use api_machinery::value::Value;
use api_types::core_v1::{Node, Pod, Secret};
use api_types::storage_v1::{CSIDriver, VolumeAttachment};
use async_trait::async_trait;
use client::Informer;
use component_helpers::volumes::attaching::attachment_name;
use kubelet_node::csi::{Counts, Drivers};
use node_api::csi::CsiClient;
use node_api::csi::v1::node_service_capability::rpc::Type as Capability;
use node_api::tonic::Code;
use serde_json::json;

pub(super) use self::block::CsiBlock;
use self::data::{DeviceData, PodData};
pub(super) use self::error::{CsiError, Unsynced};
pub use self::usage::VolumeCondition;
pub(super) use self::usage::VolumeReport;
use self::volume::SecretName;
pub(super) use self::volume::{CsiVolume, Facts};
use super::disk::Disk;
use super::empty_dir::make_directory;
use super::error::VolumeError;
use super::layout::Plugin;
use super::ownership::told_of;
use super::plugin::{StagedDevice, VolumePlugin, VolumeSpec};
use super::plugins::Tools;
use super::world::{Identity, MountedVolume, Steps, VolumeName};

/// How long the list of drivers' objects may take to be read; the pod is tried again.
const FACTS_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks whether a volume is attached. Kubelets may read such objects and not watch them.
const ATTACHMENT_PERIOD: Duration = Duration::from_millis(500);

/// What there is of a volume that an earlier kubelet left. Whether it is attached is not known before somebody wants it;
/// that it is in use is told until then.
const RECOVERED: Steps = Steps { attach: true, device: true, remount: false };

/// What volumes of drivers are made with.
#[derive(Clone, Default)]
pub struct CsiDeps {
    pub drivers: Arc<Drivers>,
    /// What the cluster knows of drivers; none without an API server.
    pub objects: Option<Informer<CSIDriver>>,
    /// Asks drivers anew how many volumes fit; none without an API server.
    pub counts: Option<Arc<Counts>>,
    pub node_name: String,
}

impl CsiDeps {
    /// What the cluster knows of a driver.
    ///
    /// # Errors
    /// It has not been read yet.
    pub(super) async fn facts(&self, driver: &str) -> Result<Facts, Unsynced> {
        let Some(objects) = &self.objects else { return Ok(Facts::of(None)) };
        let synced = tokio::time::timeout(FACTS_LIMIT, objects.wait_synced()).await;
        synced.map_err(|_| Unsynced)?;
        Ok(Facts::of(objects.find("", driver).as_deref()))
    }
}

/// The plugin `kubernetes.io/csi`.
pub(super) struct Csi(pub(super) Arc<Tools>);

/// A driver, and what it can do.
struct Driver {
    client: CsiClient,
    capabilities: std::collections::BTreeSet<Capability>,
}

impl Driver {
    fn can(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}

/// The driver and the handle of a volume that pods share.
fn parts(name: &VolumeName) -> Result<(&str, &str), VolumeError> {
    name.id.split_once('^').ok_or(VolumeError::Unmatched)
}

fn shared(plugin: Plugin, driver: &str, handle: &str, steps: Steps) -> Identity {
    Identity { name: VolumeName { plugin, id: kubelet_node::csi::unique_id(driver, handle) }, steps }
}

impl Csi {
    async fn driver(&self, name: &str, place: &'static str) -> Result<Driver, CsiError> {
        let client = self.0.csi.drivers.client(name).map_err(|source| CsiError::NoDriver { place, source })?;
        let capabilities = client.capabilities().await?;
        Ok(Driver { client, capabilities })
    }

    fn volume(spec: &VolumeSpec) -> Result<&CsiVolume, VolumeError> {
        spec.csi.as_deref().ok_or(VolumeError::Unmatched)
    }

    /// Where a volume is staged, and its data beside it.
    fn device(&self, driver: &str, handle: &str) -> (PathBuf, PathBuf) {
        let directory = self.0.disk.layout.csi_device(driver, handle);
        (directory.join("globalmount"), directory)
    }

    /// A secret's content for a driver.
    async fn secret(
        &self,
        what: &'static str,
        named: Option<&SecretName>,
    ) -> Result<std::collections::HashMap<String, String>, CsiError> {
        let Some(SecretName { namespace, name }) = named else { return Ok(Default::default()) };
        let failed = |why: String| CsiError::Secret { what, namespace: namespace.clone(), name: name.clone(), why };
        let client = self.0.client.as_ref().ok_or(CsiError::NoClient)?;
        let secret = client.namespaced::<Secret>(namespace).get(name).await;
        let secret = secret.map_err(|error| failed(error.to_string()))?;
        let text = |(key, value): (String, api_machinery::reflect::ByteString)| {
            let value = String::from_utf8(value.0).map_err(|_| failed(format!("key {key} is no text")))?;
            Ok((key, value))
        };
        secret.data.into_iter().map(text).collect()
    }

    /// What attaching said of the volume, for those that are attached.
    async fn publish_context(&self, volume: &CsiVolume) -> Result<std::collections::HashMap<String, String>, CsiError> {
        if volume.is_inline() || !volume.facts.attach_required {
            return Ok(Default::default());
        }
        let attachment = self.attachment(volume).await?;
        Ok(attachment.map(|found| found.status.attachment_metadata.into_iter().collect()).unwrap_or_default())
    }

    async fn attachment(&self, volume: &CsiVolume) -> Result<Option<VolumeAttachment>, CsiError> {
        let client = self.0.client.as_ref().ok_or(CsiError::NoClient)?;
        let name = attachment_name(&volume.driver, &volume.handle, &self.0.csi.node_name);
        let found = client.all::<VolumeAttachment>().get_opt(&name).await;
        found.map_err(|source| CsiError::Attachment { volume: volume.handle.clone(), name, source: Box::new(source) })
    }

    /// Waits until the node's status says that the volume is attached; who asks sets the limit.
    async fn attached_by_controller(&self, name: &str) {
        let view = &self.0.disk.node;
        view.status_changed();
        let attached = |node: &Node| {
            let status = &node.status;
            status.volumes_in_use.iter().any(|used| used == name)
                && status.volumes_attached.iter().any(|volume| volume.name == name)
        };
        while !view.node().is_some_and(|node| attached(&node)) {
            view.changed().await;
        }
    }

    /// Waits until a volume is attached, where it is to be.
    async fn wait_attached(&self, volume: &CsiVolume) -> Result<(), VolumeError> {
        if volume.is_inline() || !volume.facts.attach_required {
            return Ok(());
        }
        let name = shared(Plugin::Csi, &volume.driver, &volume.handle, Steps::default()).name.to_string();
        self.attached_by_controller(&name).await;
        loop {
            let attachment = self.attachment(volume).await?;
            let status = attachment.as_ref().map(|found| &found.status);
            if status.is_some_and(|status| status.attached) {
                return Ok(());
            }
            if attachment.as_ref().is_some_and(|found| found.metadata.deletion_timestamp.is_some()) {
                return Err(CsiError::Detaching.into());
            }
            if let Some(error) = status.and_then(|status| status.attach_error.as_ref()) {
                return Err(CsiError::NotAttached(error.message.clone()).into());
            }
            tokio::time::sleep(ATTACHMENT_PERIOD).await;
        }
    }

    /// The tokens that the driver wants of the pod's account, as it gets them.
    async fn tokens(&self, pod: &Pod, volume: &CsiVolume) -> Result<Option<String>, CsiError> {
        if volume.facts.token_requests.is_empty() {
            return Ok(None);
        }
        let tokens = self.0.made_of.tokens.as_ref().ok_or(CsiError::NoClient)?;
        let mut all = Value::Object(Default::default());
        for wish in &volume.facts.token_requests {
            let issued = tokens.issued(pod, &wish.audience, wish.expiration_seconds).await?;
            all[&wish.audience] = json!({"token": issued.token, "expirationTimestamp": issued.expires.to_string()});
        }
        Ok(Some(all.to_string()))
    }

    async fn publish(&self, pod: &Pod, spec: &VolumeSpec, driver: &Driver) -> Result<PathBuf, VolumeError> {
        let volume = Self::volume(spec)?;
        let (uid, directory) = (pod.metadata.uid.clone(), spec.directory().to_owned());
        let place = self.0.disk.layout.volume(&uid, Plugin::Csi, &directory);
        let target = place.join("mount");
        let staging = self.device(&volume.driver, &volume.handle).0;
        let request = request::Publish {
            pod,
            volume,
            target: &target,
            staging: (!volume.is_inline() && driver.can(Capability::StageUnstageVolume)).then_some(&*staging),
            read_only: spec.read_only,
            publish_context: self.publish_context(volume).await?,
            secrets: self.secret("NodePublishSecretRef", volume.publish_secret.as_ref()).await?,
            tokens: self.tokens(pod, volume).await?,
            capabilities: &driver.capabilities,
        };
        let request = request.build();
        let data = PodData::of(volume, &directory, &self.0.csi.node_name);
        let (made, kept) = (place.clone(), target.clone());
        let prepare = move |_: &Disk| {
            let fresh = !kept.exists();
            make_directory(&made, 0o750)?;
            data.write(&made)?;
            Ok(fresh)
        };
        let fresh = self.0.on_disk(&uid, prepare).await?;
        if let Err(error) = driver.client.publish(request).await {
            if fresh && error.is_final() {
                // The driver has decided that there is nothing: nor shall there be anything to take away.
                self.0.on_disk(&uid, move |disk| data::remove_pod_volume(disk, &place)).await?;
            }
            return Err(CsiError::from(error).into());
        }
        Ok(target)
    }
}

#[async_trait]
impl VolumePlugin for Csi {
    fn identify(&self, uid: &str, spec: &VolumeSpec) -> Option<Identity> {
        let volume = spec.csi.as_deref()?;
        let remount = volume.facts.requires_republish;
        if volume.is_inline() {
            let steps = Steps { remount, ..Steps::default() };
            return Some(Identity { name: VolumeName::new(Plugin::Csi, steps, uid, spec.directory()), steps });
        }
        let steps = Steps { attach: volume.facts.attach_required, device: true, remount };
        Some(shared(Plugin::Csi, &volume.driver, &volume.handle, steps))
    }

    async fn recover(&self, uid: &str, directory: &str) -> Option<Identity> {
        let place = self.0.disk.layout.volume(uid, Plugin::Csi, directory);
        let data = self.0.on_disk(uid, move |_| Ok(PodData::read(&place))).await.ok()??;
        data.is_persistent().then(|| shared(Plugin::Csi, &data.driver_name, &data.volume_handle, RECOVERED))
    }

    async fn recover_devices(&self) -> Vec<StagedDevice> {
        let root = self.0.disk.layout.csi_root();
        let turn = root.display().to_string();
        let found = self.0.on_disk(&turn, move |_| Ok(DeviceData::all(&root))).await.unwrap_or_default();
        let staged = |data: DeviceData| StagedDevice {
            found: shared(Plugin::Csi, &data.driver_name, &data.volume_handle, RECOVERED),
            label: data.label,
        };
        found.into_iter().map(staged).collect()
    }

    async fn attach(&self, spec: &VolumeSpec) -> Result<(), VolumeError> {
        self.wait_attached(Self::volume(spec)?).await
    }

    async fn detach(&self, _: &VolumeName) -> Result<(), VolumeError> {
        // The attach controller does it, once the node says that the volume is not in use.
        self.0.disk.node.status_changed();
        Ok(())
    }

    async fn mount_device(&self, spec: &VolumeSpec) -> Result<(), VolumeError> {
        let volume = Self::volume(spec)?;
        let driver = self.driver(&volume.driver, "attacher.MountDevice failed to create newCsiDriverClient").await?;
        let (staging, directory) = self.device(&volume.driver, &volume.handle);
        let turn = directory.display().to_string();
        let (data, path, kept) = (DeviceData::of(volume), staging.clone(), directory.clone());
        let prepare = move |_: &Disk| {
            let fresh = !path.exists();
            make_directory(&path, 0o750)?;
            data.write(&kept)?;
            Ok(fresh)
        };
        let fresh = self.0.on_disk(&turn, prepare).await?;
        if !driver.can(Capability::StageUnstageVolume) {
            return Ok(());
        }
        let request = request::stage(
            volume,
            &staging,
            self.publish_context(volume).await?,
            self.secret("NodeStageSecretRef", volume.stage_secret.as_ref()).await?,
            &driver.capabilities,
        );
        if let Err(error) = driver.client.stage(request).await {
            if fresh && error.is_final() {
                self.0.on_disk(&turn, move |disk| data::remove_device(disk, &directory)).await?;
            }
            if let (Code::ResourceExhausted, Some(counts)) = (error.code, &self.0.csi.counts) {
                counts.ask(&volume.driver);
            }
            return Err(CsiError::from(error).into());
        }
        Ok(())
    }

    async fn unmount_device(&self, volume: &VolumeName) -> Result<(), VolumeError> {
        let (driver, handle) = parts(volume)?;
        let (staging, directory) = self.device(driver, handle);
        let (turn, path) = (directory.display().to_string(), directory.clone());
        if !self.0.on_disk(&turn, move |_| Ok(path.exists())).await? {
            return Ok(());
        }
        let driver = self.driver(driver, "attacher.UnmountDevice failed to create newCsiDriverClient").await?;
        if driver.can(Capability::StageUnstageVolume) {
            driver.client.unstage(handle, &staging).await.map_err(CsiError::Unstage)?;
        }
        self.0.on_disk(&turn, move |disk| data::remove_device(disk, &directory)).await
    }

    async fn set_up(&self, pod: &Pod, spec: &VolumeSpec) -> Result<MountedVolume, VolumeError> {
        let volume = Self::volume(spec)?;
        volume.check_life()?;
        let driver = self.driver(&volume.driver, "mounter.SetUpAt failed to get CSI client").await?;
        let path = self.publish(pod, spec, &driver).await?;
        if volume.takes_group() && !driver.can(Capability::VolumeMountGroup) {
            let (owned, directory, read_only) = (pod.clone(), spec.directory().to_owned(), spec.read_only);
            let (place, given) = (path.clone(), Arc::new(AtomicU64::default()));
            let counted = Arc::clone(&given);
            let give = move |disk: &Disk| disk.give_once(&owned, Plugin::Csi, &directory, &place, read_only, &counted);
            let giving = self.0.on_disk(&pod.metadata.uid, give);
            told_of(giving, &*self.0.events, pod, &path, &given).await?;
        }
        let group = spec.claim.as_ref().and_then(|claim| claim.group);
        Ok(MountedVolume { path, read_only: spec.read_only, relabel: volume.label.is_none(), group })
    }

    async fn tear_down(&self, uid: &str, directory: &str) -> Result<(), VolumeError> {
        let place = self.0.disk.layout.volume(uid, Plugin::Csi, directory);
        let found = place.clone();
        let data = self.0.on_disk(uid, move |_| Ok(PodData::read(&found))).await?;
        if let Some(data) = data {
            let step = "Unmounter.TearDownAt failed to get CSI client";
            let drivers = &self.0.csi.drivers;
            let client = drivers.client(&data.driver_name);
            let client = client.map_err(|source| CsiError::NoDriver { place: step, source })?;
            let unpublished = client.unpublish(&data.volume_handle, &place.join("mount")).await;
            unpublished.map_err(CsiError::Unpublish)?;
        }
        self.0.on_disk(uid, move |disk| data::remove_pod_volume(disk, &place)).await?;
        self.0.remove(Plugin::Csi, uid, directory).await
    }

    async fn grow(&self, pod: &Pod, spec: &VolumeSpec, mounted: &MountedVolume) -> Result<(), VolumeError> {
        let volume = Self::volume(spec)?;
        let staging = self.device(&volume.driver, &volume.handle).0;
        self.grow_volume(pod, spec, mounted, &staging).await
    }
}
