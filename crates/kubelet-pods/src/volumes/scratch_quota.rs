//! Scratch space that the file system counts (gate `LocalStorageCapacityIsolationFSQuotaMonitoring`, KEP-1029): an `emptyDir`
//! on the disk is a project of its own, and what it takes up is asked for and not walked through. That is faster, and knows
//! of files that were deleted and are open yet. Nothing is enforced by it.
//!
//! Only for pods in a user namespace: root anywhere else may give its files to another project. Whatever fails, the volume is
//! walked through as any other; no pod waits for it. What is known is on the directories and in `/etc/projects`: a kubelet
//! that was restarted, or one of upstream's, finds it there.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api_types::core_v1::{EmptyDirVolumeSource, Pod};
use component_helpers::pod_requests;
use sys::project_quota::{LinuxProjectQuotas, ProjectId, ProjectLimit, ProjectQuotas, ProjectUse};

use super::project_files::{FIRST, ProjectError, ProjectFiles};

/// The projects of scratch volumes.
pub struct ScratchQuotas {
    quotas: Arc<dyn ProjectQuotas>,
    files: ProjectFiles,
    /// Whether a person was told that volumes are walked through nevertheless; what is wrong with one mostly is with all.
    told: AtomicBool,
}

impl ScratchQuotas {
    /// Those of this machine.
    #[must_use]
    pub fn of_machine() -> Arc<Self> {
        Self::new(Arc::new(LinuxProjectQuotas), Path::new("/etc"))
    }

    pub(crate) fn new(quotas: Arc<dyn ProjectQuotas>, directory: &Path) -> Arc<Self> {
        Arc::new(Self { quotas, files: ProjectFiles::in_directory(directory), told: AtomicBool::new(false) })
    }

    /// Makes a new volume a project. One that holds something already is left as it is: what is in it would not count.
    pub(super) fn assign(&self, pod: &Pod, source: &EmptyDirVolumeSource, path: &Path) {
        if is_counted(pod, source) {
            self.tell(path, self.try_assign(pod, source, path));
        }
    }

    fn try_assign(&self, pod: &Pod, source: &EmptyDirVolumeSource, path: &Path) -> Result<(), ProjectError> {
        if !self.quotas.counts(path)? {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the file system does not count by project").into());
        }
        if self.own(path)?.is_some() || std::fs::read_dir(path)?.next().is_some() {
            return self.try_adopt(path);
        }
        // Noted before all else: a number that a process left behind halfway is found again, and given to nobody.
        let is_free = |project| Ok(self.quotas.used(path, project)? == ProjectUse::default());
        let project = self.files.take(path, &is_free)?;
        let limit = if is_limited(pod, source) { ProjectLimit::Highest } else { ProjectLimit::None };
        let assigned = self.quotas.limit(path, project, limit).and_then(|()| self.quotas.assign(path, project));
        if assigned.is_err() {
            self.files.remove(path)?;
        }
        Ok(assigned?)
    }

    /// Takes over what an earlier kubelet made of a volume; on some machines `/etc` is made anew whenever they start.
    pub(super) fn adopt(&self, pod: &Pod, source: &EmptyDirVolumeSource, path: &Path) {
        if is_counted(pod, source) {
            self.tell(path, self.try_adopt(path));
        }
    }

    fn try_adopt(&self, path: &Path) -> Result<(), ProjectError> {
        match self.own(path).unwrap_or_default() {
            Some(project) if self.files.noted(path)?.is_none() => self.files.note(path, project),
            _ => Ok(()),
        }
    }

    /// Gives up what a volume had, of whatever pod it was; to be called before it is removed.
    pub(super) fn clear(&self, path: &Path) {
        if let Err(error) = self.try_clear(path) {
            tracing::warn!(path = %path.display(), %error, "The project of a volume is not given back");
        }
    }

    fn try_clear(&self, path: &Path) -> Result<(), ProjectError> {
        let noted = self.files.noted(path)?.filter(|project| *project >= FIRST);
        // File systems that know no projects have none.
        let own = self.own(path).unwrap_or_default();
        let Some(project) = own.or(noted) else { return Ok(()) };
        let lifted = self.quotas.limit(path, project, ProjectLimit::None);
        if noted.is_some() {
            self.files.remove(path)?;
        }
        Ok(lifted?)
    }

    /// What a volume takes up, where the file system has counted it.
    pub(crate) fn used(&self, pod: &Pod, source: &EmptyDirVolumeSource, path: &Path) -> Option<ProjectUse> {
        if !is_counted(pod, source) {
            return None;
        }
        let project = self.own(path).ok()??;
        match self.quotas.used(path, project) {
            // The directory itself counts: where nothing does, nothing was counted.
            Ok(used) => (used.inodes > 0).then_some(used),
            Err(error) => {
                self.tell(path, Err(error.into()));
                None
            }
        }
    }

    /// The project that a directory does not have from the one above it.
    fn own(&self, path: &Path) -> io::Result<Option<ProjectId>> {
        let project = self.quotas.project(path)?;
        if project < FIRST {
            return Ok(None);
        }
        let above = path.parent().map_or(Ok(0), |above| self.quotas.project(above))?;
        Ok((project != above).then_some(project))
    }

    fn tell(&self, path: &Path, result: Result<(), ProjectError>) {
        let Err(error) = result else { return };
        if self.told.swap(true, Ordering::Relaxed) {
            tracing::debug!(path = %path.display(), %error, "A volume has no project quota");
        } else {
            tracing::warn!(
                path = %path.display(),
                %error,
                "A volume has no project quota and is walked through; more such are told of at debug level"
            );
        }
    }
}

/// Whether a volume is to be counted at all.
fn is_counted(pod: &Pod, source: &EmptyDirVolumeSource) -> bool {
    source.medium.is_empty() && pod.spec.host_users == Some(false)
}

/// Whether the volume or the pod may have only so much.
fn is_limited(pod: &Pod, source: &EmptyDirVolumeSource) -> bool {
    let of_pod = pod_requests::limits(pod).get("ephemeral-storage").is_some_and(|limit| limit.sign() > 0);
    of_pod || source.size_limit.as_ref().is_some_and(|limit| limit.sign() > 0)
}

#[cfg(test)]
#[path = "scratch_quota_tests.rs"]
mod tests;
