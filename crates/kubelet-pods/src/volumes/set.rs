//! All volumes of a node's pods: what is wanted is found out here, [`super::reconcile`] says which step is next, and the
//! volume's plugin takes it.
//!
//! A pod's own worker has the steps of its volumes taken; volumes that pods share are gone about one step at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Pod, Volume};
use async_trait::async_trait;
use base::{SharedClock, SharedRng};
use client::Client;
use kubelet_node::turns::Turns;
use parking_lot::Mutex;
use sys::exec::Exec;
use sys::mounts::Mounts;
use tokio::sync::OnceCell;

use super::claims::{self, Backing, ClaimError, Resolved};
use super::csi::{Csi, CsiBlock, CsiDeps, CsiVolume, VolumeReport};
use super::disk::Disk;
use super::error::VolumeError;
use super::failure::{Failure, Unusable, check_mode, report};
use super::layout::{Layout, Plugin};
use super::payload::MadeOf;
use super::plugin::{StagedDevice, VolumeSpec};
use super::plugins::{Plugins, Tools};
use super::reconcile::{Operation, Step, plan};
use super::scratch_quota::ScratchQuotas;
use super::selinux::{LabelError, Labelled, Labelling, Labels};
use super::spec::{Kind, kind_of, used};
use super::world::{
    ActualStateOfWorld, DesiredStateOfWorld, DesiredVolume, Done, Identity, MountedVolume, VolumeName, counts,
};
use crate::file_calls::FileCalls;
use crate::interfaces::{Events, MountError, NodeView, SideError, Volumes};
use crate::metrics::KubeletMetrics;
use crate::objects::Objects;
use crate::pod_certificates::PodCertificates;
use crate::runtime::back_off::KeyedBackOff;
use crate::tokens::Tokens;
use crate::trust_bundles::TrustBundles;

/// How long the removal of what pods left behind may hold up the sync loop; the rest is left to the next time.
const ORPHANS_LIMIT: Duration = Duration::from_secs(5);
/// How long a pod's end may be held up by devices that nobody needs any more.
const DEVICES_LIMIT: Duration = Duration::from_secs(5);
/// A step that failed is tried again after this, then after twice as long, up to the second.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(122);

/// What volumes are made with.
pub struct VolumeDeps {
    pub layout: Layout,
    pub mounts: Arc<dyn Mounts>,
    pub objects: Arc<dyn Objects>,
    pub client: Option<Client>,
    pub node: Arc<dyn NodeView>,
    pub clock: SharedClock,
    pub rng: SharedRng,
    pub csi: CsiDeps,
    /// For loop devices, which keep block devices open.
    pub exec: Arc<dyn Exec>,
    pub events: Arc<dyn Events>,
    /// What files of containers are labelled with on this machine.
    pub labels: Labels,
    /// None while the feature is off.
    pub trust_bundles: Option<TrustBundles>,
    /// None while the feature is off.
    pub quotas: Option<Arc<ScratchQuotas>>,
    /// None while the feature is off, or without an API server.
    pub certificates: Option<PodCertificates>,
    pub metrics: Arc<KubeletMetrics>,
}

/// The volumes of the pods of a node.
pub struct VolumeSet {
    tools: Arc<Tools>,
    plugins: Plugins,
    worlds: Mutex<Worlds>,
    /// Whether what an earlier kubelet left has been looked for.
    reconstructed: OnceCell<()>,
    /// Steps of one volume take turns.
    turns: Turns,
    /// How long a step waits after it failed, by step, volume and pod.
    back_off: KeyedBackOff,
}

#[derive(Default)]
struct Worlds {
    desired: DesiredStateOfWorld,
    actual: ActualStateOfWorld,
}

/// What calls about the list of all pods take turns by; no uid.
const ALL_PODS: &str = "/pods";

/// What a pod's volumes are made from, by name; and why that is not known of some.
#[derive(Default)]
struct Processed {
    specs: BTreeMap<VolumeName, VolumeSpec>,
    desired: BTreeMap<String, DesiredVolume>,
    unprocessed: BTreeMap<String, String>,
    failed: BTreeMap<String, Failure>,
}

impl VolumeSet {
    pub fn new(deps: VolumeDeps) -> Arc<Self> {
        let VolumeDeps { layout, mounts, objects, client, node, clock, rng, csi, exec, .. } = deps;
        let VolumeDeps { events, labels, quotas, trust_bundles, certificates, metrics, .. } = deps;
        let tokens = client.as_ref().map(Tokens::new);
        let disk = Arc::new(Disk { layout, mounts, node, clock, rng, quotas });
        let calls = FileCalls::default();
        let made_of = MadeOf { objects, tokens, trust_bundles, certificates };
        let tools = Arc::new(Tools { disk, calls, made_of, client, csi, exec, events, labels, metrics });
        Arc::new(Self {
            plugins: Plugins::new(&tools),
            tools,
            worlds: Mutex::default(),
            reconstructed: OnceCell::new(),
            turns: Turns::default(),
            back_off: KeyedBackOff::new(FIRST_RETRY, LAST_RETRY, LAST_RETRY * 2),
        })
    }

    fn is_attached(&self, name: &VolumeName) -> bool {
        self.worlds.lock().actual.volumes.get(name).is_some_and(|volume| volume.attached == Done::Yes)
    }

    /// Where a pod's volume is, once it is in place.
    pub fn mounted(&self, uid: &str, volume: &str) -> Option<MountedVolume> {
        let worlds = self.worlds.lock();
        let name = &worlds.desired.get(uid, volume)?.name;
        worlds.actual.pod(name, uid)?.mounted.clone()
    }

    pub fn layout(&self) -> &Layout {
        &self.tools.disk.layout
    }

    pub fn mounts(&self) -> &dyn Mounts {
        self.tools.disk.mounts.as_ref()
    }

    /// For calls that go into volumes and may hang there.
    pub fn calls(&self) -> &FileCalls {
        &self.tools.calls
    }

    /// Takes over what an earlier kubelet left on disk.
    async fn reconstruct(&self) {
        let found = || async {
            let found = self.tools.on_disk(ALL_PODS, |disk| Ok(disk.reconstruct())).await.unwrap_or_default();
            let devices = self.plugins.recover_devices().await;
            let mut volumes = Vec::new();
            for (uid, plugin, directory) in found {
                volumes.push((self.plugins.recover(plugin, &uid, &directory).await, uid, directory));
            }
            self.tools.metrics.reconstructed(volumes.len());
            let actual = &mut self.worlds.lock().actual;
            for device in devices {
                let StagedDevice { found, label } = device;
                actual.reconstruct_device(found).label = label;
            }
            volumes.into_iter().for_each(|(found, uid, directory)| actual.reconstruct(found, uid, directory));
        };
        self.reconstructed.get_or_init(found).await;
    }

    /// Finds out what a pod wants.
    async fn process(&self, pod: &Pod) -> Processed {
        let mut out = Processed::default();
        for volume in used(pod) {
            let mut spec = match self.spec(pod, volume).await {
                Ok(Some(spec)) => spec,
                Ok(None) => continue,
                Err(Unusable::Unprocessed(error)) => {
                    out.unprocessed.insert(volume.name.clone(), error.to_string());
                    continue;
                }
                Err(Unusable::Failed(failure)) => {
                    out.failed.insert(volume.name.clone(), failure);
                    continue;
                }
            };
            let directory = spec.directory().to_owned();
            let Identity { name, steps } = self.plugins.identify(&pod.metadata.uid, &spec);
            let label = match self.label(pod, &name, &mut spec) {
                Ok(label) => label,
                Err(error) => {
                    out.unprocessed.insert(volume.name.clone(), error.to_string());
                    continue;
                }
            };
            out.specs.insert(name.clone(), spec);
            out.desired.insert(volume.name.clone(), DesiredVolume { name, steps, directory, label });
        }
        out
    }

    /// What a volume is made from; `None` for what only the runtime mounts.
    async fn spec(&self, pod: &Pod, volume: &Volume) -> Result<Option<VolumeSpec>, Unusable> {
        let kind = kind_of(volume);
        let mut csi = None;
        let (plugin, claim) = match kind {
            Kind::Image => return Ok(None),
            Kind::Refused(why) => return Err(Unusable::refused(volume.name.clone(), false, why)),
            Kind::Unmatched => return Err(ClaimError::NoPlugin { volume: volume.name.clone() }.into()),
            Kind::Claim { name, ephemeral, .. } => {
                let claim = self.claim(pod, volume, name, ephemeral).await?;
                check_mode(pod, volume, claim.block)?;
                let plugin = match (&claim.backing, claim.block) {
                    (Backing::HostPath(_), _) => Plugin::HostPath,
                    (Backing::Local(_), false) => Plugin::Local,
                    (Backing::Local(_), true) => Plugin::LocalBlock,
                    (Backing::Nfs(_), _) => Plugin::Nfs,
                    (Backing::Csi(volume), block) => {
                        csi = Some(self.with_facts(CsiVolume::clone(volume)).await?);
                        if block { Plugin::CsiBlock } else { Plugin::Csi }
                    }
                };
                (plugin, Some(claim))
            }
            Kind::Csi(source) => {
                csi = Some(self.with_facts(CsiVolume::inline(pod, &volume.name, source)).await?);
                (Plugin::Csi, None)
            }
            Kind::Nfs(_) => (Plugin::Nfs, None),
            Kind::EmptyDir(_) => (Plugin::EmptyDir, None),
            Kind::HostPath(_) => (Plugin::HostPath, None),
            Kind::ConfigMap(_) => (Plugin::ConfigMap, None),
            Kind::Secret(_) => (Plugin::Secret, None),
            Kind::Downward(_) => (Plugin::DownwardApi, None),
            Kind::Projected(_) => (Plugin::Projected, None),
        };
        Ok(Some(VolumeSpec { plugin, volume: volume.clone(), claim, csi, read_only: kind.is_read_only() }))
    }

    /// The label that a pod wants a volume to have, which is mounted with it where it can be.
    fn label(&self, pod: &Pod, name: &VolumeName, spec: &mut VolumeSpec) -> Result<Option<Labelled>, LabelError> {
        if self.tools.labels.are_none() {
            return Ok(None);
        }
        let uid = &pod.metadata.uid;
        let labelling = {
            let Worlds { desired, actual } = &*self.worlds.lock();
            Labelling {
                labels: &self.tools.labels,
                metrics: &self.tools.metrics,
                other: desired.label_beside(uid, name).cloned(),
                staged: actual.staged_label(name).map(ToOwned::to_owned),
            }
        };
        labelling.of(pod, spec)
    }

    /// A driver's volume with what the cluster knows of the driver.
    async fn with_facts(&self, volume: CsiVolume) -> Result<Box<CsiVolume>, ClaimError> {
        let facts = self.tools.csi.facts(volume.driver()).await?;
        Ok(Box::new(volume.with(facts)))
    }

    async fn claim(&self, pod: &Pod, volume: &Volume, name: &str, ephemeral: bool) -> Result<Resolved, ClaimError> {
        let client = self.tools.client.as_ref().ok_or(ClaimError::NoClient)?;
        let name = claims::claim_name(pod, &volume.name, ephemeral, name);
        let node = self.tools.disk.node.node();
        claims::resolve(client, pod, &name, ephemeral, node.as_deref()).await
    }

    /// Notes what a pod wants, and that content which follows objects is to be looked after.
    fn want(&self, uid: &str, desired: BTreeMap<String, DesiredVolume>) {
        let mut worlds = self.worlds.lock();
        for volume in desired.values().filter(|volume| volume.steps.remount) {
            if let Some(mount) = worlds.actual.pod_mut(&volume.name, uid) {
                mount.remount = true;
            }
        }
        let new = desired.iter().filter(|(name, _)| worlds.desired.get(uid, name).is_none());
        new.filter_map(|(_, volume)| volume.label.as_ref()).for_each(|label| label.admit(&self.tools.metrics));
        // Of what could not be found out this time, the pod still wants what it wanted.
        worlds.desired.pods.entry(uid.to_owned()).or_default().extend(desired);
    }

    /// The step that is due first, among those that are asked for: one that failed has to wait.
    fn next(&self, asked: impl Fn(&Operation) -> bool) -> Option<Operation> {
        self.next_of(&|_| true, asked)
    }

    /// The same for a few volumes, of which alone the plan is made.
    fn next_of(&self, is_meant: &dyn Fn(&VolumeName) -> bool, asked: impl Fn(&Operation) -> bool) -> Option<Operation> {
        let planned = {
            let worlds = self.worlds.lock();
            plan(&worlds.desired, &worlds.actual, is_meant)
        };
        planned.into_iter().filter(|operation| asked(operation)).min_by_key(|operation| self.wait(operation))
    }

    /// How long a step has to wait because it failed; zero if it did not.
    fn wait(&self, operation: &Operation) -> Duration {
        let left = self.back_off.remaining_since_step(&operation.to_string(), &*self.tools.disk.clock);
        left.unwrap_or_default()
    }

    /// Takes a step, unless it was taken meanwhile. Waits where it failed a short while ago.
    async fn run(&self, operation: &Operation, wanted: Option<(&Pod, &VolumeSpec)>) -> Result<(), VolumeError> {
        tokio::time::sleep(self.wait(operation)).await;
        let key = operation.to_string();
        let _turn = self.turns.of(&operation.volume.to_string()).lock_owned().await;
        if self.next_of(&|name| *name == operation.volume, |due| due == operation).is_none() {
            return Ok(());
        }
        let directory = self.begin(operation, wanted.map(|(_, spec)| spec));
        let began = tokio::time::Instant::now();
        let taken = self.take(operation, &directory, wanted).await;
        if let Some(name) = operation.step.counted_as(operation.volume.plugin.is_block(), taken.is_ok()) {
            let plugin = operation.volume.plugin_name();
            self.tools.metrics.storage_operation(&plugin, name, taken.is_ok(), began.elapsed());
        }
        match taken {
            Ok(mounted) => {
                self.back_off.forget(&key);
                self.finish(operation, mounted);
                Ok(())
            }
            Err(error) => {
                self.back_off.step(&key, None, &*self.tools.disk.clock);
                tracing::debug!(operation = key, %error, retry_after = ?self.back_off.delay(&key), "A volume operation failed");
                Err(error)
            }
        }
    }

    /// Notes that a step is being taken: who breaks it off leaves it uncertain. Returns the volume's directory.
    fn begin(&self, operation: &Operation, wanted: Option<&VolumeSpec>) -> String {
        let mut worlds = self.worlds.lock();
        let Worlds { desired, actual } = &mut *worlds;
        let mount = actual.pod(&operation.volume, &operation.uid);
        let in_place = mount.is_some_and(|mount| mount.done == Done::Yes);
        let known = mount.map(|mount| mount.directory.clone());
        let directory = desired.directory(&operation.uid, &operation.volume).or(known).unwrap_or_default();
        // What is in place stays so while its content is looked after.
        if !(operation.step == Step::SetUp && in_place) {
            actual.note(operation, Done::Uncertain);
        }
        if let (Step::MountDevice, Some(volume)) = (operation.step, actual.volumes.get_mut(&operation.volume)) {
            volume.label = wanted.and_then(|spec| spec.csi.as_deref()?.label.clone()).unwrap_or_default();
        }
        if let Some(mount) = actual.pod_mut(&operation.volume, &operation.uid) {
            mount.directory.clone_from(&directory);
        }
        directory
    }

    async fn take(
        &self,
        operation: &Operation,
        directory: &str,
        wanted: Option<(&Pod, &VolumeSpec)>,
    ) -> Result<Option<MountedVolume>, VolumeError> {
        let plugin = self.plugins.of(operation.volume.plugin)?;
        let (volume, uid) = (&operation.volume, &operation.uid);
        let asked = || wanted.ok_or(VolumeError::Unprocessed);
        match operation.step {
            Step::Attach => plugin.attach(asked()?.1).await?,
            Step::MountDevice => plugin.mount_device(asked()?.1).await?,
            Step::SetUp => {
                let (pod, spec) = asked()?;
                return plugin.set_up(pod, spec).await.map(Some);
            }
            Step::TearDown => plugin.tear_down(uid, directory).await?,
            Step::UnmountDevice => plugin.unmount_device(volume).await?,
            Step::Detach => plugin.detach(volume).await?,
        }
        Ok(None)
    }

    fn finish(&self, operation: &Operation, mounted: Option<MountedVolume>) {
        let mut worlds = self.worlds.lock();
        worlds.actual.note(operation, if operation.step.brings() { Done::Yes } else { Done::No });
        if let Some(mount) = worlds.actual.pod_mut(&operation.volume, &operation.uid) {
            (mount.mounted, mount.remount) = (mounted, false);
        }
    }

    /// Volumes that the node may not lose yet: those that a controller attaches and that are wanted, or attached and not
    /// let go of. `None` until it is known what an earlier kubelet had.
    pub fn volumes_in_use(&self) -> Option<Vec<String>> {
        self.reconstructed.get()?;
        let worlds = self.worlds.lock();
        let wanted = worlds.desired.volumes(&|_| true);
        let attached = worlds.actual.volumes.iter().filter(|(_, volume)| volume.attached != Done::No);
        let attached = attached.map(|(name, _)| name).filter(|name| !wanted.contains_key(*name));
        let used = wanted.iter().filter(|(_, users)| users.steps.attach).map(|(name, _)| *name).chain(attached);
        Some(used.map(ToString::to_string).collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Has volumes grow that are larger than their claims know; pods go on meanwhile as they are.
    async fn grow(&self, pod: &Pod, specs: &BTreeMap<VolumeName, VolumeSpec>) {
        for (name, spec) in specs {
            let mounted = self.worlds.lock().actual.pod(name, &pod.metadata.uid).and_then(|it| it.mounted.clone());
            let (Some(mounted), Ok(plugin)) = (mounted, self.plugins.of(spec.plugin)) else { continue };
            let (key, clock) = (format!("grow {name}"), &*self.tools.disk.clock);
            if self.back_off.remaining_since_step(&key, clock).is_some() {
                continue;
            }
            let _turn = self.turns.of(&name.to_string()).lock_owned().await;
            match plugin.grow(pod, spec, &mounted).await {
                Ok(()) => self.back_off.forget(&key),
                Err(error) => {
                    self.back_off.step(&key, None, clock);
                    tracing::warn!(volume = %name, %error, "Growing a volume failed");
                }
            }
        }
    }

    pub(super) fn metrics(&self) -> &KubeletMetrics {
        &self.tools.metrics
    }

    /// The driver of a volume, and how full it says that it is, where it is one of a driver.
    pub(super) async fn driver_usage(&self, uid: &str, volume: &str) -> Option<(String, Option<VolumeReport>)> {
        let (name, path) = {
            let worlds = self.worlds.lock();
            let name = worlds.desired.get(uid, volume)?.name.clone();
            let path = worlds.actual.pod(&name, uid)?.mounted.as_ref()?.path.clone();
            (name, path)
        };
        let csi = Csi(Arc::clone(&self.tools));
        let driver = || name.id.split_once('^').map_or("csi", |(driver, _)| driver).to_owned();
        match name.plugin {
            Plugin::Csi => Some((driver(), csi.usage_mounted(&name, &path).await)),
            Plugin::CsiBlock => Some((driver(), CsiBlock::usage(&csi, &name, path).await)),
            // Of a device itself nobody knows what is on it.
            Plugin::LocalBlock => Some(("block".to_owned(), None)),
            _ => None,
        }
    }

    /// Takes every step that brings a pod its volumes; one that failed is not tried again this time.
    async fn bring(&self, pod: &Pod, specs: &BTreeMap<VolumeName, VolumeSpec>) -> BTreeMap<VolumeName, Failure> {
        let uid = &pod.metadata.uid;
        let mut failed: BTreeMap<VolumeName, Failure> = BTreeMap::new();
        loop {
            let own = |due: &Operation| due.uid.is_empty() || due.uid == *uid;
            let is_meant = |name: &VolumeName| specs.contains_key(name) && !failed.contains_key(name);
            let due = |due: &Operation| due.step.brings() && own(due);
            let Some(operation) = self.next_of(&is_meant, due) else { return failed };
            let wanted = specs.get(&operation.volume).map(|spec| (pod, spec));
            if let Err(error) = self.run(&operation, wanted).await {
                let volume = specs.get(&operation.volume).map_or_else(String::new, |spec| spec.directory().to_owned());
                let block = operation.volume.plugin.is_block();
                let failure = Failure { volume, block, step: operation.step.name(block), error: error.into() };
                failed.insert(operation.volume, failure);
            }
        }
    }

    /// Takes devices and attachments away that nobody needs any more, as far as that can be done now.
    async fn let_go(&self) {
        let mut tried: BTreeSet<VolumeName> = BTreeSet::new();
        while self.worlds.lock().actual.has_unused() {
            let due = |due: &Operation| {
                matches!(due.step, Step::UnmountDevice | Step::Detach)
                    && !tried.contains(&due.volume)
                    && self.wait(due).is_zero()
            };
            let Some(operation) = self.next(due) else { return };
            if let Err(error) = self.run(&operation, None).await {
                tracing::warn!(volume = %operation.volume, step = operation.step.name(operation.volume.plugin.is_block()), %error, "Letting go of a volume failed");
                tried.insert(operation.volume);
            }
        }
    }

    fn forget(&self, uid: &str) {
        self.worlds.lock().actual.forget_pod(uid);
        if let Some(tokens) = &self.tools.made_of.tokens {
            tokens.forget(uid);
        }
        if let Some(certificates) = &self.tools.made_of.certificates {
            certificates.forget(uid);
        }
    }

    /// Removes what is left of one pod that nobody knows; `None` where that is going on already.
    async fn remove_orphan(&self, uid: &str) -> Option<Result<(), VolumeError>> {
        // Whoever brought a volume into place is told, before what is left is removed. Where something hangs already, the
        // others do not wait for it.
        self.tools.calls.run_if_idle(uid, || ()).await?.ok()?;
        let due = |due: &Operation| due.step == Step::TearDown && due.uid == uid;
        while let Some(operation) = self.next(due) {
            if !self.wait(&operation).is_zero() {
                return None;
            }
            if let Err(error) = self.run(&operation, None).await {
                return Some(Err(error));
            }
        }
        let (disk, owned) = (Arc::clone(&self.tools.disk), uid.to_owned());
        let removed = self.tools.calls.run_if_idle(uid, move || disk.remove_pod(&owned)).await?;
        Some(removed.map_err(VolumeError::from).and_then(|removed| removed).map(|()| {
            self.worlds.lock().desired.pods.remove(uid);
            self.forget(uid);
        }))
    }
}

#[async_trait]
impl Volumes for VolumeSet {
    async fn mount(&self, pod: &Pod) -> Result<(), MountError> {
        self.reconstruct().await;
        let uid = &pod.metadata.uid;
        let Processed { specs, desired, unprocessed, mut failed } = self.process(pod).await;
        let owned = uid.clone();
        let made = self.tools.on_disk(uid, move |disk| disk.directories(&owned)).await;
        made.map_err(|error| MountError::Directories(error.to_string()))?;
        self.want(uid, desired.clone());
        let steps = self.bring(pod, &specs).await;
        for (name, volume) in desired {
            failed.extend(steps.get(&volume.name).map(|failure| (name, failure.clone())));
        }
        self.grow(pod, &specs).await;
        let messages = report(&unprocessed, &failed);
        if messages.is_empty() {
            return Ok(());
        }
        let stale = unprocessed.keys().chain(failed.keys()).all(|name| self.mounted(uid, name).is_some());
        Err(if stale { MountError::Stale(messages) } else { MountError::Volumes(messages) })
    }

    async fn unmount(&self, uid: &str) -> Result<(), SideError> {
        self.reconstruct().await;
        self.worlds.lock().desired.pods.remove(uid);
        let owned = uid.to_owned();
        self.tools.on_disk(uid, move |disk| disk.clean_sub_paths(&owned)).await?;
        while let Some(operation) = self.next(|due| due.step == Step::TearDown && due.uid == uid) {
            self.run(&operation, None).await?;
        }
        // What no plugin knows of goes with the directory.
        let owned = uid.to_owned();
        self.tools.on_disk(uid, move |disk| disk.tear_down(&owned)).await?;
        self.forget(uid);
        // The pod need not wait for what it shared with others; housekeeping goes on with it.
        let _ = tokio::time::timeout(DEVICES_LIMIT, self.let_go()).await;
        Ok(())
    }

    async fn clean_orphans(&self, keep: &BTreeSet<String>) {
        let cleaned = async {
            self.reconstruct().await;
            let disk = Arc::clone(&self.tools.disk);
            // Where the list itself hangs, so does everything else that is known of pods.
            let Some(Ok(Ok(found))) = self.calls().run_if_idle(ALL_PODS, move || disk.pods()).await else { return };
            let (mut orphans, mut left) = (0.0, 0.0);
            for uid in found.into_iter().filter(|uid| !keep.contains(uid)) {
                orphans += 1.0;
                match self.remove_orphan(&uid).await {
                    None => left += 1.0,
                    Some(Ok(())) => tracing::info!(uid, "Cleaned up orphaned pod volumes dir"),
                    Some(Err(error)) => {
                        left += 1.0;
                        tracing::warn!(uid, %error, "An orphaned pod's directory could not be removed");
                    }
                }
            }
            self.tools.metrics.orphans_cleaned.with(&[]).set(orphans);
            self.tools.metrics.orphans_left.with(&[]).set(left);
            self.let_go().await;
            self.back_off.collect(self.tools.disk.clock.monotonic());
        };
        if tokio::time::timeout(ORPHANS_LIMIT, cleaned).await.is_err() {
            tracing::warn!("Removing the directories of orphaned pods takes long; it goes on beside other work");
        }
    }

    async fn at_limit(&self, pod: &Pod) -> Option<String> {
        let Processed { specs, desired, unprocessed, .. } = self.process(pod).await;
        let uid = &pod.metadata.uid;
        let names = |is_meant: &dyn Fn(&DesiredVolume) -> bool| {
            let meant = desired.iter().filter(|(_, volume)| is_meant(volume)).map(|(name, _)| name.as_str());
            meant.collect::<Vec<_>>().join(" ")
        };
        let is_unattached = |volume: &DesiredVolume| volume.steps.attach && !self.is_attached(&volume.name);
        let csi = Csi(Arc::clone(&self.tools));
        let unattached = desired.values().filter(|volume| is_unattached(volume));
        let mut too_many = false;
        for volume in unattached.filter_map(|volume| specs.get(&volume.name)?.csi.as_deref()) {
            too_many |= csi.is_too_many(volume).await;
        }
        too_many.then(|| {
            let is_unmounted = |volume: &DesiredVolume| {
                let worlds = self.worlds.lock();
                worlds.actual.pod(&volume.name, uid).is_none_or(|mount| mount.done != Done::Yes)
            };
            format!(
                "Node has reached its volume attachment limit, rejecting pod. unmounted volumes=[{}], unattached \
                 volumes=[{}], failed to process volumes=[{}]: context deadline exceeded",
                names(&is_unmounted),
                names(&is_unattached),
                unprocessed.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
            )
        })
    }

    fn show_metrics(&self) {
        let metrics = &self.tools.metrics;
        let counts = {
            let Worlds { desired, actual } = &*self.worlds.lock();
            counts(desired, actual)
        };
        metrics.show_volumes(&counts);
        if let Some(certificates) = &self.tools.made_of.certificates {
            metrics.show_certificates(&certificates.states());
        }
    }

    fn supplemental_groups(&self, pod: &Pod) -> Vec<i64> {
        let worlds = self.worlds.lock();
        let mounts = worlds.actual.volumes.values().filter_map(|volume| volume.pods.get(&pod.metadata.uid));
        let groups = mounts.filter_map(|mount| mount.mounted.as_ref()?.group);
        groups.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

#[cfg(test)]
#[path = "conformance_tests.rs"]
mod conformance_tests;
#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
