//! The groups of this machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::details::{self, Details};
use super::hierarchy::{self, Hierarchy};
use super::v1::V1;
use super::v2::V2;
use super::{CgroupError, CgroupPath, Cgroups, CpuAndMemory, Limits, Usage, Version};

/// Where the hierarchies are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// Groups below a mount point, of whichever version is found there.
#[derive(Debug, Clone)]
pub struct LinuxCgroups {
    layout: Layout,
}

#[derive(Debug, Clone)]
enum Layout {
    V1(V1),
    V2(V2),
}

impl LinuxCgroups {
    /// The groups of this machine.
    #[must_use]
    pub fn detect() -> Self {
        Self::at(ROOT)
    }

    /// Groups below another place, laid out as `/sys/fs/cgroup` is.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let is_v2 = root.join("cgroup.controllers").exists();
        Self { layout: if is_v2 { Layout::V2(V2::at(root)) } else { Layout::V1(V1::at(&root)) } }
    }

    /// Where a controller's files of a group are; `None` if the controller is not there.
    #[must_use]
    pub fn directory(&self, controller: &str, group: &CgroupPath) -> Option<PathBuf> {
        match &self.layout {
            Layout::V1(v1) => Some(v1.hierarchy(controller)?.directory(group)),
            Layout::V2(v2) => v2.controllers().contains(controller).then(|| v2.hierarchy().directory(group)),
        }
    }

    /// Every hierarchy once.
    fn hierarchies(&self) -> Vec<&Hierarchy> {
        match &self.layout {
            Layout::V1(v1) => v1.hierarchies().collect(),
            Layout::V2(v2) => vec![v2.hierarchy()],
        }
    }
}

impl Cgroups for LinuxCgroups {
    fn version(&self) -> Version {
        match self.layout {
            Layout::V1(_) => Version::V1,
            Layout::V2(_) => Version::V2,
        }
    }

    fn controllers(&self) -> BTreeSet<String> {
        match &self.layout {
            Layout::V1(v1) => v1.controllers(),
            Layout::V2(v2) => v2.controllers(),
        }
    }

    fn create(&self, group: &CgroupPath) -> Result<(), CgroupError> {
        match &self.layout {
            Layout::V1(v1) => v1.create(group),
            Layout::V2(v2) => v2.create(group),
        }
    }

    fn exists(&self, group: &CgroupPath) -> bool {
        let hierarchies = self.hierarchies();
        !hierarchies.is_empty() && hierarchies.iter().all(|hierarchy| hierarchy.directory(group).is_dir())
    }

    fn apply(&self, group: &CgroupPath, limits: &Limits) -> Result<(), CgroupError> {
        match &self.layout {
            Layout::V1(v1) => v1.apply(group, limits),
            Layout::V2(v2) => v2.apply(group, limits),
        }
    }

    fn processes(&self, group: &CgroupPath) -> Result<BTreeSet<u32>, CgroupError> {
        let mut pids = BTreeSet::new();
        for hierarchy in self.hierarchies() {
            pids.extend(hierarchy.processes(group)?);
        }
        Ok(pids)
    }

    fn add_process(&self, group: &CgroupPath, pid: u32) -> Result<(), CgroupError> {
        for hierarchy in self.hierarchies() {
            hierarchy::write(&hierarchy.directory(group).join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }

    fn kill_all(&self, group: &CgroupPath) -> Result<usize, CgroupError> {
        let pids = self.processes(group)?;
        if !pids.is_empty() && self.version() == Version::V2 {
            // One write kills the whole group with no race against fork; old kernels do not have it.
            let directory = self.hierarchies().first().map(|hierarchy| hierarchy.directory(group)).unwrap_or_default();
            if hierarchy::write(&directory.join("cgroup.kill"), "1").is_ok() {
                return Ok(pids.len());
            }
        }
        Ok(hierarchy::kill(&pids))
    }

    fn remove(&self, group: &CgroupPath) -> Result<(), CgroupError> {
        self.hierarchies().into_iter().try_for_each(|hierarchy| hierarchy.remove(group))
    }

    fn children(&self, group: &CgroupPath) -> Result<BTreeSet<String>, CgroupError> {
        let directories =
            self.hierarchies().into_iter().flat_map(|each| hierarchy::directories(&each.directory(group)));
        Ok(directories.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn usage(&self, group: &CgroupPath) -> Result<Usage, CgroupError> {
        match &self.layout {
            Layout::V1(v1) => Ok(v1.usage(group)),
            Layout::V2(v2) => v2.usage(group),
        }
    }

    fn details(&self, group: &CgroupPath) -> Details {
        match &self.layout {
            Layout::V1(v1) => details::of_v1(v1, group),
            Layout::V2(v2) => details::of_v2(&v2.hierarchy().directory(group)),
        }
    }

    fn cpu_and_memory(&self, group: &CgroupPath) -> Result<CpuAndMemory, CgroupError> {
        match &self.layout {
            Layout::V1(v1) => Ok(v1.cpu_and_memory(group)),
            Layout::V2(v2) => v2.cpu_and_memory(group),
        }
    }
}

/// Whether the path is a mount point's directory of a version 1 hierarchy and not a link to one.
pub(super) fn is_hierarchy(path: &Path) -> bool {
    path.join("cgroup.procs").exists()
}

#[cfg(test)]
#[path = "linux_tests.rs"]
mod tests;
