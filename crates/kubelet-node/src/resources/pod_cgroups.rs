//! The control groups of pods and their classes: made, limited and taken away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api_types::core_v1::Pod;
use api_types::core_v1::constants::pod_qos_class;
use async_trait::async_trait;
use component_helpers::{pod_requests, qos};
use parking_lot::Mutex;
use sys::cgroups::{CgroupPath, Cgroups, Limit, Limits, Version};
use tokio::time::Instant;

use super::keeper::{Files, Keeper, Slices};
use super::pod::PodLimits;
use super::units::Units;
use super::{CgroupNames, KeptMemory, MemoryReservation, cpu};
use crate::interfaces::{PodCgroups, SideError};

/// How groups are laid out and limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupSettings {
    pub names: CgroupNames,
    /// `cgroupsPerQOS`; without it pods have no groups of their own.
    pub per_class: bool,
    pub limits: PodLimits,
    /// What lower classes leave to higher ones, where they do.
    pub reserve: Option<ClassReserve>,
}

/// How much of what the pods of a class ask for lower classes may not use (gate `QOSReserved`): memory alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassReserve {
    /// 0 to 100.
    pub percent: i64,
    /// What all pods together may use.
    pub of_bytes: i64,
}

impl ClassReserve {
    /// The most that burstable pods and those of best effort may use, by what guaranteed and burstable ones ask for.
    fn limits(&self, guaranteed: i64, burstable: i64) -> [i64; 2] {
        let kept = |asked: i64| asked.saturating_mul(self.percent) / 100;
        let of_burstable = self.of_bytes.saturating_sub(kept(guaranteed)).max(0);
        [of_burstable, of_burstable.saturating_sub(kept(burstable)).max(0)]
    }
}

impl CgroupSettings {
    pub fn new(names: CgroupNames, per_class: bool, cpu_quota: bool, period: Duration, pids: i64) -> Self {
        let cpu_period_us = i64::try_from(period.as_micros()).unwrap_or(100_000);
        let pids = u64::try_from(pids).ok().filter(|pids| *pids > 0);
        let reservation = MemoryReservation::None;
        Self { names, per_class, limits: PodLimits { cpu_quota, cpu_period_us, pids, reservation }, reserve: None }
    }
}

/// A pod that has a group.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    class: &'static str,
    request_milli: i64,
    request_bytes: i64,
}

/// Which pods are meant.
type OfPod = Box<dyn Fn(&Pod) -> bool + Send + Sync>;
type TellKept = Box<dyn Fn(KeptMemory) + Send + Sync>;

/// The groups of a node's pods.
pub struct PodGroups {
    cgroups: Arc<dyn Cgroups>,
    keeper: Box<dyn Keeper>,
    settings: CgroupSettings,
    known: Mutex<BTreeMap<String, Known>>,
    /// Pods whose processor time is not limited.
    unlimited: OnceLock<OfPod>,
    /// Who hears how much memory is kept for all pods together.
    kept: OnceLock<TellKept>,
    /// Held while what classes have is set, so that who comes last has seen all pods.
    sharing: tokio::sync::Mutex<()>,
    /// The pods that were to keep their groups when no other group was left, and when that was.
    swept: Mutex<Option<(BTreeSet<String>, Instant)>>,
}

/// What pods of best effort share of the processors.
const LEAST_SHARES: u64 = 2;
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
        let (known, sharing) = (Mutex::default(), tokio::sync::Mutex::default());
        let (unlimited, kept, swept) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Arc::new(Self { cgroups, keeper, settings, known, unlimited, kept, sharing, swept })
    }

    /// Makes the groups above those of pods.
    ///
    /// # Errors
    /// One cannot be made, without which no pod can be.
    pub async fn start(&self) -> Result<(), SideError> {
        if !self.settings.per_class {
            return Ok(());
        }
        let names = &self.settings.names;
        for group in [names.root(), names.all_pods()] {
            if !group.relative().as_os_str().is_empty() && !self.cgroups.exists(&group) {
                self.put(&group, &Limits::default()).await?;
            }
        }
        self.share().await
    }

    /// Limits all pods together.
    ///
    /// # Errors
    /// The kernel does not take the limits, as where pods use more than that now.
    pub(super) async fn limit_all(&self, all_pods: &Limits) -> Result<(), SideError> {
        self.put(&self.settings.names.all_pods(), &self.feasible(all_pods.clone())).await
    }

    /// Whether pods have groups of their own.
    pub(super) fn are_kept(&self) -> bool {
        self.settings.per_class
    }

    /// What the group of all pods is called in events.
    pub(super) fn name_of_all(&self) -> String {
        self.settings.names.name_of_all()
    }

    async fn put(&self, group: &CgroupPath, limits: &Limits) -> Result<(), SideError> {
        self.keeper.put(group, limits).await.map_err(|error| SideError::of(&error))
    }

    /// The group of a pod, as the runtime is told it.
    pub fn parent(&self, pod: &Pod) -> String {
        if self.settings.per_class { self.group(pod).to_string() } else { self.settings.names.root().to_string() }
    }

    /// These pods may use all processor time that there is; only the first call counts.
    pub fn lift_quota(&self, of: impl Fn(&Pod) -> bool + Send + Sync + 'static) {
        let _ = self.unlimited.set(Box::new(of));
    }

    /// Lets somebody hear how much memory is kept for guaranteed and for burstable pods; only the first call counts.
    pub fn tell_kept(&self, tell: impl Fn(KeptMemory) + Send + Sync + 'static) {
        let _ = self.kept.set(Box::new(tell));
    }

    /// The limits of a pod's group.
    fn limits_of(&self, pod: &Pod) -> Limits {
        let lifted = self.unlimited.get().is_some_and(|of| of(pod));
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

    /// Classes together get what their pods ask for, and leave to higher ones what they are to.
    async fn share(&self) -> Result<(), SideError> {
        let _last = self.sharing.lock().await;
        let [guaranteed, burstable] =
            [pod_qos_class::GUARANTEED, pod_qos_class::BURSTABLE].map(|class| self.asked(class));
        let least = Limits { cpu_shares: Some(LEAST_SHARES), ..Limits::default() };
        let shares = u64::try_from(cpu::shares(burstable.request_milli)).ok();
        let mut classes = [
            (pod_qos_class::BURSTABLE, Limits { cpu_shares: shares, ..Limits::default() }),
            (pod_qos_class::BEST_EFFORT, least),
        ];
        if self.cgroups.version() == Version::V2 && self.cgroups.controllers().contains("memory") {
            let low_bytes = self.keep_memory(guaranteed.request_bytes, burstable.request_bytes).await?;
            classes[0].1.memory_low_bytes = Some(low_bytes);
        }
        let reserve = self.settings.reserve.filter(|reserve| reserve.of_bytes > 0);
        let limits = reserve.map(|reserve| reserve.limits(guaranteed.request_bytes, burstable.request_bytes));
        for (index, (class, mut own)) in classes.into_iter().enumerate() {
            let group = self.settings.names.class(class);
            own.memory_bytes =
                limits.and_then(|limits| limits.get(index).copied()).map(|most| self.bounded(&group, most));
            self.put(&group, &own).await?;
        }
        Ok(())
    }

    /// What the pods of a class ask for together.
    fn asked(&self, class: &'static str) -> Known {
        let mut sum = Known { class, request_milli: 0, request_bytes: 0 };
        for known in self.known.lock().values().filter(|known| known.class == class) {
            sum.request_milli = sum.request_milli.saturating_add(known.request_milli);
            sum.request_bytes = sum.request_bytes.saturating_add(known.request_bytes);
        }
        sum
    }

    /// Keeps memory for all pods, and nothing where that is not wanted: a kubelet before may have. What is kept for the
    /// group of burstable pods comes back. A group has no more of either kind than the one above it.
    async fn keep_memory(&self, guaranteed: i64, burstable: i64) -> Result<u64, SideError> {
        let reservation = self.settings.limits.reservation;
        let min_bytes = reservation.of(pod_qos_class::GUARANTEED, guaranteed).min_bytes;
        let low_bytes = reservation.of(pod_qos_class::BURSTABLE, burstable).low_bytes;
        let all_pods = Limits {
            memory_min_bytes: Some(min_bytes.saturating_add(low_bytes)),
            memory_low_bytes: Some(low_bytes),
            ..Limits::default()
        };
        self.put(&self.settings.names.all_pods(), &all_pods).await?;
        if let Some(tell) = self.kept.get() {
            tell(KeptMemory { min_bytes, low_bytes });
        }
        Ok(low_bytes)
    }

    /// A limit on memory. What is in use and cannot be dropped stays: the kernel would kill for a limit below, so that it
    /// only does not grow.
    fn bounded(&self, group: &CgroupPath, most: i64) -> Limit {
        let used = self.cgroups.usage(group).map(|usage| usage.working_set_bytes).unwrap_or_default();
        Limit::To(u64::try_from(most).unwrap_or_default().max(used))
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
        let requests = pod_requests::requests(pod);
        let known = Known {
            class: qos::class_of(pod),
            request_milli: pod_requests::amount(&requests, "cpu").milli_value(),
            request_bytes: pod_requests::amount(&requests, "memory").value(),
        };
        self.known.lock().insert(pod.metadata.uid.clone(), known);
        self.share().await.map_err(failed)
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
        self.share().await
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
        if let Err(error) = self.share().await {
            all_gone = false;
            tracing::warn!(%error, "Setting what classes of pods share failed");
        }
        *self.swept.lock() = all_gone.then(|| (keep.clone(), at));
    }
}

/// The limits of all pods together: what the node has, less what is kept.
pub fn all_pods_limits(cpu_milli: i64, memory_bytes: i64, pids: Option<u64>) -> Limits {
    Limits {
        cpu_shares: u64::try_from(cpu::shares(cpu_milli)).ok(),
        memory_bytes: u64::try_from(memory_bytes).ok().filter(|bytes| *bytes > 0).map(Limit::To),
        pids: pids.filter(|pids| *pids > 0).map(Limit::To),
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

    /// A pod that asks for a processor and for memory; with a limit it is guaranteed where both are the same.
    fn with_memory(uid: &str, request: &str, limit: &str) -> Pod {
        let mut pod = pod(uid, "1");
        let own = &mut pod.spec.containers[0].resources;
        own.requests.insert("memory".into(), Quantity::parse(request).unwrap());
        if !limit.is_empty() {
            own.limits = own.requests.clone();
            own.limits.insert("memory".into(), Quantity::parse(limit).unwrap());
        }
        pod
    }

    #[tokio::test(start_paused = true)]
    async fn groups_come_and_go_and_share() {
        let (cgroups, groups) = groups();
        groups.start().await.unwrap();
        groups.limit_all(&all_pods_limits(2000, 1 << 30, None)).await.unwrap();
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
    async fn lower_classes_leave_memory_to_higher_ones() {
        const MI: i64 = 1 << 20;
        let cgroups = Arc::new(FakeCgroups::new());
        let names = CgroupNames::new(Driver::Cgroupfs, "/").unwrap();
        let mut settings = CgroupSettings::new(names, true, true, Duration::from_millis(100), -1);
        settings.reserve = Some(ClassReserve { percent: 50, of_bytes: 1000 * MI });
        let groups = PodGroups::new(cgroups.clone(), settings);
        groups.start().await.unwrap();
        groups.limit_all(&all_pods_limits(2000, 1 << 30, None)).await.unwrap();
        let limits = || {
            ["burstable", "besteffort"].map(|class| {
                let group = CgroupPath::new(&format!("/kubepods/{class}")).unwrap();
                match cgroups.limits(&group).unwrap().memory_bytes {
                    Some(Limit::To(bytes)) => i64::try_from(bytes).unwrap() / MI,
                    other => panic!("{class} {other:?}"),
                }
            })
        };
        assert_eq!(limits(), [1000, 1000]);
        groups.ensure(&with_memory("g", "200Mi", "200Mi")).await.unwrap();
        assert_eq!(limits(), [900, 900]);
        groups.ensure(&with_memory("b", "400Mi", "")).await.unwrap();
        assert_eq!(limits(), [900, 700]);
        let shares = cgroups.limits(&CgroupPath::new("/kubepods/burstable").unwrap()).unwrap().cpu_shares;
        assert_eq!(shares, Some(1024), "what else is set stays");
        let (best_effort, bytes) = (CgroupPath::new("/kubepods/besteffort").unwrap(), 950 << 20);
        cgroups.set_usage(&best_effort, sys::cgroups::Usage { working_set_bytes: bytes, ..Default::default() });
        groups.remove("b").await.unwrap();
        assert_eq!(limits(), [900, 950], "nobody is killed for it");
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_kept_for_pods_and_no_longer_when_they_are_gone() {
        const MI: u64 = 1 << 20;
        let cgroups = Arc::new(FakeCgroups::new());
        let path = |text: &str| CgroupPath::new(text).unwrap();
        let stale = Limits { memory_min_bytes: Some(7), memory_low_bytes: Some(7), ..Limits::default() };
        for group in ["/kubepods", "/kubepods/burstable"].map(path) {
            cgroups.create(&group).unwrap();
            cgroups.apply(&group, &stale).unwrap();
        }
        let kept = |text: &str| {
            let limits = cgroups.limits(&path(text)).unwrap();
            [limits.memory_min_bytes, limits.memory_low_bytes].map(|bytes| bytes.map(|bytes| bytes / MI))
        };
        let make = |reservation| {
            let names = CgroupNames::new(Driver::Cgroupfs, "/").unwrap();
            let mut settings = CgroupSettings::new(names, true, true, Duration::from_millis(100), -1);
            settings.limits.reservation = reservation;
            PodGroups::new(cgroups.clone(), settings)
        };
        make(MemoryReservation::None).start().await.unwrap();
        assert_eq!(kept("/kubepods"), [Some(0), Some(0)], "what a kubelet before kept is no longer");
        assert_eq!(cgroups.limits(&path("/kubepods/burstable")).unwrap().memory_low_bytes, Some(0));

        let groups = make(MemoryReservation::Tiered);
        let told = Arc::new(Mutex::new(KeptMemory::default()));
        let tell = told.clone();
        groups.tell_kept(move |kept| *tell.lock() = kept);
        groups.start().await.unwrap();
        let full = with_memory("g", "200Mi", "200Mi");
        for pod in [&full, &with_memory("b", "300Mi", ""), &pod("idle", "")] {
            groups.ensure(pod).await.unwrap();
        }
        assert_eq!(kept("/kubepods"), [Some(500), Some(300)]);
        assert_eq!(kept("/kubepods/burstable")[1], Some(300));
        assert_eq!(
            (kept("/kubepods/podg"), kept("/kubepods/burstable/podb")),
            ([Some(200), Some(0)], [Some(0), Some(300)])
        );
        assert_eq!(kept("/kubepods/besteffort/podidle"), [None, None]);
        assert_eq!(*told.lock(), KeptMemory { min_bytes: 200 * MI, low_bytes: 300 * MI });
        groups.remove("b").await.unwrap();
        assert_eq!((kept("/kubepods"), kept("/kubepods/burstable")[1]), ([Some(200), Some(0)], Some(0)));
        assert_eq!(*told.lock(), KeptMemory { min_bytes: 200 * MI, low_bytes: 0 });
    }

    #[tokio::test(start_paused = true)]
    async fn orphans_are_looked_for_when_pods_come_or_go_and_once_in_a_while() {
        let (cgroups, groups) = groups();
        groups.start().await.unwrap();
        groups.limit_all(&all_pods_limits(2000, 1 << 30, None)).await.unwrap();
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
        groups.start().await.unwrap();
        groups.limit_all(&all_pods_limits(2000, 1 << 30, None)).await.unwrap();
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
