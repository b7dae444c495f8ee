//! What the scheduler looked at, too, as it is now: the operating system, room, labels, taints and ports.

use std::collections::HashSet;
use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{Node, Pod};
use component_helpers::resource_claims::served_by_claim;
use component_helpers::{node_affinity, pod_requests, taints};

use super::{Attempt, Reason, Refusal, Room, Situation};
use crate::pod::is_static;

const OS_LABEL: &str = "kubernetes.io/os";
const NODE_OS: &str = "linux";

pub(super) fn check(attempt: &Attempt<'_>) -> Result<(), Refusal> {
    let Attempt { pod, situation, room, .. } = attempt;
    let Some(node) = situation.node else {
        return Err(Refusal::new(Reason::InvalidNodeInfo, "Kubelet cannot get node info."));
    };
    operating_system(pod)?;
    groups(pod, situation.strict_groups)?;
    if *room == Room::Counted
        && let Some(short) = shortages(pod, node, situation.others, situation.counts_claims).first()
    {
        return Err(short.refusal());
    }
    placement(pod, node, situation)
}

fn operating_system(pod: &Pod) -> Result<(), Refusal> {
    if pod.metadata.labels.get(OS_LABEL).is_some_and(|os| os != NODE_OS) {
        let text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
        return Err(Refusal::new(Reason::PodOsSelectorNodeLabelDoesNotMatch, text));
    }
    if pod.spec.os.as_ref().is_some_and(|os| os.name != NODE_OS) {
        return Err(Refusal::new(
            Reason::PodOsNotSupported,
            "Failed to admit pod as the OS field doesn't match node OS",
        ));
    }
    Ok(())
}

fn groups(pod: &Pod, strict: bool) -> Result<(), Refusal> {
    let policy = pod.spec.security_context.as_ref().and_then(|all| all.supplemental_groups_policy.as_deref());
    if policy == Some("Strict") && !strict {
        let text = "SupplementalGroupsPolicy=Strict is not supported in this node";
        return Err(Refusal::new(Reason::SupplementalGroupsPolicyNotSupported, text));
    }
    Ok(())
}

/// A resource of which there is too little; CPU in thousandths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub name: String,
    requested: i64,
    used: i64,
    capacity: i64,
}

impl Shortage {
    /// What would have to become free.
    pub(crate) fn missing(&self) -> i64 {
        self.requested.saturating_add(self.used).saturating_sub(self.capacity)
    }

    fn refusal(&self) -> Refusal {
        let Self { name, requested, used, capacity } = self;
        let text = format!(
            "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
        );
        Refusal::new(Reason::OutOf(name.clone()), text)
    }
}

/// Everything of which the node has too little for the pod beside the others. `counts_claims` says whether what claims give
/// them is part of it.
pub(crate) fn shortages(pod: &Pod, node: &Node, others: &[Arc<Pod>], counts_claims: bool) -> Vec<Shortage> {
    let allocatable = &node.status.allocatable;
    let mut short = Vec::new();
    if allocatable.is_empty() {
        return short;
    }
    let there = i64::try_from(others.len()).unwrap_or(i64::MAX);
    if let Some(pods) = allocatable.get("pods").filter(|pods| there >= pods.value()) {
        short.push(out_of("pods", 1, there, pods.value()));
    }
    let requests = |pod: &Pod| {
        let claims = &pod.status.node_allocatable_resource_claim_statuses;
        pod_requests::requests_with(pod, &pod_requests::claimed(if counts_claims { claims } else { &[] }))
    };
    let wanted = requests(pod);
    let all: Vec<_> = others.iter().map(|other| requests(other)).collect();
    for (name, amount) in &wanted {
        // What a claim serves does not come out of what the node lists.
        if amount.sign() <= 0 || served_by_claim(pod, name).next().is_some() {
            continue;
        }
        let Some(capacity) = allocatable.get(name) else {
            // What the node does not know of is not the kubelet's to count.
            if name.contains('/') {
                continue;
            }
            short.push(out_of(name, shown(name, amount), 0, 0));
            continue;
        };
        let mut used = Quantity::default();
        for list in &all {
            used.add(&pod_requests::amount(list, name));
        }
        let mut total = used.clone();
        total.add(amount);
        if total > *capacity {
            short.push(out_of(name, shown(name, amount), shown(name, &used), shown(name, capacity)));
        }
    }
    short
}

/// CPU is counted in thousandths.
fn shown(name: &str, amount: &Quantity) -> i64 {
    if name == "cpu" { amount.milli_value() } else { amount.value() }
}

fn out_of(name: &str, requested: i64, used: i64, capacity: i64) -> Shortage {
    Shortage { name: name.to_owned(), requested, used, capacity }
}

fn placement(pod: &Pod, node: &Node, situation: &Situation<'_>) -> Result<(), Refusal> {
    let failed = |reason: Reason, why: &str| Err(Refusal::predicate(reason, why));
    if !node_affinity::accepts(pod, node) {
        return failed(Reason::NodeAffinity, "node(s) didn't match Pod's node affinity/selector");
    }
    if !pod.spec.node_name.is_empty() && pod.spec.node_name != node.metadata.name {
        return failed(Reason::NodeName, "node(s) didn't match the requested node name");
    }
    let taken: HashSet<HostPort> = situation.others.iter().flat_map(|other| host_ports(other)).collect();
    if host_ports(pod).any(|wanted| taken.iter().any(|port| wanted.conflicts(port))) {
        return failed(Reason::NodePorts, "node(s) didn't have free ports for the requested pod ports");
    }
    let (taints, tolerations) = (&node.spec.taints, &pod.spec.tolerations);
    let untolerated = taints::first_untolerated(taints, tolerations, &["NoExecute"], situation.comparing);
    if !is_static(pod) && untolerated.is_some() {
        return failed(Reason::TaintToleration, "node(s) had taints that the pod didn't tolerate");
    }
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct HostPort {
    protocol: String,
    ip: String,
    port: i32,
}

impl HostPort {
    /// An address that means any conflicts with all.
    fn conflicts(&self, other: &Self) -> bool {
        let any = |ip: &str| matches!(ip, "" | "0.0.0.0" | "::");
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || any(&self.ip) || any(&other.ip))
    }
}

fn host_ports(pod: &Pod) -> impl Iterator<Item = HostPort> + '_ {
    let sidecars = pod.spec.init_containers.iter().filter(|init| component_helpers::pod_state::is_sidecar(init));
    let ports = pod.spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    ports.filter(|port| port.host_port > 0).map(|port| HostPort {
        protocol: if port.protocol.is_empty() { "TCP".to_owned() } else { port.protocol.clone() },
        ip: port.host_ip.clone(),
        port: port.host_port,
    })
}
