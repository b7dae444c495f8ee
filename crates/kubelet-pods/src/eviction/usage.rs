//! What the node has left and what its pods use, at one moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use api_types::core_v1::Pod;
use async_trait::async_trait;
use node_api::cri::CriError;

use crate::resources::thresholds::Signal;

/// Something measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    pub available: i64,
    pub capacity: i64,
    pub at: SystemTime,
}

/// What is known of each signal; one that could not be read is absent and never met.
pub(super) type Observations = BTreeMap<Signal, Observation>;

/// Room on a file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    pub bytes: u64,
    pub inodes: u64,
}

impl std::ops::Add for Room {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), inodes: self.inodes.saturating_add(other.inodes) }
    }
}

impl std::iter::Sum for Room {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| sum + one)
    }
}

/// What a container uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerUse {
    pub name: String,
    /// Its working set.
    pub memory_bytes: u64,
    /// What it wrote over its image.
    pub layer: Room,
    pub logs: Room,
}

/// What a volume of the local ephemeral kind uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeUse {
    pub name: String,
    pub used: Room,
    /// It lies in memory and not on the disk.
    pub in_memory: bool,
}

/// What a pod uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodUse {
    /// The working set; `None` where it is not known.
    pub memory_bytes: Option<u64>,
    pub processes: u64,
    pub containers: Vec<ContainerUse>,
    pub volumes: Vec<VolumeUse>,
    /// The hosts file, and what else lies beside the logs.
    pub other: Room,
}

/// Which of the machine's file systems hold what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileSystems {
    /// One for all.
    #[default]
    One,
    /// Images and writable layers on one of their own.
    Images,
    /// Images on one of their own, writable layers elsewhere.
    Split,
}

/// Which parts of a pod's use count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FsStatsTypes {
    logs: bool,
    volumes: bool,
    layers: bool,
}

impl FsStatsTypes {
    /// What lies on the file system of a signal.
    pub(super) fn of(signal: Signal, layout: FileSystems) -> Self {
        use Signal::{ContainerfsAvailable, ContainerfsInodesFree, ImagefsAvailable, ImagefsInodesFree};
        let (all, none) =
            (Self { logs: true, volumes: true, layers: true }, Self { logs: false, volumes: false, layers: false });
        let images = matches!(signal, ImagefsAvailable | ImagefsInodesFree);
        let containers = matches!(signal, ContainerfsAvailable | ContainerfsInodesFree);
        match layout {
            FileSystems::One => all,
            FileSystems::Images if images || containers => Self { layers: true, ..none },
            FileSystems::Images => Self { layers: false, ..all },
            FileSystems::Split if images => none,
            FileSystems::Split => all,
        }
    }
}

impl PodUse {
    /// Local ephemeral storage of all kinds.
    pub fn ephemeral(&self) -> Room {
        self.on(FsStatsTypes { logs: true, volumes: true, layers: true }) + self.other
    }

    /// What counts for a disk signal.
    pub(super) fn on(&self, types: FsStatsTypes) -> Room {
        let mut sum = Room::default();
        for container in &self.containers {
            sum = sum + if types.logs { container.logs } else { Room::default() };
            sum = sum + if types.layers { container.layer } else { Room::default() };
        }
        if types.volumes {
            sum = sum + self.volumes.iter().filter(|volume| !volume.in_memory).map(|volume| volume.used).sum();
        }
        sum
    }

    pub fn container(&self, name: &str) -> Option<&ContainerUse> {
        self.containers.iter().find(|container| container.name == name)
    }
}

/// What the node has left at one moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub observations: Observations,
    /// `None` where the disks could not be told apart, such as before the runtime has looked at its own.
    pub layout: Option<FileSystems>,
}

/// What is measured of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// Memory and processes: whoever is short of them cannot wait until directories were walked.
    Running,
    /// What lies on the disk, too.
    All,
}

impl Parts {
    /// What has to be known where a signal is met.
    pub(super) fn of(signal: Signal) -> Self {
        if matches!(signal.resource(), "memory" | "pids") { Self::Running } else { Self::All }
    }
}

/// What pods use, by uid. A pod of which the runtime shows no container is absent.
pub type PodUses = HashMap<String, PodUse>;

/// Who measures. The node is measured all the time, a pod only where somebody has to know: that takes far longer.
#[async_trait]
pub trait Gauge: Send + Sync + 'static {
    /// Measures the node anew.
    ///
    /// # Errors
    /// The runtime does not tell where its images are; it may the next time.
    async fn node(&self) -> Result<Snapshot, CriError>;

    /// Measures these pods anew.
    ///
    /// # Errors
    /// The runtime does not tell what its containers use; it may the next time.
    async fn pods(&self, pods: &[Arc<Pod>], parts: Parts) -> Result<PodUses, CriError>;
}
