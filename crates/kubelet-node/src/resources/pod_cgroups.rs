//! The control groups of pods and their classes: made, limited and taken away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api_types::core_v1::Pod;
use api_types::core_v1::constants::pod_qos_class;
use async_trait::async_trait;
use component_helpers::{pod_requests, qos};
use parking_lot::Mutex;
use sys::cgroups::{CgroupPath, Cgroups, Limit, Limits};
use tokio::time::Instant;

use super::keeper::{Files, Keeper, Slices};
use super::pod::PodLimits;
use super::units::Units;
use super::{CgroupNames, cpu};
use crate::interfaces::{PodCgroups, SideError};

/// How groups are laid out and limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupSettings {
    pub names: CgroupNames,
    /// `cgroupsPerQOS`; without it pods have no groups of their own.
    pub per_class: bool,
    pub limits: PodLimits,
}

impl CgroupSettings {
    pub fn new(names: CgroupNames, per_class: bool, cpu_quota: bool, period: Duration, pids: i64) -> Self {
        let cpu_period_us = i64::try_from(period.as_micros()).unwrap_or(100_000);
        let pids = u64::try_from(pids).ok().filter(|pids| *pids > 0);
        Self { names, per_class, limits: PodLimits { cpu_quota, cpu_period_us, pids } }
    }
}

/// A pod that has a group.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    class: &'static str,
    request_milli: i64,
}

/// Which pods are meant, by uid.
type ByUid = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The groups of a node's pods.
pub struct PodGroups {
    cgroups: Arc<dyn Cgroups>,
    keeper: Box<dyn Keeper>,
    settings: CgroupSettings,
    known: Mutex<BTreeMap<String, Known>>,
    /// Pods whose processor time is not limited.
    unlimited: OnceLock<ByUid>,
    /// What was set last on the group of burstable pods, to write only changes.
    burstable_shares: tokio::sync::Mutex<Option<u64>>,
    /// The pods that were to keep their groups when no other group was left, and when that was.
    swept: Mutex<Option<(BTreeSet<String>, Instant)>>,
}

/// How long groups are believed to be as they were left while no pod comes or goes. They are looked through far more often
/// than that, and every one of them costs a call to the kernel for each hierarchy.
const SWEEP_PERIOD: Duration = Duration::from_secs(60);

impl PodGroups {
    /// Groups that this process makes by the kernel's files.
    pub fn new(cgroups: Arc<dyn Cgroups>, settings: CgroupSettings) -> Arc<Self> {
        let keeper = Box::new(Files::new(cgroups.clone()));
        Self::kept_by(keeper, cgroups, settings)
    }

    /// Groups that systemd makes.
    pub fn of_systemd(cgroups: Arc<dyn Cgroups>, units: Arc<dyn Units>, settings: CgroupSettings) -> Arc<Self> {
        let keeper = Box::new(Slices::new(cgroups.clone(), units));
        Self::kept_by(keeper, cgroups, settings)
    }

    fn kept_by(keeper: Box<dyn Keeper>, cgroups: Arc<dyn Cgroups>, settings: CgroupSettings) -> Arc<Self> {
        let (known, burstable_shares) = (Mutex::default(), tokio::sync::Mutex::default());
        let (unlimited, swept) = (OnceLock::new(), Mutex::default());
        Arc::new(Self { cgroups, keeper, settings, known, unlimited, burstable_shares, swept })
    }

    /// Makes the groups above those of pods and limits all pods together.
    pub async fn start(&self, all_pods: &Limits) -> Result<(), SideError> {
        if !self.settings.per_class {
            return Ok(());
        }
        let names = &self.settings.names;
        let root = names.root();
        if !root.relative().as_os_str().is_empty() && !self.cgroups.exists(&root) {
            self.put(&root, &Limits::default()).await?;
        }
        let all_pods = self.feasible(all_pods.clone());
        self.put(&names.all_pods(), &all_pods).await?;
        let least = Limits { cpu_shares: Some(2), ..Limits::default() };
        self.put(&names.class(pod_qos_class::BEST_EFFORT), &least).await?;
        self.share_burstable().await
    }

    async fn put(&self, group: &CgroupPath, limits: &Limits) -> Result<(), SideError> {
        self.keeper.put(group, limits).await.map_err(|error| SideError::of(&error))
    }

    /// The group of a pod, as the runtime is told it.
    pub fn parent(&self, pod: &Pod) -> String {
        if self.settings.per_class { self.group(pod).to_string() } else { self.settings.names.root().to_string() }
    }

    /// Pods with these uids may use all processor time that there is; only the first call counts.
    pub fn lift_quota(&self, of: impl Fn(&str) -> bool + Send + Sync + 'static) {
        let _ = self.unlimited.set(Box::new(of));
    }

    /// The limits of a pod's group.
    fn limits_of(&self, pod: &Pod) -> Limits {
        let lifted = self.unlimited.get().is_some_and(|of| of(&pod.metadata.uid));
        let mut own = self.settings.limits.of(pod);
        if lifted && own.cpu_quota_us.is_some() {
            own.cpu_quota_us = Some(Limit::Unlimited);
        }
        own
    }

    pub fn limits(&self) -> &PodLimits {
        &self.settings.limits
    }

    pub fn cgroups(&self) -> &dyn Cgroups {
        self.cgroups.as_ref()
    }

    /// The group of all pods.
    pub fn all_pods(&self) -> CgroupPath {
        self.settings.names.all_pods()
    }

    /// The group of a pod.
    pub fn group(&self, pod: &Pod) -> CgroupPath {
        self.settings.names.pod(qos::class_of(pod), &pod.metadata.uid)
    }

    /// Limits of controllers that the machine lacks are left out; whether that is allowed was checked at start.
    fn feasible(&self, mut limits: Limits) -> Limits {
        let controllers = self.cgroups.controllers();
        if !controllers.contains("pids") {
            limits.pids = None;
        }
        if !controllers.contains("hugetlb") {
            limits.huge_pages_bytes.clear();
        }
        limits
    }

    /// Burstable pods together get what they ask for, against guaranteed ones.
    async fn share_burstable(&self) -> Result<(), SideError> {
        // One at a time, so that the last one has seen all pods.
        let mut last = self.burstable_shares.lock().await;
        let burstable = |known: &&Known| known.class == pod_qos_class::BURSTABLE;
        let milli: i64 = self.known.lock().values().filter(burstable).map(|known| known.request_milli).sum();
        let shares = u64::try_from(cpu::shares(milli)).ok();
        if *last == shares {
            return Ok(());
        }
        let limits = Limits { cpu_shares: shares, ..Limits::default() };
        self.put(&self.settings.names.class(pod_qos_class::BURSTABLE), &limits).await?;
        *last = shares;
        Ok(())
    }

    async fn destroy(&self, group: &CgroupPath) -> Result<(), SideError> {
        self.keeper.remove(group).await.map_err(|error| SideError::of(&error))
    }
}

#[async_trait]
impl PodCgroups for PodGroups {
    fn exists(&self, pod: &Pod) -> bool {
        !self.settings.per_class || self.cgroups.exists(&self.group(pod))
    }

    async fn ensure(&self, pod: &Pod) -> Result<(), SideError> {
        if !self.settings.per_class {
            return Ok(());
        }
        let group = self.group(pod);
        let failed = |error: SideError| SideError(format!("failed to create container for {group} : {error}"));
        let limits = self.feasible(self.limits_of(pod));
        self.put(&group, &limits).await.map_err(failed)?;
        let request_milli = pod_requests::amount(&pod_requests::requests(pod), "cpu").milli_value();
        let known = Known { class: qos::class_of(pod), request_milli };
        self.known.lock().insert(pod.metadata.uid.clone(), known);
        self.share_burstable().await.map_err(failed)
    }

    async fn remove(&self, uid: &str) -> Result<(), SideError> {
        if !self.settings.per_class {
            return Ok(());
        }
        // The class may have been computed by an earlier process, so all are looked at.
        for class in [pod_qos_class::GUARANTEED, pod_qos_class::BURSTABLE, pod_qos_class::BEST_EFFORT] {
            self.destroy(&self.settings.names.pod(class, uid)).await?;
        }
        self.known.lock().remove(uid);
        self.share_burstable().await
    }

    async fn clean_orphans(&self, keep: &BTreeSet<String>) {
        let at = Instant::now();
        let is_swept = |(pods, since): &(BTreeSet<String>, Instant)| pods == keep && at - *since < SWEEP_PERIOD;
        if !self.settings.per_class || self.swept.lock().as_ref().is_some_and(is_swept) {
            return;
        }
        let (names, mut all_gone) = (&self.settings.names, true);
        for parent in names.classes() {
            let children = self.cgroups.children(&parent).unwrap_or_default();
            for child in children {
                let orphan = names.uid_of(&child).filter(|uid| !keep.contains(uid));
                let (Some(uid), Some(group)) = (orphan, parent.child(&child)) else { continue };
                match self.destroy(&group).await {
                    Ok(()) => drop(self.known.lock().remove(&uid)),
                    Err(error) => {
                        all_gone = false;
                        tracing::warn!(uid, %error, "The control group of an orphaned pod could not be removed");
                    }
                }
            }
        }
        if let Err(error) = self.share_burstable().await {
            all_gone = false;
            tracing::warn!(%error, "Setting the shares of burstable pods failed");
        }
        *self.swept.lock() = all_gone.then(|| (keep.clone(), at));
    }
}

/// The limits of all pods together: what the node has, less what is kept.
pub fn all_pods_limits(cpu_milli: i64, memory_bytes: i64, pids: Option<u64>) -> Limits {
    Limits {
        cpu_shares: u64::try_from(cpu::shares(cpu_milli)).ok(),
        memory_bytes: u64::try_from(memory_bytes).ok().filter(|bytes| *bytes > 0).map(Limit::To),
        pids: pids.map(Limit::To),
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_types::core_v1::Container;
    use sys::cgroups::FakeCgroups;

    use super::super::Driver;
    use super::super::fake_units::FakeUnits;
    use super::super::units::Value;
    use super::*;

    fn groups() -> (Arc<FakeCgroups>, Arc<PodGroups>) {
        let cgroups = Arc::new(FakeCgroups::new());
        let names = CgroupNames::new(Driver::Cgroupfs, "/").unwrap();
        let settings = CgroupSettings::new(names, true, true, Duration::from_millis(100), -1);
        (cgroups.clone(), PodGroups::new(cgroups, settings))
    }

    fn pod(uid: &str, cpu: &str) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.uid = uid.into();
        let mut container = Container::default();
        if !cpu.is_empty() {
            container.resources.requests.insert("cpu".into(), Quantity::parse(cpu).unwrap());
        }
        pod.spec.containers.push(container);
        pod
    }

    #[tokio::test(start_paused = true)]
    async fn groups_come_and_go_and_share() {
        let (cgroups, groups) = groups();
        groups.start(&all_pods_limits(2000, 1 << 30, None)).await.unwrap();
        let path = |text: &str| CgroupPath::new(text).unwrap();
        let shares = |text: &str| cgroups.limits(&path(text)).unwrap().cpu_shares;
        assert_eq!(cgroups.limits(&path("/kubepods")).unwrap().memory_bytes, Some(Limit::To(1 << 30)));
        assert_eq!((shares("/kubepods"), shares("/kubepods/burstable")), (Some(2048), Some(2)));

        let (one, two, idle) = (pod("one", "500m"), pod("two", "1"), pod("idle", ""));
        assert!(!groups.exists(&one));
        for pod in [&one, &two, &idle] {
            groups.ensure(pod).await.unwrap();
            groups.ensure(pod).await.unwrap();
        }
        assert!(groups.exists(&one));
        assert_eq!(shares("/kubepods/burstable"), Some(1536));
        assert_eq!(shares("/kubepods/burstable/podone"), Some(512));
        assert_eq!(shares("/kubepods/besteffort/podidle"), Some(2));
        assert_eq!(groups.parent(&idle), "/kubepods/besteffort/podidle");

        groups.remove("two").await.unwrap();
        assert_eq!(shares("/kubepods/burstable"), Some(512));
        groups.clean_orphans(&["idle".to_owned()].into()).await;
        assert!(!groups.exists(&one) && groups.exists(&idle));
        groups.remove("two").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn orphans_are_looked_for_when_pods_come_or_go_and_once_in_a_while() {
        let (cgroups, groups) = groups();
        groups.start(&all_pods_limits(2000, 1 << 30, None)).await.unwrap();
        let stray = CgroupPath::new("/kubepods/besteffort/podstray").unwrap();
        let uids = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
        // (pods to keep, seconds since the last time, whether a group that has appeared is looked for)
        for (keep, seconds, found) in [
            (&["a"][..], 0, true),
            (&["a"], 2, false),
            (&["a", "b"], 2, true),
            (&["a"], 2, true),
            (&["a"], 2, false),
            (&["a"], 58, true),
        ] {
            tokio::time::advance(Duration::from_secs(seconds)).await;
            cgroups.create(&stray).unwrap();
            groups.clean_orphans(&uids(keep)).await;
            assert_eq!(!cgroups.exists(&stray), found, "{keep:?} after {seconds} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn systemd_makes_them_where_it_is_to() {
        let (cgroups, systemd) = (Arc::new(FakeCgroups::new()), Arc::new(FakeUnits::default()));
        let names = CgroupNames::new(Driver::Systemd, "/").unwrap();
        let settings = CgroupSettings::new(names, true, true, Duration::from_millis(100), -1);
        let groups = PodGroups::of_systemd(cgroups.clone(), systemd.clone(), settings);
        groups.start(&all_pods_limits(2000, 1 << 30, None)).await.unwrap();
        let one = pod("o-n-e", "500m");
        groups.ensure(&one).await.unwrap();
        let number = |unit: &str, name: &str| match systemd.property(unit, name) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        };
        assert_eq!(number("kubepods.slice", "MemoryMax"), Some(1 << 30));
        assert_eq!(number("kubepods-besteffort.slice", "CPUWeight"), Some(1));
        assert_eq!(number("kubepods-burstable.slice", "CPUWeight"), Some(20));
        assert_eq!(number("kubepods-burstable-podo_n_e.slice", "CPUWeight"), Some(20));
        assert!(cgroups.exists(&groups.group(&one)) && groups.exists(&one));
        groups.clean_orphans(&BTreeSet::new()).await;
        assert_eq!(number("kubepods-burstable-podo_n_e.slice", "CPUWeight"), None);
        assert_eq!(number("kubepods-burstable.slice", "CPUWeight"), Some(1));
    }
}
