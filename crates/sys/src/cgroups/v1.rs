//! Version 1: one hierarchy per controller, or several controllers that share one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::hierarchy::{self, Hierarchy};
use super::linux::is_hierarchy;
use super::{CgroupError, CgroupPath, CpuAndMemory, Limit, Limits, Throttling, Usage};

const CONTROLLERS: &[&str] = &[
    "blkio",
    "cpu",
    "cpuacct",
    "cpuset",
    "devices",
    "freezer",
    "hugetlb",
    "memory",
    "misc",
    "net_cls",
    "net_prio",
    "perf_event",
    "pids",
    "rdma",
];
/// Hierarchies that limit nothing: systemd's own, and version 2 mounted beside version 1. Container runtimes make groups
/// there too, so that cleaning up has to look.
const BOOKKEEPING: &[&str] = &["systemd", "unified"];
const DEFAULT_PERIOD_US: u64 = 100_000;

/// The hierarchies by controller.
#[derive(Debug, Clone)]
pub(super) struct V1 {
    by_controller: BTreeMap<String, Hierarchy>,
}

impl V1 {
    /// Looks for `root/CONTROLLER`; links such as `cpu -> cpu,cpuacct` are followed, so that a shared hierarchy is known
    /// to be one.
    pub(super) fn at(root: &Path) -> Self {
        let found = CONTROLLERS.iter().chain(BOOKKEEPING).filter_map(|name| {
            let path = root.join(name).canonicalize().ok().filter(|path| is_hierarchy(path))?;
            Some(((*name).to_owned(), Hierarchy { root: path }))
        });
        Self { by_controller: found.collect() }
    }

    pub(super) fn hierarchy(&self, controller: &str) -> Option<&Hierarchy> {
        self.by_controller.get(controller)
    }

    /// Every hierarchy once, however many controllers share it.
    pub(super) fn hierarchies(&self) -> impl Iterator<Item = &Hierarchy> {
        let roots: BTreeMap<_, _> = self.by_controller.values().map(|hierarchy| (&hierarchy.root, hierarchy)).collect();
        roots.into_values()
    }

    pub(super) fn controllers(&self) -> BTreeSet<String> {
        self.by_controller.keys().filter(|name| !BOOKKEEPING.contains(&name.as_str())).cloned().collect()
    }

    pub(super) fn create(&self, group: &CgroupPath) -> Result<(), CgroupError> {
        for ancestor in group.lineage() {
            for hierarchy in self.hierarchies() {
                hierarchy.create(&ancestor)?;
            }
            if let Some(cpuset) = self.hierarchy("cpuset") {
                inherit_cpuset(&cpuset.directory(&ancestor))?;
            }
        }
        Ok(())
    }

    pub(super) fn apply(&self, group: &CgroupPath, limits: &Limits) -> Result<(), CgroupError> {
        if let Some(shares) = limits.cpu_shares {
            self.set("cpu", group, "cpu.shares", &shares.to_string())?;
        }
        if let Some(quota) = limits.cpu_quota_us {
            self.apply_quota(group, quota, limits.cpu_period_us)?;
        }
        if let Some(limit) = limits.memory_bytes {
            self.set_limit("memory", group, "memory.limit_in_bytes", limit, "-1")?;
        }
        if let Some(limit) = limits.pids {
            self.set_limit("pids", group, "pids.max", limit, "max")?;
        }
        for (size, bytes) in &limits.huge_pages_bytes {
            self.set("hugetlb", group, &format!("hugetlb.{size}.limit_in_bytes"), &bytes.to_string())?;
        }
        if let Some(cpus) = &limits.cpuset_cpus {
            self.set("cpuset", group, "cpuset.cpus", cpus)?;
        }
        if let Some(mems) = &limits.cpuset_mems {
            self.set("cpuset", group, "cpuset.mems", mems)?;
        }
        Ok(())
    }

    /// A quota counts against the period of the moment, so that the period is set first, with the quota lifted.
    fn apply_quota(&self, group: &CgroupPath, quota: Limit, period: Option<u64>) -> Result<(), CgroupError> {
        let Limit::To(quota) = quota else {
            return self.set_limit("cpu", group, "cpu.cfs_quota_us", Limit::Unlimited, "-1");
        };
        let period = period.unwrap_or(DEFAULT_PERIOD_US).to_string();
        let unchanged = self.hierarchy("cpu").is_some_and(|cpu| {
            fs::read_to_string(cpu.directory(group).join("cpu.cfs_period_us")).is_ok_and(|have| have.trim() == period)
        });
        if !unchanged {
            self.set("cpu", group, "cpu.cfs_quota_us", "-1")?;
            self.set("cpu", group, "cpu.cfs_period_us", &period)?;
        }
        self.set("cpu", group, "cpu.cfs_quota_us", &quota.to_string())
    }

    pub(super) fn usage(&self, group: &CgroupPath) -> Usage {
        let directory = |controller| self.directory(controller, group);
        let mut usage = Usage::default();
        if let Some(cpu) = directory("cpuacct") {
            usage.cpu_ns = cpu_ns(&cpu);
            usage.user_ns = hierarchy::number(&cpu.join("cpuacct.usage_user"));
            usage.system_ns = hierarchy::number(&cpu.join("cpuacct.usage_sys"));
        }
        if let Some(cpu) = directory("cpu") {
            let stat = hierarchy::read(&cpu.join("cpu.stat")).unwrap_or_default();
            usage.throttling = Throttling {
                periods: hierarchy::keyed(&stat, "nr_periods"),
                throttled_periods: hierarchy::keyed(&stat, "nr_throttled"),
                throttled_ns: hierarchy::keyed(&stat, "throttled_time"),
            };
        }
        if let Some(pids) = directory("pids") {
            usage.pids = hierarchy::number(&pids.join("pids.current"));
        }
        if let Some(memory) = directory("memory") {
            let Memory { bytes, stat } = Memory::read(&memory);
            usage.memory_bytes = bytes;
            usage.working_set_bytes = working_set_bytes(bytes, &stat);
            usage.rss_bytes = hierarchy::keyed(&stat, "total_rss");
            usage.page_faults = hierarchy::keyed(&stat, "total_pgfault");
            usage.major_page_faults = hierarchy::keyed(&stat, "total_pgmajfault");
            usage.cache_bytes = hierarchy::keyed(&stat, "total_cache");
            usage.swap_bytes = hierarchy::keyed(&stat, "total_swap");
            let control = hierarchy::read(&memory.join("memory.oom_control")).unwrap_or_default();
            usage.oom_kills = hierarchy::keyed(&control, "oom_kill");
        }
        usage
    }

    pub(super) fn cpu_and_memory(&self, group: &CgroupPath) -> CpuAndMemory {
        let memory = self.directory("memory", group).map(|directory| Memory::read(&directory));
        CpuAndMemory {
            cpu_ns: self.directory("cpuacct", group).map_or(0, |directory| cpu_ns(&directory)),
            memory_bytes: memory.as_ref().map_or(0, |memory| memory.bytes),
            working_set_bytes: memory.map_or(0, |memory| working_set_bytes(memory.bytes, &memory.stat)),
        }
    }

    fn directory(&self, controller: &str, group: &CgroupPath) -> Option<PathBuf> {
        Some(self.hierarchy(controller)?.directory(group))
    }

    fn set(&self, controller: &'static str, group: &CgroupPath, file: &str, value: &str) -> Result<(), CgroupError> {
        let hierarchy = self.hierarchy(controller).ok_or(CgroupError::NoController(controller))?;
        hierarchy::write(&hierarchy.directory(group).join(file), value)
    }

    fn set_limit(
        &self,
        controller: &'static str,
        group: &CgroupPath,
        file: &str,
        limit: Limit,
        unlimited: &str,
    ) -> Result<(), CgroupError> {
        match limit {
            Limit::To(value) => self.set(controller, group, file, &value.to_string()),
            // Nothing limits where there is no controller.
            Limit::Unlimited if self.hierarchy(controller).is_none() => Ok(()),
            Limit::Unlimited => self.set(controller, group, file, unlimited),
        }
    }
}

fn cpu_ns(directory: &Path) -> u64 {
    hierarchy::number(&directory.join("cpuacct.usage"))
}

/// What a group says of its memory.
struct Memory {
    bytes: u64,
    stat: String,
}

impl Memory {
    fn read(directory: &Path) -> Self {
        let stat = hierarchy::read(&directory.join("memory.stat")).unwrap_or_default();
        Self { bytes: hierarchy::number(&directory.join("memory.usage_in_bytes")), stat }
    }
}

fn working_set_bytes(memory_bytes: u64, stat: &str) -> u64 {
    memory_bytes.saturating_sub(hierarchy::keyed(stat, "total_inactive_file"))
}

/// A new cpuset group has no processors and no memory, and takes no process before it gets some.
fn inherit_cpuset(directory: &Path) -> Result<(), CgroupError> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let own = directory.join(file);
        if !hierarchy::read(&own)?.trim().is_empty() {
            continue;
        }
        let Some(parent) = directory.parent() else { continue };
        hierarchy::write(&own, hierarchy::read(&parent.join(file))?.trim())?;
    }
    Ok(())
}
