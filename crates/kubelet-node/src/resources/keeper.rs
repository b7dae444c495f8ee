//! Who makes control groups: this process by the kernel's files, or systemd, which must be the only one to write to its
//! part of the tree (`cgroupDriver`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use sys::cgroups::{CgroupError, CgroupPath, Cgroups, Limits, destroy};

use super::units::{self, Started, UnitError, Units};

/// How long killed processes get to leave a group.
const LEAVE: Duration = Duration::from_secs(5);

/// Why a group could not be made, limited or taken away.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeepError {
    #[error(transparent)]
    Files(#[from] CgroupError),
    #[error(transparent)]
    Units(#[from] UnitError),
}

/// Makes, limits and removes groups.
#[async_trait]
pub(super) trait Keeper: Send + Sync + 'static {
    /// Makes a group if need be and sets limits; what is absent stays as it is.
    async fn put(&self, group: &CgroupPath, limits: &Limits) -> Result<(), KeepError>;

    /// Kills what is in a group and takes it away; fine if it is gone.
    async fn remove(&self, group: &CgroupPath) -> Result<(), KeepError>;
}

/// What was asked for last of each group, so that only changes are: a pod's group is asked for at every look at the pod.
#[derive(Default)]
struct Asked(Mutex<HashMap<CgroupPath, Limits>>);

impl Asked {
    /// What was asked for last of a group that is still there.
    fn last(&self, cgroups: &dyn Cgroups, group: &CgroupPath) -> Option<Limits> {
        self.0.lock().get(group).cloned().filter(|_| cgroups.exists(group))
    }

    fn note(&self, group: &CgroupPath, limits: &Limits) {
        self.0.lock().insert(group.clone(), limits.clone());
    }

    fn forget(&self, group: &CgroupPath) {
        self.0.lock().remove(group);
    }
}

/// By the kernel's files.
pub(super) struct Files {
    cgroups: Arc<dyn Cgroups>,
    asked: Asked,
}

impl Files {
    pub(super) fn new(cgroups: Arc<dyn Cgroups>) -> Self {
        Self { cgroups, asked: Asked::default() }
    }
}

#[async_trait]
impl Keeper for Files {
    async fn put(&self, group: &CgroupPath, limits: &Limits) -> Result<(), KeepError> {
        if self.asked.last(self.cgroups.as_ref(), group).as_ref() == Some(limits) {
            return Ok(());
        }
        // What a failure leaves half done is not what was asked for before either.
        self.asked.forget(group);
        self.cgroups.create(group)?;
        self.cgroups.apply(group, limits)?;
        self.asked.note(group, limits);
        Ok(())
    }

    async fn remove(&self, group: &CgroupPath) -> Result<(), KeepError> {
        self.asked.forget(group);
        if !self.cgroups.exists(group) {
            return Ok(());
        }
        Ok(destroy(self.cgroups.as_ref(), group, LEAVE).await?)
    }
}

/// By systemd's slices, and by files for what systemd knows nothing of.
pub(super) struct Slices {
    cgroups: Arc<dyn Cgroups>,
    units: Arc<dyn Units>,
    asked: Asked,
}

impl Slices {
    pub(super) fn new(cgroups: Arc<dyn Cgroups>, units: Arc<dyn Units>) -> Self {
        Self { cgroups, units, asked: Asked::default() }
    }
}

#[async_trait]
impl Keeper for Slices {
    async fn put(&self, group: &CgroupPath, limits: &Limits) -> Result<(), KeepError> {
        let Some(unit) = units::unit_of(group) else { return Ok(()) };
        let before = self.asked.last(self.cgroups.as_ref(), group);
        if before.as_ref() == Some(limits) {
            return Ok(());
        }
        let wanted = units::of_limits(limits, self.cgroups.version(), self.units.version());
        let is_new = before.is_none() && {
            let all = units::of_slice(group).into_iter().chain(wanted.clone()).collect();
            self.units.start(&unit, all).await? == Started::Now
        };
        if !is_new && !wanted.is_empty() {
            self.units.set(&unit, wanted).await?;
        }
        // systemd makes a group only in the hierarchies that it needs, and passes on no controller that it does not set.
        self.cgroups.create(group)?;
        self.cgroups.apply(group, &units::beside(limits))?;
        self.asked.note(group, limits);
        Ok(())
    }

    async fn remove(&self, group: &CgroupPath) -> Result<(), KeepError> {
        let Some(unit) = units::unit_of(group) else { return Ok(()) };
        self.asked.forget(group);
        if !self.cgroups.exists(group) {
            return Ok(());
        }
        // Stopping a slice waits for what is in it, as long as that likes.
        self.cgroups.kill_all(group)?;
        self.units.stop(&unit).await?;
        if self.cgroups.exists(group) {
            destroy(self.cgroups.as_ref(), group, LEAVE).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sys::cgroups::{FakeCgroups, Limit};

    use super::*;
    use crate::resources::fake_units::FakeUnits;

    #[tokio::test(start_paused = true)]
    async fn files_are_written_for_changes_and_where_a_group_is_gone() {
        let cgroups = Arc::new(FakeCgroups::new());
        let files = Files::new(cgroups.clone());
        let group = CgroupPath::new("/kubepods/poda").unwrap();
        let (few, many) = [2, 9].map(|shares| Limits { cpu_shares: Some(shares), ..Limits::default() }).into();
        let foreign = Limits { cpu_shares: Some(5), ..Limits::default() };
        // (what is asked for, whether somebody took the group away, shares then)
        for (limits, is_gone, shares) in [(&few, false, 2), (&few, false, 5), (&many, false, 9), (&many, true, 9)] {
            if is_gone {
                cgroups.remove(&group).unwrap();
            }
            files.put(&group, limits).await.unwrap();
            assert_eq!(cgroups.limits(&group).unwrap().cpu_shares, Some(shares));
            cgroups.apply(&group, &foreign).unwrap();
        }
        files.remove(&group).await.unwrap();
        files.put(&group, &many).await.unwrap();
        assert_eq!(cgroups.limits(&group).unwrap().cpu_shares, Some(9));
    }

    #[tokio::test(start_paused = true)]
    async fn systemd_is_asked_once_and_then_for_changes() {
        let (cgroups, systemd) = (Arc::new(FakeCgroups::new()), Arc::new(FakeUnits::default()));
        let slices = Slices::new(cgroups.clone(), systemd.clone());
        let group = CgroupPath::new("/kubepods.slice/kubepods-poda.slice").unwrap();
        let mut limits = Limits { cpu_shares: Some(2), ..Limits::default() };
        slices.put(&group, &limits).await.unwrap();
        slices.put(&group, &limits).await.unwrap();
        limits.memory_bytes = Some(Limit::To(5));
        limits.huge_pages_bytes.insert("2MB".into(), 7);
        slices.put(&group, &limits).await.unwrap();
        assert_eq!(systemd.calls(), ["start kubepods-poda.slice", "set kubepods-poda.slice"]);
        assert_eq!(systemd.property("kubepods-poda.slice", "MemoryMax"), Some(units::Value::Number(5)));
        assert_eq!(systemd.property("kubepods-poda.slice", "CPUWeight"), Some(units::Value::Number(1)));
        let files = cgroups.limits(&group).unwrap();
        assert_eq!((files.memory_bytes, files.cpu_shares), (None, None), "that is systemd's to write");
        assert_eq!(files.huge_pages_bytes["2MB"], 7);

        // Another kubelet takes over: the unit is there, its limits may not be.
        let again = Slices::new(cgroups.clone(), systemd.clone());
        again.put(&group, &limits).await.unwrap();
        assert_eq!(systemd.calls(), ["start kubepods-poda.slice", "set kubepods-poda.slice"]);
        // Somebody took the group away.
        cgroups.remove(&group).unwrap();
        again.put(&group, &limits).await.unwrap();
        assert!(cgroups.exists(&group));
        drop(systemd.calls());

        again.remove(&group).await.unwrap();
        again.remove(&group).await.unwrap();
        assert_eq!(systemd.calls(), ["stop kubepods-poda.slice"]);
        assert!(!cgroups.exists(&group));
    }
}
