//! Groups that exist in memory only.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use super::{CgroupError, CgroupPath, Cgroups, Details, Limits, Usage, Version};

/// Groups with the last limits set on each and the processes a test puts into them.
#[derive(Default)]
pub struct FakeCgroups {
    groups: Mutex<BTreeMap<CgroupPath, Group>>,
    /// How often limits are still refused.
    refusals: Mutex<usize>,
}

#[derive(Default, Clone)]
struct Group {
    limits: Limits,
    processes: BTreeSet<u32>,
    usage: Usage,
    details: Details,
}

impl FakeCgroups {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The limits in force on a group; `None` if there is no such group.
    #[must_use]
    pub fn limits(&self, group: &CgroupPath) -> Option<Limits> {
        self.groups.lock().get(group).map(|group| group.limits.clone())
    }

    /// Every group there is.
    #[must_use]
    pub fn groups(&self) -> Vec<CgroupPath> {
        self.groups.lock().keys().cloned().collect()
    }

    /// Lets a group use this much from now on.
    pub fn set_usage(&self, group: &CgroupPath, usage: Usage) {
        self.groups.lock().entry(group.clone()).or_default().usage = usage;
    }

    /// Lets a group tell this of itself from now on.
    pub fn set_details(&self, group: &CgroupPath, details: Details) {
        self.groups.lock().entry(group.clone()).or_default().details = details;
    }

    /// Refuses limits so many times from now on, as the kernel does where more is in use.
    pub fn refuse_limits(&self, times: usize) {
        *self.refusals.lock() = times;
    }

    fn with<T>(&self, group: &CgroupPath, act: impl FnOnce(&mut Group) -> T) -> Result<T, CgroupError> {
        let mut groups = self.groups.lock();
        let found = groups.get_mut(group).ok_or_else(|| CgroupError::File {
            action: "opening",
            path: group.to_string(),
            source: std::io::ErrorKind::NotFound.into(),
        })?;
        Ok(act(found))
    }

    fn below(group: &CgroupPath, other: &CgroupPath) -> bool {
        other.relative().starts_with(group.relative())
    }
}

impl Cgroups for FakeCgroups {
    fn version(&self) -> Version {
        Version::V2
    }

    fn controllers(&self) -> BTreeSet<String> {
        ["cpu", "cpuset", "hugetlb", "memory", "pids"].map(str::to_owned).into()
    }

    fn create(&self, group: &CgroupPath) -> Result<(), CgroupError> {
        let mut groups = self.groups.lock();
        for ancestor in group.lineage() {
            groups.entry(ancestor).or_default();
        }
        Ok(())
    }

    fn exists(&self, group: &CgroupPath) -> bool {
        self.groups.lock().contains_key(group)
    }

    fn apply(&self, group: &CgroupPath, limits: &Limits) -> Result<(), CgroupError> {
        let limits = limits.clone();
        let mut refusals = self.refusals.lock();
        if let Some(left) = refusals.checked_sub(1) {
            *refusals = left;
            let (path, source) = (group.to_string(), std::io::ErrorKind::ResourceBusy.into());
            return Err(CgroupError::File { action: "writing", path, source });
        }
        self.with(group, |found| {
            let old = std::mem::take(&mut found.limits);
            let mut huge_pages_bytes = old.huge_pages_bytes;
            huge_pages_bytes.extend(limits.huge_pages_bytes);
            found.limits = Limits {
                cpu_shares: limits.cpu_shares.or(old.cpu_shares),
                cpu_quota_us: limits.cpu_quota_us.or(old.cpu_quota_us),
                cpu_period_us: limits.cpu_period_us.or(old.cpu_period_us),
                memory_bytes: limits.memory_bytes.or(old.memory_bytes),
                memory_min_bytes: limits.memory_min_bytes.or(old.memory_min_bytes),
                memory_low_bytes: limits.memory_low_bytes.or(old.memory_low_bytes),
                pids: limits.pids.or(old.pids),
                huge_pages_bytes,
                cpuset_cpus: limits.cpuset_cpus.or(old.cpuset_cpus),
                cpuset_mems: limits.cpuset_mems.or(old.cpuset_mems),
            };
        })
    }

    fn processes(&self, group: &CgroupPath) -> Result<BTreeSet<u32>, CgroupError> {
        let groups = self.groups.lock();
        let below = groups.iter().filter(|(path, _)| Self::below(group, path));
        Ok(below.flat_map(|(_, group)| group.processes.iter().copied()).collect())
    }

    fn add_process(&self, group: &CgroupPath, pid: u32) -> Result<(), CgroupError> {
        self.with(group, |found| {
            found.processes.insert(pid);
        })
    }

    fn kill_all(&self, group: &CgroupPath) -> Result<usize, CgroupError> {
        let mut groups = self.groups.lock();
        let below = groups.iter_mut().filter(|(path, _)| Self::below(group, path));
        Ok(below.map(|(_, group)| std::mem::take(&mut group.processes).len()).sum())
    }

    fn remove(&self, group: &CgroupPath) -> Result<(), CgroupError> {
        if !self.processes(group)?.is_empty() {
            return Err(CgroupError::Busy { group: group.clone() });
        }
        self.groups.lock().retain(|path, _| !Self::below(group, path));
        Ok(())
    }

    fn children(&self, group: &CgroupPath) -> Result<BTreeSet<String>, CgroupError> {
        let groups = self.groups.lock();
        let rests = groups.keys().filter_map(|path| path.relative().strip_prefix(group.relative()).ok());
        Ok(rests.filter_map(|rest| Some(rest.components().next()?.as_os_str().to_str()?.to_owned())).collect())
    }

    fn usage(&self, group: &CgroupPath) -> Result<Usage, CgroupError> {
        self.with(group, |found| found.usage)
    }

    fn details(&self, group: &CgroupPath) -> Details {
        self.with(group, |found| found.details.clone()).unwrap_or_default()
    }
}
