//! File systems that count what a test tells them to.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::{ProjectId, ProjectLimit, ProjectQuotas, ProjectUse};

/// One file system below `/`. Projects are those of paths, whether there is anything or not.
#[derive(Debug, Default)]
pub struct FakeProjectQuotas {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: bool,
    projects: BTreeMap<PathBuf, ProjectId>,
    used: BTreeMap<ProjectId, ProjectUse>,
    limits: BTreeMap<ProjectId, ProjectLimit>,
    refused: BTreeSet<&'static str>,
    calls: usize,
}

impl FakeProjectQuotas {
    /// A file system that counts.
    #[must_use]
    pub fn counting() -> Self {
        Self { state: Mutex::new(State { counts: true, ..State::default() }) }
    }

    /// From now on calls of this name fail.
    pub fn refuse(&self, call: &'static str) {
        self.state.lock().refused.insert(call);
    }

    /// From now on a project has so much.
    pub fn uses(&self, project: ProjectId, used: ProjectUse) {
        self.state.lock().used.insert(project, used);
    }

    /// How much a project may have, if anybody has said so.
    #[must_use]
    pub fn limit_of(&self, project: ProjectId) -> Option<ProjectLimit> {
        self.state.lock().limits.get(&project).copied()
    }

    /// How often anything was asked of it.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.state.lock().calls
    }

    fn call<T>(&self, name: &'static str, call: impl FnOnce(&mut State) -> T) -> io::Result<T> {
        let mut state = self.state.lock();
        state.calls += 1;
        if state.refused.contains(name) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(call(&mut state))
    }
}

impl ProjectQuotas for FakeProjectQuotas {
    fn counts(&self, _: &Path) -> io::Result<bool> {
        self.call("counts", |state| state.counts)
    }

    fn project(&self, directory: &Path) -> io::Result<ProjectId> {
        self.call("project", |state| {
            let mut own = directory.ancestors().filter_map(|at| state.projects.get(at).copied());
            own.next().unwrap_or_default()
        })
    }

    fn assign(&self, directory: &Path, project: ProjectId) -> io::Result<()> {
        self.call("assign", |state| {
            state.projects.insert(directory.to_owned(), project);
        })
    }

    fn used(&self, _: &Path, project: ProjectId) -> io::Result<ProjectUse> {
        self.call("used", |state| state.used.get(&project).copied().unwrap_or_default())
    }

    fn limit(&self, _: &Path, project: ProjectId, limit: ProjectLimit) -> io::Result<()> {
        self.call("limit", |state| {
            state.limits.insert(project, limit);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_passed_on_and_calls_can_fail() {
        let quotas = FakeProjectQuotas::counting();
        quotas.assign(Path::new("/a"), 7).unwrap();
        assert_eq!(quotas.project(Path::new("/a/b")).unwrap(), 7);
        assert_eq!(quotas.project(Path::new("/ab")).unwrap(), 0);
        quotas.refuse("used");
        assert!(quotas.used(Path::new("/a"), 7).is_err());
        assert_eq!(quotas.calls(), 4);
    }
}
