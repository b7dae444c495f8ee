//! The control groups of pods and containers: whose driver makes them, and what they are limited to.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::GoDuration;
use component_base::serving::BoxError;
use node_api::cri::{Code, CriClient, CriError, Runtime as _};
use sys::cgroups::{Cgroups, Version};

use crate::config::{LIMITED_SWAP, Plan};
use crate::host;
use crate::metrics::KubeletMetrics;
use crate::node::Facts;
use crate::resources::container::ContainerLimits;
use crate::resources::swap::SwapBehavior;
use crate::resources::{ClassReserve, Driver, MemoryQos, PodGroups, Systemd};

/// How often the runtime is asked for its cgroup driver, and the pause in between.
const DRIVER_TRIES: usize = 3;
const DRIVER_PAUSE: Duration = Duration::from_secs(2);
/// From this version of upstream on, a runtime must tell its driver of control groups.
const DRIVER_REQUIRED_FROM: &str = "1.37.0";

pub(super) fn container_limits(plan: &Plan, facts: &Facts, cgroups: &dyn Cgroups) -> ContainerLimits {
    let config = &plan.config;
    let version = cgroups.version();
    let period = config.cpu_cfs_quota_period.map_or(Duration::from_millis(100), GoDuration::to_std);
    let (memory, swap) =
        facts.proc().memory().map(|memory| (memory.total_bytes, memory.swap_total_bytes)).unwrap_or_default();
    ContainerLimits {
        cpu_quota: config.cpu_cfs_quota != Some(false),
        cpu_period_us: i64::try_from(period.as_micros()).unwrap_or(100_000),
        version,
        swap_accounting: host::counts_swap(version),
        swap: match config.memory_swap.swap_behavior.as_str() {
            LIMITED_SWAP => SwapBehavior::Limited { swap_bytes: i64::try_from(swap).unwrap_or(i64::MAX) },
            _ => SwapBehavior::NoSwap,
        },
        single_process_oom_kill: config.single_process_oom_kill.unwrap_or(version == Version::V1),
        huge_pages: facts.huge_page_names(),
        memory_capacity: i64::try_from(memory).unwrap_or(i64::MAX),
        memory_qos: plan.throttling_factor.map(|throttling_factor| MemoryQos {
            throttling_factor,
            allocatable_bytes: plan.allocatable_bytes(facts),
            reservation: plan.memory_reservation,
        }),
    }
}

/// The groups of pods, made by the driver.
pub(super) async fn pod_groups(
    plan: &Plan,
    facts: &Facts,
    cgroups: Arc<dyn Cgroups>,
    driver: Driver,
    metrics: &Arc<KubeletMetrics>,
) -> Result<Arc<PodGroups>, BoxError> {
    let mut settings = plan.cgroups(driver).ok_or("invalid cgroup root")?;
    settings.reserve =
        plan.reserved_percent.map(|percent| ClassReserve { percent, of_bytes: plan.allocatable_bytes(facts) });
    settings.limits.reservation = plan.memory_reservation;
    let groups = match driver {
        Driver::Cgroupfs => PodGroups::new(cgroups, settings),
        Driver::Systemd => PodGroups::of_systemd(cgroups, Arc::new(systemd().await?), settings),
    };
    if plan.throttling_factor.is_some() {
        let metrics = metrics.clone();
        groups.tell_kept(move |kept| metrics.kept_memory(kept));
    }
    Ok(groups)
}

/// The machine's systemd, which the driver of this name needs.
async fn systemd() -> Result<Systemd, BoxError> {
    let failed = |error| {
        format!(
            "the cgroup driver is systemd, by the runtime's word or cgroupDriver, but {error}; on a machine without \
             systemd, set both to cgroupfs"
        )
    };
    Ok(Systemd::connect().await.map_err(failed)?)
}

/// What the runtime says wins; one that does not know the question leaves it to the configuration.
pub(super) async fn cgroup_driver(
    runtime: &CriClient,
    plan: &Plan,
    metrics: &KubeletMetrics,
) -> Result<Driver, BoxError> {
    use node_api::cri::v1::CgroupDriver;
    let configured = Driver::from_name(&plan.config.cgroup_driver).ok_or("unknown cgroup driver")?;
    let mut last = None;
    for _ in 0..DRIVER_TRIES {
        match runtime.runtime_config().await {
            Ok(answer) => {
                let driver = answer.linux.map(|linux| linux.cgroup_driver());
                return Ok(match driver {
                    Some(CgroupDriver::Systemd) => Driver::Systemd,
                    Some(CgroupDriver::Cgroupfs) => Driver::Cgroupfs,
                    None => configured,
                });
            }
            Err(CriError::Rpc { code: Code::Unimplemented, .. }) => {
                tracing::warn!(
                    "CRI implementation should be updated to support RuntimeConfig. Falling back to the configured cgroup driver"
                );
                metrics.losing_support.with(&[DRIVER_REQUIRED_FROM]).set(1.0);
                return Ok(configured);
            }
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(DRIVER_PAUSE).await;
    }
    Err(last.map_or_else(|| "no answer".into(), Into::into))
}
