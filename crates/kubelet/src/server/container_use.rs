//! What containers use of processors and memory, by their control groups. The runtime has these figures from the same
//! files, but calls a process of each pod for them, and whoever follows the node asks several times a minute.
//!
//! The runtime is asked all the same where a group does not tell: where there is none, as of containers in a machine of
//! their own, where nothing ever ran in it, and where what runs is not known. The gate `PodAndContainerStatsFromCRI`
//! (<https://kep.k8s.io/2371>) leaves groups alone.

use std::sync::Arc;

use api_types::core_v1::Pod;
use kubelet_pods::runtime::labels;
use node_api::cri::CriError;
use node_api::cri::v1::{ContainerAttributes, ContainerStats, CpuUsage, MemoryUsage, UInt64Value};
use sys::cgroups::{CgroupPath, Cgroups, Limit};

use super::cadvisor::container_group;
use super::figures::{Figures, Source};
use super::{Api, PodEngine};
use crate::resources::PodGroups;

/// Reads a group; `None` where it does not tell.
type Read = fn(&dyn Cgroups, &CgroupPath) -> Option<(CpuUsage, MemoryUsage)>;

/// A container that runs.
struct Running {
    pod: Arc<Pod>,
    name: String,
    id: String,
}

/// What all containers use.
///
/// # Errors
/// The runtime has to be asked and does not answer.
pub(super) async fn figures(api: &Api, read: Read) -> Result<Figures, CriError> {
    if api.source == Source::Groups
        && let Some(running) = running(&api.engine)
    {
        let groups = Arc::clone(&api.stats.groups);
        let read_all = move || running.iter().map(|one| of_container(&groups, one, read)).collect::<Option<Vec<_>>>();
        if let Ok(Some(containers)) = tokio::task::spawn_blocking(read_all).await {
            return Ok(Figures::of_containers(containers));
        }
    }
    Figures::ask(&*api.runtime, api.source).await
}

/// The containers of active pods that run, as they were last seen; `None` where that is not known.
fn running(engine: &PodEngine) -> Option<Vec<Running>> {
    if !engine.sees_runtime() {
        return None;
    }
    let mut all = Vec::new();
    for pod in engine.active_pods() {
        let Some(seen) = engine.seen(&pod.metadata.uid) else { continue };
        let own = seen.running().map(|record| (record.name.clone(), record.id.clone()));
        all.extend(own.map(|(name, id)| Running { pod: Arc::clone(&pod), name, id }));
    }
    Some(all)
}

/// As the runtime would tell it, as far as anybody reads it.
fn of_container(groups: &PodGroups, running: &Running, read: Read) -> Option<ContainerStats> {
    let Running { pod, name, id } = running;
    let (cpu, memory) = read(groups.cgroups(), &container_group(groups, pod, id)?)?;
    let own = [(labels::POD_UID, &pod.metadata.uid), (labels::CONTAINER_NAME, name)];
    let labels = own.map(|(label, value)| (label.to_owned(), value.clone())).into();
    let attributes = ContainerAttributes { id: id.clone(), labels, ..ContainerAttributes::default() };
    Some(ContainerStats {
        attributes: Some(attributes),
        cpu: Some(cpu),
        memory: Some(memory),
        ..ContainerStats::default()
    })
}

/// Processor time and the working set.
pub(super) fn brief(cgroups: &dyn Cgroups, group: &CgroupPath) -> Option<(CpuUsage, MemoryUsage)> {
    let usage = cgroups.cpu_and_memory(group).ok()?;
    is_told(usage.cpu_ns, usage.memory_bytes).then(|| {
        let memory = MemoryUsage { working_set_bytes: number(usage.working_set_bytes), ..MemoryUsage::default() };
        (processor_time(usage.cpu_ns), memory)
    })
}

/// That, and more of memory.
pub(super) fn whole(cgroups: &dyn Cgroups, group: &CgroupPath) -> Option<(CpuUsage, MemoryUsage)> {
    let usage = cgroups.usage(group).ok().filter(|usage| is_told(usage.cpu_ns, usage.memory_bytes))?;
    let limit = match cgroups.details(group).memory?.bytes {
        Limit::To(limit) => Some(limit),
        Limit::Unlimited => None,
    };
    let memory = MemoryUsage {
        working_set_bytes: number(usage.working_set_bytes),
        available_bytes: limit.and_then(|limit| number(limit.saturating_sub(usage.working_set_bytes))),
        usage_bytes: number(usage.memory_bytes),
        rss_bytes: number(usage.rss_bytes),
        page_faults: number(usage.page_faults),
        major_page_faults: number(usage.major_page_faults),
        ..MemoryUsage::default()
    };
    Some((processor_time(usage.cpu_ns), memory))
}

/// Whatever runs has taken some time and some memory. A group without is not the container's (gVisor makes such for those
/// who look for groups), is gone, or is not counted.
fn is_told(cpu_ns: u64, memory_bytes: u64) -> bool {
    cpu_ns > 0 && memory_bytes > 0
}

fn processor_time(cpu_ns: u64) -> CpuUsage {
    CpuUsage { usage_core_nano_seconds: number(cpu_ns), ..CpuUsage::default() }
}

fn number(value: u64) -> Option<UInt64Value> {
    Some(UInt64Value { value })
}
