//! The kinds of volumes that there are, over what [`Disk`] does on the machine.

use std::sync::Arc;

use api_types::core_v1::Pod;
use async_trait::async_trait;
use client::Client;
use sys::exec::Exec;

use super::block::LocalBlock;
use super::claims::{Backing, Resolved};
use super::csi::{Csi, CsiBlock, CsiDeps};
use super::disk::Disk;
use super::error::VolumeError;
use super::host_path;
use super::layout::Plugin;
use super::local::Local;
use super::nfs::Nfs;
use super::payload::{MadeOf, Maker};
use super::plugin::{StagedDevice, VolumePlugin, VolumeSpec};
use super::selinux::Labels;
use super::spec::{Kind, kind_of};
use super::world::{Identity, MountedVolume, Steps, VolumeName};
use super::writer::Payload;
use crate::env::fields::Surroundings;
use crate::file_calls::FileCalls;
use crate::interfaces::Events;
use crate::metrics::KubeletMetrics;

/// What plugins work with.
pub(super) struct Tools {
    pub(super) disk: Arc<Disk>,
    pub(super) calls: FileCalls,
    pub(super) made_of: MadeOf,
    /// None without an API server.
    pub(super) client: Option<Client>,
    pub(super) csi: CsiDeps,
    /// For loop devices, and mounts that take a program.
    pub(super) exec: Arc<dyn Exec>,
    pub(super) events: Arc<dyn Events>,
    pub(super) labels: Labels,
    pub(super) metrics: Arc<KubeletMetrics>,
}

impl Tools {
    /// A call about a pod's volumes on a thread that may block.
    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        uid: &str,
        call: impl FnOnce(&Disk) -> Result<T, VolumeError> + Send + 'static,
    ) -> Result<T, VolumeError> {
        let disk = Arc::clone(&self.disk);
        self.calls.run(uid, move || call(&disk)).await?
    }

    /// Removes the directory of a pod's volume, with what is mounted there.
    pub(super) async fn remove(&self, plugin: Plugin, uid: &str, directory: &str) -> Result<(), VolumeError> {
        let (owned, directory) = (uid.to_owned(), directory.to_owned());
        self.on_disk(uid, move |disk| disk.tear_down_volume(&owned, plugin, &directory)).await
    }
}

/// The plugins of a node.
pub(super) struct Plugins(Vec<(Plugin, Box<dyn VolumePlugin>)>);

impl Plugins {
    pub(super) fn new(tools: &Arc<Tools>) -> Self {
        let files = |plugin: Plugin| Box::new(Files { tools: Arc::clone(tools), plugin }) as Box<dyn VolumePlugin>;
        Self(vec![
            (Plugin::EmptyDir, Box::new(EmptyDir(Arc::clone(tools)))),
            (Plugin::HostPath, Box::new(HostPath(Arc::clone(tools)))),
            (Plugin::Local, Box::new(Local(Arc::clone(tools)))),
            (Plugin::Nfs, Box::new(Nfs(Arc::clone(tools)))),
            (Plugin::Csi, Box::new(Csi(Arc::clone(tools)))),
            (Plugin::LocalBlock, Box::new(LocalBlock(Arc::clone(tools)))),
            (Plugin::CsiBlock, Box::new(CsiBlock::new(tools))),
            (Plugin::ConfigMap, files(Plugin::ConfigMap)),
            (Plugin::Secret, files(Plugin::Secret)),
            (Plugin::DownwardApi, files(Plugin::DownwardApi)),
            (Plugin::Projected, files(Plugin::Projected)),
        ])
    }

    pub(super) fn of(&self, plugin: Plugin) -> Result<&dyn VolumePlugin, VolumeError> {
        let found = self.0.iter().find(|(own, _)| *own == plugin).map(|(_, plugin)| &**plugin);
        found.ok_or(VolumeError::Unmatched)
    }

    /// Which volume a pod wants.
    pub(super) fn identify(&self, uid: &str, spec: &VolumeSpec) -> Identity {
        let own = self.of(spec.plugin).ok().and_then(|own| own.identify(uid, spec));
        own.unwrap_or_else(|| self.by_directory(spec.plugin, uid, spec.directory()))
    }

    /// Which volume an earlier kubelet left in a directory.
    pub(super) async fn recover(&self, plugin: Plugin, uid: &str, directory: &str) -> Identity {
        let own = match self.of(plugin) {
            Ok(own) => own.recover(uid, directory).await,
            Err(_) => None,
        };
        own.unwrap_or_else(|| self.by_directory(plugin, uid, directory))
    }

    /// What earlier kubelets left that pods share.
    pub(super) async fn recover_devices(&self) -> Vec<StagedDevice> {
        let mut all = Vec::new();
        for (_, plugin) in &self.0 {
            all.extend(plugin.recover_devices().await);
        }
        all
    }

    fn by_directory(&self, plugin: Plugin, uid: &str, directory: &str) -> Identity {
        let steps = self.of(plugin).map(VolumePlugin::steps).unwrap_or_default();
        Identity { name: VolumeName::new(plugin, steps, uid, directory), steps }
    }
}

struct EmptyDir(Arc<Tools>);

#[async_trait]
impl VolumePlugin for EmptyDir {
    async fn set_up(&self, pod: &Pod, spec: &VolumeSpec) -> Result<MountedVolume, VolumeError> {
        let (pod, spec) = (pod.clone(), spec.clone());
        let uid = pod.metadata.uid.clone();
        let call = move |disk: &Disk| {
            let path = disk.layout.volume(&pod.metadata.uid, spec.plugin, &spec.volume.name);
            let Kind::EmptyDir(source) = kind_of(&spec.volume) else { return Err(VolumeError::Unmatched) };
            disk.empty_dir(&pod, &spec.volume, source, &path)?;
            Ok(MountedVolume { path, read_only: spec.read_only, relabel: true, group: None })
        };
        self.0.on_disk(&uid, call).await
    }

    async fn tear_down(&self, uid: &str, directory: &str) -> Result<(), VolumeError> {
        self.0.remove(Plugin::EmptyDir, uid, directory).await
    }
}

/// Places of the machine as they are, of a pod or of a claim.
struct HostPath(Arc<Tools>);

#[async_trait]
impl VolumePlugin for HostPath {
    async fn set_up(&self, pod: &Pod, spec: &VolumeSpec) -> Result<MountedVolume, VolumeError> {
        let (source, group) = match &spec.claim {
            Some(Resolved { backing: Backing::HostPath(source), group, .. }) => (source.clone(), *group),
            Some(_) => return Err(VolumeError::Unmatched),
            None => {
                let Kind::HostPath(source) = kind_of(&spec.volume) else { return Err(VolumeError::Unmatched) };
                (source.clone(), None)
            }
        };
        let read_only = spec.read_only;
        let call = move |_: &Disk| {
            host_path::check(&source)?;
            Ok(MountedVolume { path: source.path.into(), read_only, relabel: false, group })
        };
        self.0.on_disk(&pod.metadata.uid, call).await
    }

    async fn tear_down(&self, _: &str, _: &str) -> Result<(), VolumeError> {
        Ok(())
    }
}

/// Files made from objects.
struct Files {
    tools: Arc<Tools>,
    plugin: Plugin,
}

impl Files {
    async fn payload(&self, pod: &Pod, spec: &VolumeSpec) -> Result<Payload, VolumeError> {
        let allocatable = self.tools.disk.node.node().map(|node| node.status.allocatable.clone()).unwrap_or_default();
        let around = Surroundings { allocatable, ..Surroundings::default() };
        let maker = Maker { pod, made_of: &self.tools.made_of, around: &around };
        match kind_of(&spec.volume) {
            Kind::ConfigMap(source) => Ok(maker.config_map(source).await?),
            Kind::Secret(source) => Ok(maker.secret(source).await?),
            Kind::Downward(source) => Ok(maker.downward(source)?),
            Kind::Projected(source) => Ok(maker.projected(&spec.volume.name, source).await?),
            _ => Err(VolumeError::Unmatched),
        }
    }
}

#[async_trait]
impl VolumePlugin for Files {
    fn steps(&self) -> Steps {
        Steps { remount: true, ..Steps::default() }
    }

    async fn set_up(&self, pod: &Pod, spec: &VolumeSpec) -> Result<MountedVolume, VolumeError> {
        let payload = self.payload(pod, spec).await?;
        let (pod, spec) = (pod.clone(), spec.clone());
        let uid = pod.metadata.uid.clone();
        let call = move |disk: &Disk| {
            let path = disk.layout.volume(&pod.metadata.uid, spec.plugin, &spec.volume.name);
            disk.files(&pod, &spec.volume, &path, &payload)?;
            Ok(MountedVolume { path, read_only: spec.read_only, relabel: true, group: None })
        };
        self.tools.on_disk(&uid, call).await
    }

    async fn tear_down(&self, uid: &str, directory: &str) -> Result<(), VolumeError> {
        self.tools.remove(self.plugin, uid, directory).await
    }
}

#[cfg(test)]
#[path = "plugin_contract_tests.rs"]
pub(super) mod contract_tests;
