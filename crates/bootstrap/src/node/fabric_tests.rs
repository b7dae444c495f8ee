//! What the fabric asks of the machine.

use sys::cgroups::FakeCgroups;
use sys::exec::FakeExec;
use sys::mounts::FakeMounts;

use super::*;

fn config() -> FabricConfig {
    let node = |number: u8| FabricNode {
        number,
        pod_networks: vec![
            format!("10.244.{number}.0/24").parse().unwrap(),
            format!("fd10:{number}::/64").parse().unwrap(),
        ],
    };
    FabricConfig {
        cluster: "dev".to_owned(),
        v4: Ipv4Addr::new(172, 30, 0, 0),
        v6: Some("fd30::".parse().unwrap()),
        host_pod_networks: vec!["10.244.0.0/24".parse().unwrap()],
        nodes: vec![node(1), node(2)],
    }
}

fn machine(exec: &Arc<FakeExec>) -> Machine {
    Machine { exec: exec.clone(), mounts: Arc::new(FakeMounts::new()), cgroups: Arc::new(FakeCgroups::new()) }
}

#[test]
fn addresses_follow_numbers() {
    let texts = |ips: Vec<IpAddr>| ips.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(config().addresses(2)), ["172.30.0.2", "fd30::2"]);
    assert_eq!(texts(config().gateway()), ["172.30.0.254", "fd30::fe"]);
    assert_eq!(texts(FabricConfig { v6: None, ..config() }.gateway()), ["172.30.0.254"]);
}

#[tokio::test]
async fn every_node_knows_the_way_to_the_others() {
    let exec = Arc::new(FakeExec::new());
    Fabric::new(config(), &machine(&exec)).up().await.unwrap();
    let within = |netns: Option<&str>| {
        let wanted = netns.map(path_of);
        let commands = exec.commands().into_iter().filter(move |command| command.netns == wanted);
        commands.map(|command| command.line()).filter(|line| line.contains("route replace")).collect::<Vec<_>>()
    };
    let expected = [
        "ip -4 route replace 0.0.0.0/0 via 172.30.0.254",
        "ip -6 route replace ::/0 via fd30::fe",
        "ip -4 route replace 10.244.0.0/24 via 172.30.0.254",
        "ip -4 route replace 10.244.2.0/24 via 172.30.0.2",
        "ip -6 route replace fd10:2::/64 via fd30::2",
    ];
    assert_eq!(within(Some("dev-1")), expected);
    assert_eq!(within(None).len(), 4, "the machine knows both families of both nodes");
}

#[test]
fn only_what_leaves_the_cluster_is_masqueraded() {
    let script = config().masquerade();
    let set = "{ 10.244.0.0/24, 10.244.1.0/24, 10.244.2.0/24, 172.30.0.0/24 }";
    let rule = format!("ip saddr {set} ip daddr != {set} fib daddr type != local masquerade");
    assert!(script.contains(&rule), "{script}");
    assert!(script.contains("ip6 saddr { fd10:1::/64, fd10:2::/64, fd30::/64 }"), "{script}");
}

#[tokio::test]
async fn impossible_fabrics_are_refused() {
    let exec = Arc::new(FakeExec::new());
    let bad_number = FabricConfig { nodes: vec![FabricNode { number: 254, pod_networks: vec![] }], ..config() };
    for bad in [FabricConfig { cluster: "much-too-long".to_owned(), ..config() }, bad_number] {
        assert!(matches!(Fabric::new(bad, &machine(&exec)).up().await, Err(NodeError::Config(_))));
    }
    assert!(exec.lines().is_empty());
}
