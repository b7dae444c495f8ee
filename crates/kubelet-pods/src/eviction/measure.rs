//! Measuring the machine: groups, file systems, the runtime's figures, and walks through pods' directories.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_types::core_v1::Pod;
use async_trait::async_trait;
use base::SharedClock;
use node_api::cri::v1::{ContainerStats, FilesystemUsage, LinuxPodSandboxStats};
use node_api::cri::{CriError, Images, Runtime};
use parking_lot::Mutex;
use sys::cgroups::Usage;
use sys::proc::Proc;
use tokio::time::Instant;

use super::usage::{
    ContainerUse, FileSystems, Gauge, Observation, Observations, Parts, PodUse, PodUses, Room, Snapshot, VolumeUse,
};
use crate::metrics::KubeletMetrics;
use crate::node::filesystem;
use crate::resources::thresholds::Signal;
use crate::resources::{PodGroups, node_usage};
use crate::runtime::figures::{Figures, Source};
use crate::runtime::labels;
use crate::runtime::sandbox::log_directory;
use crate::volumes::{Layout, Plugin, ScratchQuotas};

/// Entries looked at in one walk; what lies beyond is not counted.
const MAX_ENTRIES: usize = 1_000_000;
/// Bytes of a block, as the kernel counts them.
const BLOCK: u64 = 512;

/// What lies on the disk for a pod.
#[derive(Debug, Clone, Default)]
struct Disk {
    logs: BTreeMap<String, Room>,
    volumes: Vec<VolumeUse>,
    other: Room,
}

/// The machine's gauge.
pub struct Measure {
    pub runtime: Arc<dyn Runtime>,
    pub images: Arc<dyn Images>,
    pub groups: Arc<PodGroups>,
    pub proc: Proc,
    pub layout: Layout,
    pub pod_logs_dir: PathBuf,
    /// The memory of all pods together; `None` where they are not limited.
    pub pods_memory: Option<i64>,
    /// `volumeStatsAggPeriod`: how often directories are walked.
    pub walk_period: Duration,
    /// Gate `KubeletSeparateDiskGC` (KEP-4191): images may lie on another disk than what containers write. Without it nothing
    /// is judged where they do.
    pub separate_disks: bool,
    /// Who counts scratch space; `None` while the feature is off.
    pub quotas: Option<Arc<ScratchQuotas>>,
    /// Who tells what pods as a whole use.
    pub source: Source,
    pub metrics: Arc<KubeletMetrics>,
    pub clock: SharedClock,
    pub walked: Mutex<HashMap<String, (SystemTime, Walked)>>,
}

/// What was found at a walk, opaque to those who only make a [`Measure`].
#[derive(Debug, Clone, Default)]
pub struct Walked(Disk);

#[async_trait]
impl Gauge for Measure {
    async fn node(&self) -> Result<Snapshot, CriError> {
        let info = self.images.image_fs_info().await?;
        let at = self.clock.wall();
        let place = |list: &[FilesystemUsage]| {
            list.first().and_then(|usage| usage.fs_id.as_ref()).map(|id| PathBuf::from(&id.mountpoint))
        };
        let root = self.layout.root().to_owned();
        let of_images = place(&info.image_filesystems);
        let images = of_images.clone().unwrap_or_else(|| root.clone());
        let containers = place(&info.container_filesystems).unwrap_or_else(|| images.clone());
        let mut observations = Observations::new();
        self.put_memory(&mut observations, at);
        let room = [
            (&root, Signal::NodefsAvailable, Signal::NodefsInodesFree),
            (&images, Signal::ImagefsAvailable, Signal::ImagefsInodesFree),
            (&containers, Signal::ContainerfsAvailable, Signal::ContainerfsInodesFree),
        ];
        for (path, bytes, inodes) in room {
            let Ok(fs) = filesystem(path) else { continue };
            put(&mut observations, bytes, fs.available, fs.capacity, at);
            put(&mut observations, inodes, fs.inodes_free, fs.inodes, at);
        }
        if let Ok((threads, most)) = self.proc.threads() {
            put(&mut observations, Signal::PidAvailable, most.saturating_sub(threads), most, at);
        }
        let is_measured = |signal| observations.contains_key(&signal);
        let all_measured = is_measured(Signal::NodefsAvailable) && is_measured(Signal::ImagefsAvailable);
        let layout = file_systems(&root, &images, &containers, self.separate_disks);
        let layout = layout.filter(|_| of_images.is_some() && all_measured);
        Ok(Snapshot { observations, layout })
    }

    async fn pods(&self, pods: &[Arc<Pod>], parts: Parts) -> Result<PodUses, CriError> {
        let figures = Figures::ask(&*self.runtime, self.source).await?;
        let mut by_pod: HashMap<&str, Vec<&ContainerStats>> = HashMap::new();
        for one in &figures.containers {
            let uid = one.attributes.as_ref().and_then(|attributes| attributes.labels.get(labels::POD_UID));
            if let Some(uid) = uid {
                by_pod.entry(uid).or_default().push(one);
            }
        }
        let mut uses = PodUses::new();
        for pod in pods {
            let uid = &pod.metadata.uid;
            let Some(stats) = by_pod.get(uid.as_str()) else { continue };
            let disk = match parts {
                Parts::Running => Disk::default(),
                Parts::All => self.disk(pod).await,
            };
            let group = || self.groups.cgroups().usage(&self.groups.group(pod)).ok();
            uses.insert(uid.clone(), pod_use(figures.pod(uid), group, stats, disk));
        }
        Ok(uses)
    }
}

impl Measure {
    fn put_memory(&self, observations: &mut Observations, at: SystemTime) {
        let cgroups = self.groups.cgroups();
        if let (Some(usage), Ok(memory)) = (node_usage(cgroups, &self.proc), self.proc.memory()) {
            let free = memory.total_bytes.saturating_sub(usage.working_set_bytes);
            put(observations, Signal::MemoryAvailable, free, memory.total_bytes, at);
        }
        let limit = self.pods_memory.and_then(|limit| u64::try_from(limit).ok());
        if let (Some(limit), Ok(usage)) = (limit, cgroups.usage(&self.groups.all_pods())) {
            let free = limit.saturating_sub(usage.working_set_bytes);
            put(observations, Signal::AllocatableMemoryAvailable, free, limit, at);
        }
    }

    /// What lies on the disk, from a walk that is not too old.
    async fn disk(&self, pod: &Arc<Pod>) -> Disk {
        let (uid, now) = (&pod.metadata.uid, self.clock.wall());
        let is_fresh = |at: SystemTime| now.duration_since(at).unwrap_or_default() < self.walk_period;
        if let Some((_, found)) = self.walked.lock().get(uid).filter(|(at, _)| is_fresh(*at)) {
            return found.0.clone();
        }
        let (layout, logs, own) = (self.layout.clone(), log_directory(&self.pod_logs_dir, pod), Arc::clone(pod));
        let (quotas, metrics) = (self.quotas.clone(), Arc::clone(&self.metrics));
        let walk = move || walk(&layout, &logs, &own, quotas.as_deref(), &metrics);
        let found = tokio::task::spawn_blocking(walk).await.unwrap_or_default();
        let mut walked = self.walked.lock();
        // Of pods that are gone nobody asks again.
        walked.retain(|_, (at, _)| is_fresh(*at));
        walked.insert(uid.clone(), (now, Walked(found.clone())));
        found
    }
}

/// What a pod uses: as a whole by the runtime's word where it has told, otherwise by that of its control group.
fn pod_use(
    told: Option<&LinuxPodSandboxStats>,
    group: impl FnOnce() -> Option<Usage>,
    stats: &[&ContainerStats],
    disk: Disk,
) -> PodUse {
    let containers: Vec<ContainerUse> = stats.iter().map(|stats| container_use(stats, &disk)).collect();
    let memory = told.and_then(|told| Some(told.memory.as_ref()?.working_set_bytes.as_ref()?.value));
    let processes = told.and_then(|told| Some(told.process.as_ref()?.process_count.as_ref()?.value));
    let group = if told.is_none() { group() } else { None };
    let memory = memory.or_else(|| group.as_ref().map(|usage| usage.working_set_bytes));
    let processes = processes.or_else(|| group.as_ref().map(|usage| usage.pids));
    PodUse {
        memory_bytes: Some(memory.unwrap_or_else(|| containers.iter().map(|one| one.memory_bytes).sum())),
        processes: processes.unwrap_or_default(),
        containers,
        volumes: disk.volumes,
        other: disk.other,
    }
}

fn put(observations: &mut Observations, signal: Signal, available: u64, capacity: u64, at: SystemTime) {
    // Nothing can be said of what has no size.
    if capacity == 0 {
        return;
    }
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    observations.insert(signal, Observation { available: signed(available), capacity: signed(capacity), at });
}

/// What lies where, as upstream judges it: writable layers that alone are elsewhere count as if they were with the rest. `None` where
/// a path does not tell its device, or images lie apart from what containers write and may not (`separate_disks`).
fn file_systems(root: &Path, images: &Path, containers: &Path, separate_disks: bool) -> Option<FileSystems> {
    let device = |path: &Path| std::fs::metadata(path).map(|meta| meta.dev()).ok();
    let (root, images, containers) = (device(root)?, device(images)?, device(containers)?);
    if images != containers && !separate_disks {
        tracing::warn!("Images lie on another disk than what containers write, which KubeletSeparateDiskGC is for");
        return None;
    }
    Some(if images == root {
        FileSystems::One
    } else if images == containers {
        FileSystems::Images
    } else {
        FileSystems::Split
    })
}

fn container_use(stats: &ContainerStats, disk: &Disk) -> ContainerUse {
    let labels = stats.attributes.as_ref().map(|attributes| &attributes.labels);
    let name = labels.and_then(|labels| labels.get(labels::CONTAINER_NAME)).cloned().unwrap_or_default();
    let number = |value: Option<&node_api::cri::v1::UInt64Value>| value.map_or(0, |value| value.value);
    let layer = stats.writable_layer.as_ref();
    ContainerUse {
        memory_bytes: number(stats.memory.as_ref().and_then(|memory| memory.working_set_bytes.as_ref())),
        layer: Room {
            bytes: number(layer.and_then(|layer| layer.used_bytes.as_ref())),
            inodes: number(layer.and_then(|layer| layer.inodes_used.as_ref())),
        },
        logs: disk.logs.get(&name).copied().unwrap_or_default(),
        name,
    }
}

/// What the logs of a container take up on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogUse {
    pub container: String,
    pub namespace: String,
    pub pod: String,
    pub uid: String,
    pub bytes: u64,
}

/// What the logs of containers take up, of those that have any; by pods and the names of their containers.
pub(crate) fn log_uses(pod_logs_dir: &Path, pods: &[(Arc<Pod>, Vec<String>)]) -> Vec<LogUse> {
    let mut uses = Vec::new();
    for (pod, containers) in pods {
        let (directory, meta) = (log_directory(pod_logs_dir, pod), &pod.metadata);
        for container in containers {
            let path = directory.join(container);
            if path.is_dir() {
                uses.push(LogUse {
                    container: container.clone(),
                    namespace: meta.namespace.clone(),
                    pod: meta.name.clone(),
                    uid: meta.uid.clone(),
                    bytes: used(&path).bytes,
                });
            }
        }
    }
    uses
}

/// Looks at everything that a pod has on the disk beside its containers' layers.
fn walk(layout: &Layout, logs: &Path, pod: &Pod, quotas: Option<&ScratchQuotas>, metrics: &KubeletMetrics) -> Disk {
    let mut disk = Disk { other: used(&layout.hosts_file(&pod.metadata.uid)), ..Disk::default() };
    for entry in std::fs::read_dir(logs).into_iter().flatten().flatten() {
        let room = used(&entry.path());
        if entry.path().is_dir() {
            disk.logs.insert(entry.file_name().to_string_lossy().into_owned(), room);
        } else {
            disk.other = disk.other + room;
        }
    }
    for volume in &pod.spec.volumes {
        let source = &volume.volume_source;
        let (plugin, in_memory) = match (&source.empty_dir, &source.config_map) {
            (Some(source), _) => (Plugin::EmptyDir, !source.medium.is_empty()),
            (None, Some(_)) => (Plugin::ConfigMap, false),
            (None, None) => continue,
        };
        let path = layout.volume(&pod.metadata.uid, plugin, &volume.name);
        let began = Instant::now();
        let counted = quotas.zip(source.empty_dir.as_ref()).and_then(|(quotas, own)| quotas.used(pod, own, &path));
        let (used, how) = match counted {
            Some(counted) => (Room { bytes: counted.bytes, inodes: counted.inodes }, "fsquota"),
            None => (used(&path), "du"),
        };
        metrics.volume_measuring.with(&[how]).observe(began.elapsed().as_secs_f64());
        disk.volumes.push(VolumeUse { name: volume.name.clone(), used, in_memory });
    }
    disk
}

/// What a path and everything below it takes up, without what is mounted there.
fn used(path: &Path) -> Room {
    let Ok(top) = std::fs::symlink_metadata(path) else { return Room::default() };
    let mut sum = Room::default();
    let mut open = vec![(path.to_owned(), top.clone())];
    let mut seen = 0;
    while let Some((path, meta)) = open.pop() {
        sum = sum + Room { bytes: meta.blocks().saturating_mul(BLOCK), inodes: 1 };
        if !meta.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                return sum;
            }
            if let Ok(meta) = entry.metadata()
                && meta.dev() == top.dev()
            {
                open.push((entry.path(), meta));
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{EmptyDirVolumeSource, Volume, VolumeSource};
    use sys::project_quota::{FakeProjectQuotas, ProjectQuotas as _, ProjectUse};

    use super::*;

    #[test]
    fn walks_find_logs_and_volumes() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let mut pod = Pod::default();
        pod.metadata.uid = "u".into();
        let empty_dir = Some(EmptyDirVolumeSource::default());
        let volume_source = VolumeSource { empty_dir, ..VolumeSource::default() };
        pod.spec.volumes.push(Volume { name: "v".into(), volume_source });
        let logs = dir.path().join("logs");
        let files = [
            (layout.volume("u", Plugin::EmptyDir, "v").join("deep/file"), 8192),
            (logs.join("main/0.log"), 4096),
            (logs.join("stray"), 4096),
        ];
        for (path, size) in &files {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, vec![1_u8; *size]).unwrap();
        }
        let metrics = KubeletMetrics::unseen();
        let disk = walk(&layout, &logs, &pod, None, &metrics);
        assert!(disk.volumes[0].used.bytes >= 8192 && disk.volumes[0].used.inodes == 3, "{disk:?}");
        assert!(disk.logs["main"].bytes >= 4096 && disk.logs["main"].inodes == 2);
        assert_eq!(disk.other.inodes, 1);
        let quotas = FakeProjectQuotas::counting();
        let (project, counted) = (1_048_577, ProjectUse { bytes: 5, inodes: 7 });
        quotas.assign(&layout.volume("u", Plugin::EmptyDir, "v"), project).unwrap();
        quotas.uses(project, counted);
        let quotas = ScratchQuotas::new(Arc::new(quotas), dir.path());
        let volume = |pod: &Pod| walk(&layout, &logs, pod, Some(&quotas), &metrics).volumes[0].used;
        assert_eq!(volume(&pod).inodes, 3, "users of the node could cheat");
        pod.spec.host_users = Some(false);
        assert_eq!(volume(&pod), Room { bytes: 5, inodes: 7 });
        assert_eq!(used(Path::new("/nowhere")), Room::default());
    }

    #[test]
    fn logs_of_containers_are_measured_by_themselves() {
        let dir = tempfile::tempdir().unwrap();
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.name, pod.metadata.uid) = ("ns".into(), "web".into(), "u".into());
        let logs = dir.path().join("ns_web_u");
        for (container, size) in [("main", 8192), ("gone", 4096)] {
            std::fs::create_dir_all(logs.join(container)).unwrap();
            std::fs::write(logs.join(container).join("0.log"), vec![1_u8; size]).unwrap();
        }
        let uses = log_uses(dir.path(), &[(Arc::new(pod), vec!["main".into(), "new".into()])]);
        let [LogUse { container, bytes, .. }] = uses.as_slice() else { panic!("{uses:?}") };
        assert!(container == "main" && *bytes >= 8192, "{uses:?}");
    }

    #[test]
    fn what_pods_use_is_told_by_the_runtime_or_read_from_groups() {
        use node_api::cri::v1::{MemoryUsage, ProcessUsage, UInt64Value};
        let value = |value: u64| Some(UInt64Value { value });
        let memory = |bytes| Some(MemoryUsage { working_set_bytes: value(bytes), ..MemoryUsage::default() });
        let process = Some(ProcessUsage { process_count: value(3), timestamp: 0 });
        let told = LinuxPodSandboxStats { memory: memory(9), process, ..LinuxPodSandboxStats::default() };
        let one = ContainerStats { memory: memory(4), ..ContainerStats::default() };
        let usage = |told: Option<&LinuxPodSandboxStats>, group: Option<Usage>| {
            let used = pod_use(told, || group, &[&one, &one], Disk::default());
            (used.memory_bytes, used.processes)
        };
        let group = || Some(Usage { working_set_bytes: 20, pids: 5, ..Usage::default() });
        assert_eq!(usage(Some(&told), group()), (Some(9), 3));
        assert_eq!(usage(None, group()), (Some(20), 5));
        assert_eq!(usage(None, None), (Some(8), 0));
        assert_eq!(usage(Some(&LinuxPodSandboxStats::default()), group()), (Some(8), 0));
    }

    #[test]
    fn file_systems_are_told_apart_by_device() {
        let dir = tempfile::tempdir().unwrap();
        let (here, other) = (dir.path(), Path::new("/proc"));
        use FileSystems::{Images, One, Split};
        // (images, what containers write, what they are judged by, and that where they may not lie apart)
        for (images, containers, judged, without) in [
            (here, here, Some(One), Some(One)),
            (other, other, Some(Images), Some(Images)),
            (other, here, Some(Split), None),
            (here, other, Some(One), None),
        ] {
            assert_eq!(file_systems(here, images, containers, true), judged, "{images:?} {containers:?}");
            assert_eq!(file_systems(here, images, containers, false), without, "{images:?} {containers:?}");
        }
        let missing = dir.path().join("none");
        assert_eq!(file_systems(here, &missing, &missing, true), None, "it may yet be another disk");
    }
}
