//! Version 2: one hierarchy, in which a group's controllers are enabled by its parent.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::hierarchy::{self, Hierarchy};
use super::pressure::{self, Pressure, Pressures};
use super::{CgroupError, CgroupPath, CpuAndMemory, Limit, Limits, Throttling, Usage};

const DEFAULT_PERIOD_US: u64 = 100_000;
/// What is enabled for groups as far as the kernel has it.
const WANTED: &[&str] = &["cpu", "cpuset", "hugetlb", "io", "memory", "pids"];
/// Shares and weights at the upper end of their ranges.
const SHARES_MAX: u64 = 262_144;
const WEIGHT_MAX: u64 = 10_000;

/// The hierarchy.
#[derive(Debug, Clone)]
pub(super) struct V2 {
    hierarchy: Hierarchy,
}

impl V2 {
    pub(super) fn at(root: PathBuf) -> Self {
        Self { hierarchy: Hierarchy { root } }
    }

    pub(super) fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    pub(super) fn controllers(&self) -> BTreeSet<String> {
        let text = hierarchy::read(&self.hierarchy.root.join("cgroup.controllers")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    }

    pub(super) fn create(&self, group: &CgroupPath) -> Result<(), CgroupError> {
        let mut parent = self.hierarchy.root.clone();
        for ancestor in group.lineage() {
            // One at a time: the kernel takes all or nothing of one write, and a controller may be barred for reasons of
            // its own (real-time scheduling bars cpu, for one).
            let available = hierarchy::read(&parent.join("cgroup.controllers"))?;
            for controller in available.split_whitespace().filter(|name| WANTED.contains(name)) {
                if let Err(error) = hierarchy::write(&parent.join("cgroup.subtree_control"), &format!("+{controller}"))
                {
                    tracing::debug!(controller, group = %ancestor, %error, "cgroup controller cannot be enabled");
                }
            }
            parent = self.hierarchy.create(&ancestor)?;
        }
        Ok(())
    }

    pub(super) fn apply(&self, group: &CgroupPath, limits: &Limits) -> Result<(), CgroupError> {
        if let Some(shares) = limits.cpu_shares {
            self.set("cpu", group, "cpu.weight", &weight(shares).to_string())?;
        }
        if let Some(quota) = limits.cpu_quota_us {
            let period = limits.cpu_period_us.unwrap_or(DEFAULT_PERIOD_US);
            self.set_limit("cpu", group, "cpu.max", quota, &format!(" {period}"))?;
        }
        if let Some(limit) = limits.memory_bytes {
            self.set_limit("memory", group, "memory.max", limit, "")?;
        }
        if let Some(bytes) = limits.memory_min_bytes {
            self.set("memory", group, "memory.min", &bytes.to_string())?;
        }
        if let Some(bytes) = limits.memory_low_bytes {
            self.set("memory", group, "memory.low", &bytes.to_string())?;
        }
        if let Some(limit) = limits.pids {
            self.set_limit("pids", group, "pids.max", limit, "")?;
        }
        for (size, bytes) in &limits.huge_pages_bytes {
            self.set("hugetlb", group, &format!("hugetlb.{size}.max"), &bytes.to_string())?;
        }
        if let Some(cpus) = &limits.cpuset_cpus {
            self.set("cpuset", group, "cpuset.cpus", cpus)?;
        }
        if let Some(mems) = &limits.cpuset_mems {
            self.set("cpuset", group, "cpuset.mems", mems)?;
        }
        Ok(())
    }

    pub(super) fn usage(&self, group: &CgroupPath) -> Result<Usage, CgroupError> {
        let directory = self.hierarchy.directory(group);
        // The root has no memory.current, and a group no memory.stat without the controller.
        let cpu = hierarchy::read(&directory.join("cpu.stat"))?;
        let stat = hierarchy::read(&directory.join("memory.stat")).unwrap_or_default();
        let events = hierarchy::read(&directory.join("memory.events")).unwrap_or_default();
        let memory_bytes = memory_bytes(&directory);
        Ok(Usage {
            cpu_ns: cpu_ns(&cpu),
            memory_bytes,
            working_set_bytes: working_set_bytes(memory_bytes, &stat),
            rss_bytes: hierarchy::keyed(&stat, "anon"),
            page_faults: hierarchy::keyed(&stat, "pgfault"),
            major_page_faults: hierarchy::keyed(&stat, "pgmajfault"),
            pids: hierarchy::number(&directory.join("pids.current")),
            user_ns: hierarchy::keyed(&cpu, "user_usec").saturating_mul(1000),
            system_ns: hierarchy::keyed(&cpu, "system_usec").saturating_mul(1000),
            cache_bytes: hierarchy::keyed(&stat, "file"),
            swap_bytes: hierarchy::number(&directory.join("memory.swap.current")),
            oom_kills: hierarchy::keyed(&events, "oom_kill"),
            throttling: Throttling {
                periods: hierarchy::keyed(&cpu, "nr_periods"),
                throttled_periods: hierarchy::keyed(&cpu, "nr_throttled"),
                throttled_ns: hierarchy::keyed(&cpu, "throttled_usec").saturating_mul(1000),
            },
            pressures: Pressures {
                cpu: pressure(&directory, "cpu"),
                memory: pressure(&directory, "memory"),
                io: pressure(&directory, "io"),
            },
        })
    }

    pub(super) fn cpu_and_memory(&self, group: &CgroupPath) -> Result<CpuAndMemory, CgroupError> {
        let directory = self.hierarchy.directory(group);
        let cpu = hierarchy::read(&directory.join("cpu.stat"))?;
        let stat = hierarchy::read(&directory.join("memory.stat")).unwrap_or_default();
        let memory_bytes = memory_bytes(&directory);
        let working_set_bytes = working_set_bytes(memory_bytes, &stat);
        Ok(CpuAndMemory { cpu_ns: cpu_ns(&cpu), memory_bytes, working_set_bytes })
    }

    fn set(&self, controller: &'static str, group: &CgroupPath, file: &str, value: &str) -> Result<(), CgroupError> {
        let path = self.hierarchy.directory(group).join(file);
        if !path.exists() && self.hierarchy.directory(group).is_dir() {
            return Err(CgroupError::NoController(controller));
        }
        hierarchy::write(&path, value)
    }

    fn set_limit(
        &self,
        controller: &'static str,
        group: &CgroupPath,
        file: &str,
        limit: Limit,
        suffix: &str,
    ) -> Result<(), CgroupError> {
        match limit {
            Limit::To(value) => self.set(controller, group, file, &format!("{value}{suffix}")),
            Limit::Unlimited => match self.set(controller, group, file, &format!("max{suffix}")) {
                Err(CgroupError::NoController(_)) => Ok(()),
                ended => ended,
            },
        }
    }
}

fn cpu_ns(stat: &str) -> u64 {
    hierarchy::keyed(stat, "usage_usec").saturating_mul(1000)
}

fn memory_bytes(directory: &Path) -> u64 {
    hierarchy::number(&directory.join("memory.current"))
}

fn working_set_bytes(memory_bytes: u64, stat: &str) -> u64 {
    memory_bytes.saturating_sub(hierarchy::keyed(stat, "inactive_file"))
}

/// What a group waits for, where the kernel tells.
fn pressure(directory: &Path, resource: &str) -> Option<Pressure> {
    pressure::parse(&hierarchy::read(&directory.join(format!("{resource}.pressure"))).ok()?)
}

/// Version 1's shares (2 to 262144) on version 2's scale (1 to 10000).
pub(super) fn weight(shares: u64) -> u64 {
    if shares >= SHARES_MAX {
        return WEIGHT_MAX;
    }
    1 + shares.saturating_sub(2) * (WEIGHT_MAX - 1) / (SHARES_MAX - 2)
}

/// Back again, as far as the coarser scale tells.
pub(super) fn shares(weight: u64) -> u64 {
    2 + weight.clamp(1, WEIGHT_MAX).saturating_sub(1) * (SHARES_MAX - 2) / (WEIGHT_MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_weights() {
        for (shares, expected) in
            [(0, 1), (2, 1), (102, 4), (1024, 39), (262_143, 9999), (262_144, 10000), (u64::MAX, 10000)]
        {
            assert_eq!(weight(shares), expected, "{shares}");
        }
        for (weight, expected) in [(0, 2), (1, 2), (39, 998), (10_000, 262_144), (u64::MAX, 262_144)] {
            assert_eq!(shares(weight), expected, "{weight}");
        }
    }
}
