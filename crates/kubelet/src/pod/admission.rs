//! Whether a pod may run on this node. Pure; the first refusal decides.

use std::collections::HashSet;
use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{AppArmorProfile, Node, Pod, Taint, Toleration};
use component_helpers::{node_affinity, pod_requests, qos, taints};

use super::containers::members;
use super::{is_critical, is_static};

/// Why a pod may not run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Refusal {
    fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }

    /// The attempt to make room failed.
    pub(crate) fn unexpected(error: &str) -> Self {
        let text = format!("Unexpected error while attempting to recover from admission failure: {error}");
        Self::new("UnexpectedAdmissionError", text)
    }

    /// Whether only room is missing.
    pub(crate) fn is_shortage(&self) -> bool {
        self.reason.starts_with("OutOf")
    }

    /// Whether reading the node anew may change the verdict.
    pub(crate) fn may_be_stale(&self) -> bool {
        self.reason == NODE_AFFINITY
    }
}

const NODE_AFFINITY: &str = "NodeAffinity";
const OS_LABEL: &str = "kubernetes.io/os";
const NODE_OS: &str = "linux";
const MEMORY_PRESSURE: &str = "MemoryPressure";

/// What the verdict follows from.
pub(crate) struct Situation<'a> {
    pub(crate) node: Option<&'a Node>,
    /// Pods that run here, without the one in question.
    pub(crate) others: &'a [Arc<Pod>],
    /// Pressure conditions that are on.
    pub(crate) pressures: &'a [String],
    pub(crate) shutting_down: bool,
    /// Patterns of sysctls that are allowed though not safe.
    pub(crate) unsafe_sysctls: &'a [String],
    /// Whether the runtime can keep to the listed groups.
    pub(crate) strict_groups: bool,
    /// Whether AppArmor profiles mean something here.
    pub(crate) enforces_app_armor: bool,
    /// What the node declares; `None` where that does not count.
    pub(crate) declared_features: Option<&'a [String]>,
}

/// `Ok` where the pod may run.
pub(crate) fn admit(pod: &Pod, situation: &Situation<'_>) -> Result<(), Refusal> {
    pressure(pod, situation)?;
    sysctls(pod, situation.unsafe_sysctls)?;
    let Some(node) = situation.node else {
        return Err(Refusal::new("InvalidNodeInfo", "Kubelet cannot get node info."));
    };
    operating_system(pod)?;
    let groups = pod.spec.security_context.as_ref().and_then(|all| all.supplemental_groups_policy.as_deref());
    if groups == Some("Strict") && !situation.strict_groups {
        let text = "SupplementalGroupsPolicy=Strict is not supported in this node";
        return Err(Refusal::new("SupplementalGroupsPolicyNotSupported", text));
    }
    fits(pod, node, situation.others)?;
    placed(pod, node, situation)
}

/// What beside room the node must have for the pod.
pub(crate) fn placed(pod: &Pod, node: &Node, situation: &Situation<'_>) -> Result<(), Refusal> {
    placement(pod, node, situation.others)?;
    app_armor(pod, situation.enforces_app_armor)?;
    if let Some(declared) = situation.declared_features {
        features(pod, declared)?;
    }
    if situation.shutting_down {
        return Err(Refusal::new("NodeShutdown", "Pod was rejected as the node is shutting down."));
    }
    Ok(())
}

fn pressure(pod: &Pod, situation: &Situation<'_>) -> Result<(), Refusal> {
    if situation.pressures.is_empty() || is_critical(pod) {
        return Ok(());
    }
    if situation.pressures == [MEMORY_PRESSURE] {
        let taint =
            Taint { key: "node.kubernetes.io/memory-pressure".into(), effect: "NoSchedule".into(), ..Taint::default() };
        if qos::class_of(pod) != "BestEffort" || taints::any_tolerates(&pod.spec.tolerations, &taint) {
            return Ok(());
        }
    }
    let text = format!("The node had condition: [{}]. ", situation.pressures.join(" "));
    Err(Refusal::new("Evicted", text))
}

/// Sysctls that only touch the pod's own namespaces.
const SAFE_SYSCTLS: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

fn sysctls(pod: &Pod, allowed_unsafe: &[String]) -> Result<(), Refusal> {
    let wanted = pod.spec.security_context.iter().flat_map(|context| &context.sysctls);
    for sysctl in wanted {
        let name = sysctl.name.replace('/', ".");
        let allowed = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => *pattern == name,
        };
        if !SAFE_SYSCTLS.contains(&name.as_str()) && !allowed_unsafe.iter().any(allowed) {
            return Err(Refusal::new("SysctlForbidden", format!("forbidden sysctl: {name:?} not allowlisted")));
        }
        let ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|prefix| name.starts_with(prefix));
        let ipc = ipc || name == "kernel.sem";
        let shared = if ipc && pod.spec.host_ipc {
            "ipc"
        } else if name.starts_with("net.") && pod.spec.host_network {
            "net"
        } else {
            continue;
        };
        let text = format!("forbidden sysctl: {name:?} not allowed with host {shared} enabled");
        return Err(Refusal::new("SysctlForbidden", text));
    }
    Ok(())
}

fn operating_system(pod: &Pod) -> Result<(), Refusal> {
    if pod.metadata.labels.get(OS_LABEL).is_some_and(|os| os != NODE_OS) {
        let text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
        return Err(Refusal::new("PodOSSelectorNodeLabelDoesNotMatch", text));
    }
    if pod.spec.os.as_ref().is_some_and(|os| os.name != NODE_OS) {
        return Err(Refusal::new("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"));
    }
    Ok(())
}

/// Whether the node has room for what the pod asks beside the others.
pub(crate) fn fits(pod: &Pod, node: &Node, others: &[Arc<Pod>]) -> Result<(), Refusal> {
    shortages(pod, node, others).first().map_or(Ok(()), |first| Err(first.refusal()))
}

/// A resource of which there is too little; CPU in thousandths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) name: String,
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
        Refusal::new(format!("OutOf{name}"), text)
    }
}

/// Everything of which the node has too little for the pod beside the others.
pub(crate) fn shortages(pod: &Pod, node: &Node, others: &[Arc<Pod>]) -> Vec<Shortage> {
    let allocatable = &node.status.allocatable;
    let mut short = Vec::new();
    if allocatable.is_empty() {
        return short;
    }
    let there = i64::try_from(others.len()).unwrap_or(i64::MAX);
    if let Some(pods) = allocatable.get("pods").filter(|pods| there >= pods.value()) {
        short.push(out_of("pods", 1, there, pods.value()));
    }
    let wanted = pod_requests::requests(pod);
    let all: Vec<_> = others.iter().map(|other| pod_requests::requests(other)).collect();
    for (name, amount) in &wanted {
        if amount.sign() <= 0 {
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

fn placement(pod: &Pod, node: &Node, others: &[Arc<Pod>]) -> Result<(), Refusal> {
    let failed = |name: &str, why: &str| Err(Refusal::new(name, format!("Predicate {name} failed: {why}")));
    if !node_affinity::accepts(pod, node) {
        return failed(NODE_AFFINITY, "node(s) didn't match Pod's node affinity/selector");
    }
    if !pod.spec.node_name.is_empty() && pod.spec.node_name != node.metadata.name {
        return failed("NodeName", "node(s) didn't match the requested node name");
    }
    let taken: HashSet<HostPort> = others.iter().flat_map(|other| host_ports(other)).collect();
    if host_ports(pod).any(|wanted| taken.iter().any(|port| wanted.conflicts(port))) {
        return failed("NodePorts", "node(s) didn't have free ports for the requested pod ports");
    }
    let tolerations: &[Toleration] = &pod.spec.tolerations;
    if !is_static(pod) && taints::first_untolerated(&node.spec.taints, tolerations, &["NoExecute"]).is_some() {
        return failed("TaintToleration", "node(s) had taints that the pod didn't tolerate");
    }
    Ok(())
}

/// Profiles need a kernel that knows them. Pods that run already are not asked again.
fn app_armor(pod: &Pod, enforced: bool) -> Result<(), Refusal> {
    let of_pod = pod.spec.security_context.iter().filter_map(|context| context.app_armor_profile.as_ref());
    let contexts = members(pod).filter_map(|member| member.container.security_context.clone());
    let of_containers = contexts.filter_map(|context| context.app_armor_profile.clone());
    let mut profiles: Vec<AppArmorProfile> = of_pod.cloned().chain(of_containers).collect();
    profiles.retain(|profile| profile.type_ != "Unconfined");
    let pending = matches!(pod.status.phase.as_str(), "" | "Pending");
    if profiles.is_empty() || !pending {
        return Ok(());
    }
    let failed = |why: &str| Err(Refusal::new("AppArmor", format!("Cannot enforce AppArmor: {why}")));
    if !enforced {
        return failed("AppArmor is not enabled on the host");
    }
    let nameless = |profile: &AppArmorProfile| {
        profile.type_ == "Localhost" && profile.localhost_profile.as_deref().is_none_or(|name| name.trim().is_empty())
    };
    if profiles.iter().any(nameless) { failed("invalid empty AppArmor profile name: \"\"") } else { Ok(()) }
}

type Needed = fn(&Pod) -> bool;

/// Features of nodes, and which pods need them.
const FEATURES: [(&str, Needed); 2] = [
    ("RestartAllContainersOnContainerExits", |pod| {
        let mut rules = members(pod).flat_map(|member| member.container.restart_policy_rules.clone());
        rules.any(|rule| rule.action == "RestartAllContainers")
    }),
    ("UserNamespacesHostNetworkSupport", |pod| pod.spec.host_network && pod.spec.host_users == Some(false)),
];

fn features(pod: &Pod, declared: &[String]) -> Result<(), Refusal> {
    let needed = FEATURES.into_iter().filter(|(_, needs)| needs(pod)).map(|(name, _)| name);
    let missing: Vec<&str> = needed.filter(|name| !declared.iter().any(|own| own == name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("Pod requires node features that are not available: {}", missing.join(", "));
    Err(Refusal::new("PodFeatureUnsupported", text))
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

#[cfg(test)]
mod tests {
    use api_types::core_v1::{Container, ContainerPort, PodSecurityContext, Sysctl};

    use super::*;

    fn node() -> Node {
        let mut node = Node::default();
        node.metadata.name = "n".into();
        for (name, amount) in [("cpu", "2"), ("memory", "1Gi"), ("pods", "2")] {
            node.status.allocatable.insert(name.into(), Quantity::parse(amount).unwrap());
        }
        node
    }

    fn pod(cpu: &str, host_port: i32) -> Pod {
        let mut container = Container::default();
        container.resources.requests.insert("cpu".into(), Quantity::parse(cpu).unwrap());
        container.ports.push(ContainerPort { host_port, container_port: 80, ..ContainerPort::default() });
        let mut pod = Pod::default();
        pod.spec.containers.push(container);
        pod
    }

    fn reason(pod: &Pod, node: &Node, others: &[Arc<Pod>], pressures: &[String]) -> String {
        let situation = Situation {
            node: Some(node),
            others,
            pressures,
            shutting_down: false,
            unsafe_sysctls: &["kernel.msg*".to_owned()],
            strict_groups: false,
            enforces_app_armor: false,
            declared_features: Some(&[]),
        };
        admit(pod, &situation)
            .err()
            .map(|refusal| format!("{}: {}", refusal.reason, refusal.message))
            .unwrap_or_default()
    }

    #[test]
    fn resources_and_ports() {
        let other = [Arc::new(pod("1500m", 8080))];
        assert_eq!(reason(&pod("500m", 0), &node(), &other, &[]), "");
        assert_eq!(
            reason(&pod("600m", 0), &node(), &other, &[]),
            "OutOfcpu: Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000"
        );
        assert!(reason(&pod("1m", 8080), &node(), &other, &[]).starts_with("NodePorts: Predicate NodePorts failed"));
        let full = [Arc::new(pod("0", 0)), Arc::new(pod("0", 0))];
        assert!(reason(&pod("0", 0), &node(), &full, &[]).starts_with("OutOfpods"));
    }

    #[test]
    fn selectors_taints_and_names() {
        let mut wanted = pod("0", 0);
        wanted.spec.node_selector.insert("disk".into(), "ssd".into());
        assert!(reason(&wanted, &node(), &[], &[]).starts_with("NodeAffinity"));
        let mut wanted = pod("0", 0);
        wanted.spec.node_name = "other".into();
        assert!(reason(&wanted, &node(), &[], &[]).starts_with("NodeName"));
        let mut tainted = node();
        tainted.spec.taints.push(Taint { key: "k".into(), effect: "NoExecute".into(), ..Taint::default() });
        assert!(reason(&pod("0", 0), &tainted, &[], &[]).starts_with("TaintToleration"));
        let mut fixed = pod("0", 0);
        fixed.metadata.annotations.insert(super::super::CONFIG_SOURCE.into(), "file".into());
        assert_eq!(reason(&fixed, &tainted, &[], &[]), "");
    }

    #[test]
    fn profiles_and_features() {
        let spec = |text: &str| -> Pod {
            let text = format!("{{\"spec\": {{\"containers\": [{{\"name\": \"main\"}}], {text}}}}}");
            api_machinery::object::from_json(text.as_bytes()).unwrap().0
        };
        let profile = |kind: &str| {
            spec(&format!(
                "\"initContainers\": [{{\"securityContext\": {{\"appArmorProfile\": {{\"type\": \"{kind}\"}}}}}}]"
            ))
        };
        let none = "AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host";
        let of_pod = spec("\"securityContext\": {\"appArmorProfile\": {\"type\": \"RuntimeDefault\"}}");
        let mut running = of_pod.clone();
        running.status.phase = "Running".into();
        let rules = "\"initContainers\": [{\"restartPolicyRules\": [{\"action\": \"RestartAllContainers\"}]}]";
        let users = "\"hostNetwork\": true, \"hostUsers\": false";
        let missing = "PodFeatureUnsupported: Pod requires node features that are not available: ";
        let (restart, network) = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport");
        let cases = [
            (profile("Unconfined"), String::new()),
            (profile("RuntimeDefault"), none.to_owned()),
            (of_pod, none.to_owned()),
            (running, String::new()),
            (spec(rules), format!("{missing}{restart}")),
            (spec(&format!("{rules}, {users}")), format!("{missing}{restart}, {network}")),
        ];
        for (pod, expected) in cases {
            assert_eq!(reason(&pod, &node(), &[], &[]), expected);
        }
        let nameless = profile("Localhost");
        assert_eq!(
            app_armor(&nameless, true).unwrap_err().message.split(": ").nth(1),
            Some("invalid empty AppArmor profile name")
        );
        assert_eq!(features(&spec(rules), &[restart.to_owned()]), Ok(()));
    }

    #[test]
    fn pressure_and_sysctls() {
        let memory = ["MemoryPressure".to_owned()];
        let mut best_effort = pod("0", 0);
        best_effort.spec.containers[0].resources.requests.clear();
        assert_eq!(reason(&best_effort, &node(), &[], &memory), "Evicted: The node had condition: [MemoryPressure]. ");
        assert_eq!(reason(&pod("1m", 0), &node(), &[], &memory), "");
        assert!(reason(&pod("1m", 0), &node(), &[], &["DiskPressure".to_owned()]).starts_with("Evicted"));
        for (name, host_network, expected) in [
            ("net.ipv4.tcp_syncookies", false, ""),
            (
                "net.ipv4.tcp_syncookies",
                true,
                "SysctlForbidden: forbidden sysctl: \"net.ipv4.tcp_syncookies\" not allowed with host net enabled",
            ),
            ("kernel.msgmax", false, ""),
            ("vm.swappiness", false, "SysctlForbidden: forbidden sysctl: \"vm.swappiness\" not allowlisted"),
        ] {
            let mut wanted = pod("0", 0);
            wanted.spec.host_network = host_network;
            let sysctls = vec![Sysctl { name: name.into(), value: "1".into() }];
            wanted.spec.security_context = Some(PodSecurityContext { sysctls, ..PodSecurityContext::default() });
            assert_eq!(reason(&wanted, &node(), &[], &[]), expected);
        }
    }
}
