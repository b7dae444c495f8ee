//! The managers of devices, processors, memory and their topology, as the configuration wants them on this machine.

use std::path::Path;
use std::sync::Arc;

use api_machinery::quantity::Quantity;
use component_base::serving::BoxError;
use component_base::{Gates, Lifecycle};
use sys::cpu_set::CpuSet;
use sys::exec::LinuxExec;
use sys::topology::Topology;

use crate::config::{Plan, gates};
use crate::devices::Devices;
use crate::metrics::KubeletMetrics;
use crate::node::Facts;
use crate::resources::PodGroups;
use kubelet_node::cpus::{AllowedOptions, CpuPolicy, CpuSettings, Cpus, Processors};
use kubelet_node::memory::{MemoryNodes, MemorySettings, Reserved};
use kubelet_node::topology::{Policy, TopologyManager, TopologyParts, TopologySettings};
use kubelet_node::user_namespaces::{USUAL_IDS, UserNamespaces};

/// Why the managers cannot be as they are asked to be, in upstream's words.
#[derive(Debug, thiserror::Error)]
enum SetupError {
    #[error("reading the machine's topology: {0}")]
    Machine(#[from] std::io::Error),
    #[error("unable to parse reservedSystemCPUs (--reserved-cpus) {text:?}: {source}")]
    ReservedCpus { text: String, source: sys::cpu_set::CpuSetError },
    #[error("reserved-cpus: {reserved} is not a subset of online-cpus: {online}")]
    NotOnline { reserved: CpuSet, online: CpuSet },
    #[error("unknown policy: {0:?}")]
    MemoryPolicy(String),
}

/// `reservedSystemCPUs`; none where it is empty.
pub(crate) fn reserved_cpus(text: &str) -> Result<Option<CpuSet>, BoxError> {
    if text.is_empty() {
        return Ok(None);
    }
    let set = text.parse().map_err(|source| SetupError::ReservedCpus { text: text.to_owned(), source })?;
    Ok(Some(set))
}

/// The managers of this machine. Pods that have processors for themselves are not held to a quota by `groups`.
///
/// # Errors
/// The configuration contradicts itself or the machine.
pub(crate) fn make(
    plan: &Plan,
    lifecycle: &Lifecycle,
    facts: &Facts,
    devices: &Arc<Devices>,
    groups: &PodGroups,
    metrics: &Arc<KubeletMetrics>,
) -> Result<Arc<TopologyManager>, BoxError> {
    let (config, root) = (&plan.config, &plan.node.root_dir);
    let settings = TopologySettings::parse(
        &config.topology_manager_policy,
        &config.topology_manager_scope,
        &config.topology_manager_policy_options,
    )?;
    let cpus = cpu_settings(plan, lifecycle.gates())?;
    let pod_level = lifecycle.gates().enabled(gates::POD_LEVEL_MANAGERS);
    let memory = match config.memory_manager_policy.as_str() {
        "" | "None" => false,
        "Static" => true,
        other => return Err(SetupError::MemoryPolicy(other.to_owned()).into()),
    };
    let idle = settings.policy == Policy::None && cpus.policy == CpuPolicy::None && cpus.reserved.is_none() && !memory;
    // A machine that does not tell is no obstacle where nobody has to know.
    let topology = if idle { Topology::default() } else { Topology::system().map_err(SetupError::Machine)? };
    settings.check(&topology.nodes.keys().copied().collect::<Vec<_>>())?;
    if let Some(reserved) = &cpus.reserved {
        check_online(reserved, &topology)?;
    }
    let mut memory_settings = MemorySettings { reserved: None, pod_level };
    if memory {
        let kept = plan.node.reservations.kept(&facts.capacity(&plan.node));
        memory_settings.reserved = Some(Reserved::new(&topology, &config.reserved_memory, &kept)?);
    }
    let manager = TopologyManager::new(TopologyParts {
        settings,
        cpus: Cpus::new(root, cpus, &Processors::new(&topology), metrics.clone())?,
        memory: MemoryNodes::new(root, &memory_settings, metrics.clone()),
        topology,
        pod_level,
        devices: devices.clone(),
        counts: metrics.clone(),
        clock: lifecycle.clock().clone(),
    });
    if lifecycle.gates().enabled(gates::DISABLE_CPU_QUOTA) {
        let manager = manager.clone();
        groups.lift_quota(move |pod| manager.cpus.has_exclusive(pod));
    }
    Ok(manager)
}

/// Ids for pods with a namespace of users of their own.
///
/// # Errors
/// The machine's do not suffice, or which ids pods have is not known.
pub(crate) async fn user_namespaces(plan: &Plan) -> Result<UserNamespaces, BoxError> {
    let asked = plan.config.user_namespaces.as_ref().and_then(|asked| asked.ids_per_pod);
    let length = asked.and_then(|ids| u32::try_from(ids).ok()).unwrap_or(USUAL_IDS);
    let (root, most_pods) = (&plan.node.root_dir, plan.pods.max_pods);
    Ok(UserNamespaces::new(root, Path::new("/"), length, most_pods, &LinuxExec).await?)
}

fn cpu_settings(plan: &Plan, set: &Gates) -> Result<CpuSettings, BoxError> {
    let config = &plan.config;
    let allowed = AllowedOptions {
        alpha: set.enabled(gates::CPU_POLICY_ALPHA_OPTIONS),
        beta: set.enabled(gates::CPU_POLICY_BETA_OPTIONS),
    };
    Ok(CpuSettings {
        policy: CpuPolicy::parse(&config.cpu_manager_policy, &config.cpu_manager_policy_options, allowed)?,
        reserved_milli: plan.node.reservations.reserved.get("cpu").map_or(0, Quantity::milli_value),
        reserved: reserved_cpus(&config.reserved_system_cpus)?,
        pod_level: set.enabled(gates::POD_LEVEL_MANAGERS),
    })
}

fn check_online(reserved: &CpuSet, topology: &Topology) -> Result<(), SetupError> {
    let online: CpuSet = topology.processors.keys().copied().collect();
    if reserved.is_subset(&online) {
        return Ok(());
    }
    Err(SetupError::NotOnline { reserved: reserved.clone(), online })
}

#[cfg(test)]
mod tests {
    use sys::topology::Processor;

    use super::*;

    #[test]
    fn reserved_processors_must_be_there() {
        assert!(reserved_cpus("").unwrap().is_none());
        let error = reserved_cpus("0-").unwrap_err().to_string();
        assert_eq!(error, "unable to parse reservedSystemCPUs (--reserved-cpus) \"0-\": \"\" is no number");
        let place = Processor { core: 0, socket: 0, node: 0, cache: 0 };
        let topology = Topology { processors: [(0, place), (1, place)].into(), ..Topology::default() };
        let check = |text: &str| {
            let reserved = reserved_cpus(text).unwrap().unwrap();
            check_online(&reserved, &topology).map_err(|error| error.to_string())
        };
        assert_eq!(check("0-1"), Ok(()));
        assert_eq!(check("1-2"), Err("reserved-cpus: 1-2 is not a subset of online-cpus: 0-1".to_owned()));
    }
}
