//! What the handlers of a node answer, all together and in order.

use api_machinery::quantity::Quantity;
use api_types::core_v1::{
    Container, ContainerExtendedResourceRequest, ContainerPort, NodeAllocatableResourceClaimStatus,
    PodExtendedResourceClaimStatus, PodSecurityContext, Sysctl, Taint, Toleration,
};

use super::*;
use crate::pod::CONFIG_SOURCE;

pub(super) fn node() -> Node {
    let mut node = Node::default();
    node.metadata.name = "n".into();
    for (name, amount) in [("cpu", "2"), ("memory", "1Gi"), ("pods", "2")] {
        node.status.allocatable.insert(name.into(), Quantity::parse(amount).unwrap());
    }
    node
}

pub(super) fn pod(cpu: &str, host_port: i32) -> Pod {
    let mut container = Container::default();
    container.resources.requests.insert("cpu".into(), Quantity::parse(cpu).unwrap());
    container.ports.push(ContainerPort { host_port, container_port: 80, ..ContainerPort::default() });
    let mut pod = Pod::default();
    pod.spec.containers.push(container);
    pod
}

/// A node without anything special, with `others` on it.
pub(super) fn quiet<'a>(node: &'a Node, others: &'a [Arc<Pod>]) -> Situation<'a> {
    Situation {
        node: Some(node),
        others,
        pressures: &[],
        shutting_down: false,
        unsafe_sysctls: &[],
        strict_groups: false,
        comparing: Comparing::Texts,
        enforces_app_armor: false,
        pod_level_resources: true,
        counts_claims: false,
        declared_features: Some(&[]),
    }
}

fn ask(pod: &Pod, situation: Situation<'_>) -> Result<(), Refusal> {
    let dir = tempfile::tempdir().unwrap();
    let admission = Admission::new(&Arc::new(Allocations::new(dir.path())), None);
    let attempt = Attempt { pod, operation: Operation::Add, room: Room::Counted, situation };
    admission.admit(&attempt).map(Admitted::commit)
}

fn reason(pod: &Pod, node: &Node, others: &[Arc<Pod>], pressures: &[String]) -> String {
    let allowed = ["kernel.msg*".to_owned()];
    let situation = Situation { pressures, unsafe_sysctls: &allowed, ..quiet(node, others) };
    let refused = ask(pod, situation).err();
    refused.map(|refusal| format!("{}: {}", refusal.reason, refusal.message)).unwrap_or_default()
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
fn what_claims_give_takes_up_room() {
    let claimed = |cpu: &str| {
        let mut own = pod("500m", 0);
        let resources = [("cpu".to_owned(), Quantity::parse(cpu).unwrap())].into();
        let status = NodeAllocatableResourceClaimStatus { resources, ..Default::default() };
        own.status.node_allocatable_resource_claim_statuses.push(status);
        own
    };
    let node = node();
    for (wanted, other, expected) in [
        (claimed("1"), pod("500m", 0), ""),
        (claimed("1100m"), pod("500m", 0), "cpu, requested: 1600, used: 500, capacity: 2000"),
        (pod("500m", 0), claimed("1100m"), "cpu, requested: 500, used: 1600, capacity: 2000"),
    ] {
        let others = [Arc::new(other)];
        let counting = Situation { counts_claims: true, ..quiet(&node, &others) };
        let refused = ask(&wanted, counting).err().map(|refusal| refusal.message).unwrap_or_default();
        assert!(refused.ends_with(expected) && refused.is_empty() == expected.is_empty(), "{refused}");
        assert_eq!(ask(&wanted, quiet(&node, &others)), Ok(()), "nobody counts them");
    }
}

#[test]
fn what_a_claim_serves_is_not_counted() {
    const GPU: &str = "example.com/gpu";
    let (one, mut node, mut wanted) = (Quantity::parse("1").unwrap(), node(), pod("0", 0));
    node.status.allocatable.insert(GPU.into(), Quantity::parse("0").unwrap());
    wanted.spec.containers[0].resources.requests.insert(GPU.into(), one);
    assert!(reason(&wanted, &node, &[], &[]).starts_with("OutOfexample.com/gpu"));
    wanted.status.extended_resource_claim_status = Some(PodExtendedResourceClaimStatus {
        request_mappings: vec![ContainerExtendedResourceRequest { resource_name: GPU.into(), ..Default::default() }],
        resource_claim_name: "claim".into(),
    });
    assert_eq!(reason(&wanted, &node, &[], &[]), "");
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
    tainted.spec.taints[0].value = "5".into();
    let mut comparing = pod("0", 0);
    let own = Toleration { key: "k".into(), operator: "Lt".into(), value: "10".into(), ..Toleration::default() };
    comparing.spec.tolerations.push(own);
    assert!(reason(&comparing, &tainted, &[], &[]).starts_with("TaintToleration"));
    assert_eq!(ask(&comparing, Situation { comparing: Comparing::Numbers, ..quiet(&tainted, &[]) }), Ok(()));
    let mut fixed = pod("0", 0);
    fixed.metadata.annotations.insert(CONFIG_SOURCE.into(), "file".into());
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
    let node = node();
    let enforcing = Situation { enforces_app_armor: true, ..quiet(&node, &[]) };
    let refused = ask(&profile("Localhost"), enforcing).unwrap_err();
    assert_eq!(refused.message, "Cannot enforce AppArmor: invalid empty AppArmor profile name: \"\"");
    let ungated = Situation { pod_level_resources: false, ..quiet(&node, &[]) };
    let whole = spec("\"resources\": {\"limits\": {\"cpu\": \"1\"}}");
    assert_eq!(ask(&pod("0", 0), ungated), Ok(()));
    let refused = ask(&whole, ungated).unwrap_err();
    assert_eq!(refused.reason, Reason::PodLevelResourcesNotSupported);
    assert_eq!(refused.message, "PodLevelResources feature gate is disabled");
    assert_eq!(ask(&whole, quiet(&node, &[])), Ok(()));
    let declared = [restart.to_owned()];
    let declaring = Situation { declared_features: Some(&declared), ..quiet(&node, &[]) };
    assert_eq!(ask(&spec(rules), declaring), Ok(()));
    let leaving = Situation { shutting_down: true, ..quiet(&node, &[]) };
    assert_eq!(ask(&pod("0", 0), leaving).unwrap_err().reason, Reason::NodeShutdown);
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
