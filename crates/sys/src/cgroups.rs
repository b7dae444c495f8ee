//! Control groups of version 1 and 2: groups are made, limited, watched, emptied and removed by path; which hierarchy
//! holds what is this module's business alone.
//!
//! Not here: the groups of single containers (the container runtime's), and how systemd is asked for groups: whoever
//! shares a machine with it asks, and uses this for what systemd does not do.

mod details;
mod fake;
mod hierarchy;
mod linux;
mod pressure;
mod v1;
mod v2;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

pub use details::{CpuShare, Details, DeviceUse, MemoryLimits};
pub use fake::FakeCgroups;
pub use linux::LinuxCgroups;
pub use pressure::{Pressure, Pressures, Stall};

/// Which version does the limiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Version 1; a version 2 hierarchy may be mounted beside it without controllers of use.
    V1,
    /// Version 2 alone.
    V2,
}

/// A group by its path from the root of every hierarchy, such as `/kubepods/burstable/pod123`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupPath(String);

impl CgroupPath {
    /// A path of plain names; `None` if a part is `.` or `..`. The root is the empty path.
    #[must_use]
    pub fn new(path: &str) -> Option<Self> {
        let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
        let plain = parts.iter().all(|part| !matches!(*part, "." | "..") && !part.contains('\0'));
        plain.then(|| Self(parts.join("/")))
    }

    /// A group below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Option<Self> {
        Self::new(&format!("{}/{name}", self.0))
    }

    /// Without a leading slash, to be joined to a hierarchy's mount point.
    #[must_use]
    pub fn relative(&self) -> &Path {
        Path::new(&self.0)
    }

    /// The group itself and those above it, outermost first, without the root.
    fn lineage(&self) -> impl Iterator<Item = Self> + '_ {
        let ends = self.0.match_indices('/').map(|(at, _)| at).chain([self.0.len()]);
        ends.filter_map(|end| self.0.get(..end)).filter(|part| !part.is_empty()).map(|part| Self(part.to_owned()))
    }
}

impl fmt::Display for CgroupPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "/{}", self.0)
    }
}

/// A limit that may be lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Unlimited,
    /// At most this.
    To(u64),
}

/// What to set on a group; what is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Relative weight, 2 to 262144, 1024 per processor; version 2 gets `1 + (shares - 2) * 9999 / 262142`.
    pub cpu_shares: Option<u64>,
    /// Microseconds of CPU time per period.
    pub cpu_quota_us: Option<Limit>,
    /// The period, 100 ms if absent.
    pub cpu_period_us: Option<u64>,
    pub memory_bytes: Option<Limit>,
    /// Memory that is not reclaimed (version 2 only; version 1 has no such thing and ignores it).
    pub memory_min_bytes: Option<u64>,
    /// Memory that is reclaimed only where nothing else is left (version 2 only, as above).
    pub memory_low_bytes: Option<u64>,
    pub pids: Option<Limit>,
    /// By page size in the kernel's words, such as `2MB`.
    pub huge_pages_bytes: BTreeMap<String, u64>,
    /// Processors and memory nodes in list form, such as `0-3,8`.
    pub cpuset_cpus: Option<String>,
    pub cpuset_mems: Option<String>,
}

/// Shares as version 2 has them: weights from 1 to 10000.
#[must_use]
pub fn cpu_weight(shares: u64) -> u64 {
    v2::weight(shares)
}

/// What a group uses now. Fields are 0 where the controller is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU time since the group was made.
    pub cpu_ns: u64,
    pub memory_bytes: u64,
    /// Memory in use less file pages that can be dropped at once.
    pub working_set_bytes: u64,
    /// Anonymous memory.
    pub rss_bytes: u64,
    pub page_faults: u64,
    pub major_page_faults: u64,
    pub pids: u64,
    /// CPU time spent in programs and in the kernel for them.
    pub user_ns: u64,
    pub system_ns: u64,
    /// Memory that holds parts of files.
    pub cache_bytes: u64,
    pub swap_bytes: u64,
    /// How often the kernel killed a process because memory ran out.
    pub oom_kills: u64,
    pub throttling: Throttling,
    /// Version 2 alone tells.
    pub pressures: Pressures,
}

/// The part of [`Usage`] that is asked for most often, and takes the fewest files to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuAndMemory {
    /// As in [`Usage::cpu_ns`].
    pub cpu_ns: u64,
    /// As in [`Usage::memory_bytes`].
    pub memory_bytes: u64,
    /// As in [`Usage::working_set_bytes`].
    pub working_set_bytes: u64,
}

/// What a limit on CPU time did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throttling {
    /// Periods in which something ran.
    pub periods: u64,
    /// Those in which the time was used up.
    pub throttled_periods: u64,
    /// How long something had to wait.
    pub throttled_ns: u64,
}

/// Makes, limits and removes groups.
pub trait Cgroups: Send + Sync {
    fn version(&self) -> Version;

    /// The controllers that can be used: `cpu`, `memory`, `pids`, ...
    fn controllers(&self) -> BTreeSet<String>;

    /// Makes the group and those above it, in every hierarchy; fine if it exists.
    fn create(&self, group: &CgroupPath) -> Result<(), CgroupError>;

    fn exists(&self, group: &CgroupPath) -> bool;

    /// Sets limits. A limit whose controller is not there is an error, except lifting one.
    fn apply(&self, group: &CgroupPath, limits: &Limits) -> Result<(), CgroupError>;

    /// The processes in the group and below it.
    fn processes(&self, group: &CgroupPath) -> Result<BTreeSet<u32>, CgroupError>;

    /// Moves a process into the group.
    fn add_process(&self, group: &CgroupPath, pid: u32) -> Result<(), CgroupError>;

    /// Sends SIGKILL to everything in the group and below it; how many there were.
    fn kill_all(&self, group: &CgroupPath) -> Result<usize, CgroupError>;

    /// Removes the group and those below it; fine if it is gone. Busy while a process is left.
    fn remove(&self, group: &CgroupPath) -> Result<(), CgroupError>;

    /// The names of the groups directly below this one.
    fn children(&self, group: &CgroupPath) -> Result<BTreeSet<String>, CgroupError>;

    fn usage(&self, group: &CgroupPath) -> Result<Usage, CgroupError>;

    /// What the group may use, and more figures; what cannot be read is left out.
    fn details(&self, group: &CgroupPath) -> Details;

    /// The same numbers as [`usage`](Self::usage), where no others are needed.
    fn cpu_and_memory(&self, group: &CgroupPath) -> Result<CpuAndMemory, CgroupError> {
        let Usage { cpu_ns, memory_bytes, working_set_bytes, .. } = self.usage(group)?;
        Ok(CpuAndMemory { cpu_ns, memory_bytes, working_set_bytes })
    }
}

/// Time between looks at a group that is being emptied.
const EMPTY_POLL: Duration = Duration::from_millis(20);

/// Kills everything in the group and removes it, trying until `limit`: killed processes take a moment to leave.
///
/// # Errors
/// A process survives, or the group cannot be removed for another reason.
pub async fn destroy(cgroups: &dyn Cgroups, group: &CgroupPath, limit: Duration) -> Result<(), CgroupError> {
    let deadline = tokio::time::Instant::now() + limit;
    loop {
        cgroups.kill_all(group)?;
        match cgroups.remove(group) {
            Err(error @ CgroupError::Busy { .. }) if tokio::time::Instant::now() >= deadline => return Err(error),
            Err(CgroupError::Busy { .. }) => tokio::time::sleep(EMPTY_POLL).await,
            ended => return ended,
        }
    }
}

/// Why a group could not be worked on.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    #[error("{action} {path}")]
    File {
        action: &'static str,
        path: String,
        #[source]
        source: io::Error,
    },
    /// Processes are still in it.
    #[error("cgroup {group} is in use")]
    Busy { group: CgroupPath },
    #[error("cgroup controller {0} is not available")]
    NoController(&'static str),
}
