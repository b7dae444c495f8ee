//! The status of a pod, computed from its spec, the runtime's records, probes and failures. Pure.

mod conditions;
mod container_statuses;
mod phase;
mod pod_resources;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use api_machinery::time::Time;
use api_types::core_v1::{Container, HostIP, Pod, PodIP, PodStatus, ResourceRequirements, ResourceStatus};
use component_helpers::qos;

use crate::probe::{ProbeKind, ProbeResult};
use crate::runtime::failure::Failure;
use crate::runtime::record::RuntimePod;

pub(crate) use conditions::{OWNED, refresh_terminal, same_conditions, upsert};
pub(crate) use phase::is_terminal;

/// What probes say, and whether they are at work.
pub(crate) trait ProbeView {
    fn result(&self, kind: ProbeKind, container_id: &str) -> Option<ProbeResult>;
    fn has_worker(&self, container: &str, kind: ProbeKind) -> bool;
    /// The readiness probe of a container has not succeeded yet.
    fn poke(&self, container: &str);
}

/// Everything a status follows from.
pub(crate) struct Inputs<'a> {
    pub pod: &'a Pod,
    /// The status computed last, or the API's where there is none.
    pub old: &'a PodStatus,
    pub seen: &'a RuntimePod,
    pub probes: &'a dyn ProbeView,
    pub failure: &'a dyn Fn(&str) -> Option<Failure>,
    /// Such as `containerd`.
    pub runtime_name: &'a str,
    pub host_ips: &'a [IpAddr],
    /// All containers are stopped for good.
    pub ended: bool,
    pub is_static: bool,
    /// Why the pod fails whatever its containers do: a deadline, an eviction.
    pub forced: Option<&'a Forced>,
    pub resize: &'a Resize,
    /// How the devices are that a container has been given.
    pub resources: &'a dyn Fn(&Container) -> Vec<ResourceStatus>,
    /// What a container was given last, by its name; the pod as a whole has the empty one.
    pub actuated: &'a dyn Fn(&str) -> Option<ResourceRequirements>,
    pub shows: Shown,
    pub now: Time,
}

/// What statuses show where gates say so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown {
    /// Gate `PodReadyToStartContainersCondition` (KEP-3085).
    pub sandbox: bool,
    /// What an earlier kubelet found of containers holds until this one knows; not with the gate
    /// `ChangeContainerStatusOnKubeletRestart` (KEP-4781).
    pub former_readiness: bool,
    /// Gate `ContainerStopSignals`.
    pub stop_signals: bool,
    /// Gate `ImageVolumeWithDigest` (KEP-5365).
    pub image_digests: bool,
    /// Gate `InPlacePodLevelResourcesVerticalScaling`: what the pod as a whole has been given.
    pub pod_resources: bool,
}

/// A failure that comes from outside of the containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forced {
    pub reason: String,
    pub message: String,
    /// The message of a `DisruptionTarget` condition, where one is due.
    pub disruption: Option<String>,
}

/// Why a change of the pod's resources is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub outlook: Outlook,
    pub message: String,
}

/// Whether waiting may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// There may be room later.
    Deferred,
    /// Not unless it asks for something else.
    Infeasible,
}

impl Outlook {
    /// As the condition has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Deferred => "Deferred",
            Self::Infeasible => "Infeasible",
        }
    }
}

/// How far a change of the pod's resources has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resize {
    /// Why it is not accepted.
    pub pending: Option<Pending>,
    /// It was accepted and is not in effect everywhere yet.
    pub in_progress: bool,
    /// Why it cannot be put into effect.
    pub error: Option<String>,
    /// What has it looked at again while it waits.
    pub retry: Retry,
}

impl Resize {
    /// Whether it waits for room.
    pub(crate) fn is_deferred(&self) -> bool {
        self.pending.as_ref().is_some_and(|why| why.outlook == Outlook::Deferred)
    }
}

/// What may have made room for a resize that waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Nothing in particular.
    #[default]
    Periodic,
    /// Another pod's resize.
    PodResized,
    /// Another pod's end.
    PodsRemoved,
}

impl Retry {
    /// As metrics have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Periodic => "periodic_retry",
            Self::PodResized => "pod_resized",
            Self::PodsRemoved => "pods_removed",
        }
    }
}

/// The status to show.
pub(crate) fn compute(inputs: &Inputs<'_>) -> PodStatus {
    let pod = inputs.pod;
    let mut out = container_statuses::compute(inputs);
    let initialized = phase::is_initialized(pod, inputs.seen);
    if inputs.ended {
        container_statuses::finish(pod, &mut out, initialized);
    }
    out.phase = phase::compute(pod, &out, inputs.ended && !inputs.is_static, initialized).to_owned();
    if inputs.ended && !inputs.is_static && !is_terminal(&out.phase) {
        out.phase = "Failed".to_owned();
    }
    keep_terminal(inputs, &mut out);
    if let Some(forced) = inputs.forced.filter(|_| !is_terminal(&inputs.old.phase)) {
        out.phase = "Failed".to_owned();
        out.reason.clone_from(&forced.reason);
        out.message.clone_from(&forced.message);
    }
    addresses(inputs, &mut out);
    out.qos_class = qos::class_of(pod).to_owned();
    out.observed_generation = pod.metadata.generation.max(inputs.old.observed_generation);
    out.start_time = inputs.old.start_time.or(pod.status.start_time).or(Some(inputs.now));
    copy_foreign(pod, &mut out);
    if inputs.shows.pod_resources {
        pod_resources::show(inputs, &mut out);
    }
    out.conditions = conditions::compute(inputs, &out);
    out
}

/// How often a container that nothing is left of has been started anew, the next time included: one that ended is not
/// counted yet, one that was lost or removed is.
pub(crate) fn restarts(status: &PodStatus, container: &str) -> i32 {
    let own = container_statuses::find(status, container);
    own.map_or(0, |own| own.restart_count + i32::from(own.state.terminated.is_some()))
}

/// A terminal phase is never left, and reason and message stay as long as the phase does.
fn keep_terminal(inputs: &Inputs<'_>, out: &mut PodStatus) {
    let of_api = &inputs.pod.status;
    for before in [of_api, inputs.old] {
        if is_terminal(&before.phase) {
            out.phase.clone_from(&before.phase);
            break;
        }
    }
    if out.phase == inputs.old.phase {
        let or_api = |own: &str, api: &str| if own.is_empty() { api.to_owned() } else { own.to_owned() };
        out.reason = or_api(&inputs.old.reason, &of_api.reason);
        out.message = or_api(&inputs.old.message, &of_api.message);
    }
}

fn addresses(inputs: &Inputs<'_>, out: &mut PodStatus) {
    let host_ips: Vec<String> = inputs.host_ips.iter().map(ToString::to_string).collect();
    out.host_ip = host_ips.first().cloned().unwrap_or_default();
    out.host_ips = host_ips.iter().map(|ip| HostIP { ip: ip.clone() }).collect();
    let mut ips: Vec<String> = if inputs.pod.spec.host_network { host_ips } else { inputs.seen.ips.clone() };
    if let Some(first) = inputs.host_ips.first().filter(|_| !inputs.pod.spec.host_network) {
        // The family of the node's first address comes first.
        ips.sort_by_key(|ip| ip.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4() != first.is_ipv4()));
    }
    let (mut v4, mut v6) = (false, false);
    ips.retain(|ip| match ip.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => !std::mem::replace(&mut v4, true),
        Ok(IpAddr::V6(_)) => !std::mem::replace(&mut v6, true),
        Err(_) => false,
    });
    if ips.is_empty() {
        out.pod_ip.clone_from(&inputs.old.pod_ip);
        out.pod_ips.clone_from(&inputs.old.pod_ips);
        return;
    }
    out.pod_ip = ips.first().cloned().unwrap_or_default();
    out.pod_ips = ips.into_iter().map(|ip| PodIP { ip }).collect();
}

/// What others write into a pod's status.
fn copy_foreign(pod: &Pod, out: &mut PodStatus) {
    let of_api = &pod.status;
    out.nominated_node_name.clone_from(&of_api.nominated_node_name);
    out.resource_claim_statuses.clone_from(&of_api.resource_claim_statuses);
    out.extended_resource_claim_status.clone_from(&of_api.extended_resource_claim_status);
    out.node_allocatable_resource_claim_statuses.clone_from(&of_api.node_allocatable_resource_claim_statuses);
}
