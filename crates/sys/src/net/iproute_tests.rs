//! What is asked of `ip`, what is made of its answers, and the real thing between two namespaces.

use super::super::{Protocol, Route};
use super::*;
use crate::exec::{FakeExec, LinuxExec};
use crate::netns::{IpNetns, NetNamespaces, path_of};
use crate::test_support::{has_program, is_root};

const ADDRESSES: &str = r#"[{},{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP"],"mtu":65536,"address":"00:00",
    "addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8}]},
    {"ifindex":4,"ifname":"eth0","flags":["BROADCAST","UP"],"mtu":1400,"address":"02:fc:00:00:00:01",
    "addr_info":[{"family":"inet","local":"192.0.2.2","prefixlen":24},{"family":"inet6","local":"fd00::2","prefixlen":64},{}]}]"#;
const ROUTES: &str = r#"[{"dst":"default","gateway":"192.0.2.1","dev":"eth0","flags":[]},
    {"dst":"192.0.2.0/24","dev":"eth0","prefsrc":"192.0.2.2"},{"dst":"unreadable"}]"#;

fn scripted() -> FakeExec {
    FakeExec::new()
        .answer("address show", Output::ok(ADDRESSES))
        .answer("-4 route show", Output::ok(ROUTES))
        .answer("-6 route show", Output::ok(r#"[{"dst":"default","gateway":"fe80::1","dev":"eth0"}]"#))
}

#[tokio::test]
async fn answers_are_read_tolerantly() {
    let network = IpRoute::new(Arc::new(scripted()), None);
    let interfaces = network.interfaces().await.unwrap();
    assert_eq!(interfaces.len(), 2);
    assert_eq!((interfaces[1].index, interfaces[1].mtu, interfaces[1].addresses.len()), (4, 1400, 2));
    assert_eq!(network.routes().await.unwrap().len(), 3);
    assert_eq!(network.default_address(false).await.unwrap(), "192.0.2.2".parse().ok());
    assert_eq!(network.default_address(true).await.unwrap(), "fd00::2".parse().ok());
}

#[tokio::test]
async fn changes_are_spelled_out() {
    let exec = Arc::new(FakeExec::new());
    let network = IpRoute::new(exec.clone(), None);
    let route = Route {
        destination: "10.244.2.0/24".parse().unwrap(),
        gateway: "172.30.0.2".parse().ok(),
        device: None,
        source: None,
    };
    network.set_route(&route).await.unwrap();
    network.add_address("eth0", "fd30::1/64".parse().unwrap()).await.unwrap();
    let stale = Conntrack {
        protocol: Protocol::Udp,
        v6: false,
        original_destination: "10.96.0.10".parse().ok(),
        original_port: Some(53),
        reply_source: "10.0.0.9".parse().ok(),
        reply_port: Some(5353),
    };
    network.forget_connections(&stale).await.unwrap();
    let expected = [
        "ip -4 route replace 10.244.2.0/24 via 172.30.0.2",
        "ip address add fd30::1/64 dev eth0 nodad",
        "conntrack -D -p udp -f ipv4 --orig-dst 10.96.0.10 --orig-port-dst 53 --reply-src 10.0.0.9 \
         --reply-port-src 5353",
    ];
    assert_eq!(exec.lines(), expected);
}

#[tokio::test]
async fn tracked_connections_are_read() {
    let listed = "udp      17 25 src=10.0.0.1 dst=10.96.0.10 sport=45555 dport=53 [UNREPLIED] src=10.0.2.5 dst=10.0.0.1 \
                  sport=5353 dport=45555 mark=0 use=1\nudp 17 not understood\n";
    let exec = Arc::new(FakeExec::new().answer("conntrack -L -p udp -f ipv4", Output::ok(listed)));
    let found = IpRoute::new(exec, None).connections(Protocol::Udp, false).await.unwrap();
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let expected = Tracked {
        original_destination: ip("10.96.0.10"),
        original_port: 53,
        reply_source: ip("10.0.2.5"),
        reply_port: 5353,
    };
    assert_eq!(found, [expected]);
}

/// The kernel's own table, in a namespace of its own: one of two connections is forgotten.
#[tokio::test]
async fn tracked_connections_of_the_machine() {
    const NAME: &str = "coxswain-test-ct";
    if !(is_root() && has_program("ip") && has_program("conntrack")) {
        return;
    }
    let namespaces = IpNetns::new(Arc::new(LinuxExec));
    namespaces.delete(NAME).await.unwrap();
    namespaces.create(NAME).await.unwrap();
    let outcome = track_and_forget(NAME).await;
    namespaces.delete(NAME).await.unwrap();
    if let Some((before, after)) = outcome {
        let answering = |all: &[Tracked]| all.iter().map(|one| one.reply_source.to_string()).collect::<Vec<_>>();
        let mut both = answering(&before);
        both.sort();
        assert_eq!((both, answering(&after)), (vec!["10.0.0.1".into(), "10.0.0.2".into()], vec!["10.0.0.2".into()]));
    }
}

async fn track_and_forget(name: &str) -> Option<(Vec<Tracked>, Vec<Tracked>)> {
    let network = IpRoute::new(Arc::new(LinuxExec), Some(&path_of(name)));
    for (port, answers) in [("1001", "10.0.0.1"), ("1002", "10.0.0.2")] {
        let args = ["-I", "-p", "udp", "-s", "10.9.9.9", "-d", "10.96.0.10", "--sport", port, "--dport", "53"];
        let reply = ["-r", answers, "-q", "10.9.9.9", "--reply-port-src", "53", "--reply-port-dst", port, "-t", "60"];
        let added = network.run("conntrack", &[&args[..], &reply[..]].concat()).await.unwrap();
        if !added.success() {
            test_facts::skipped(&format!("conntrack: {}", added.error_text()));
            return None;
        }
    }
    let before = network.connections(Protocol::Udp, false).await.unwrap();
    let which = Conntrack {
        protocol: Protocol::Udp,
        v6: false,
        original_destination: "10.96.0.10".parse().ok(),
        original_port: Some(53),
        reply_source: "10.0.0.1".parse().ok(),
        reply_port: Some(53),
    };
    network.forget_connections(&which).await.unwrap();
    Some((before, network.connections(Protocol::Udp, false).await.unwrap()))
}

#[tokio::test]
async fn what_is_done_already_is_no_error() {
    let exec = FakeExec::new()
        .answer("link add", Output::failed(2, "RTNETLINK answers: File exists"))
        .answer("link delete", Output::failed(1, "Cannot find device \"x\""))
        .answer("conntrack", Output::failed(1, "conntrack v1.4.7: 0 flow entries have been deleted."))
        .answer("link set", Output::failed(1, "RTNETLINK answers: Operation not permitted"));
    let network = IpRoute::new(Arc::new(exec), None);
    network.add_veth("a", "b", "ns").await.unwrap();
    network.delete_link("x").await.unwrap();
    let any = Conntrack {
        protocol: Protocol::Tcp,
        v6: true,
        original_destination: None,
        original_port: None,
        reply_source: None,
        reply_port: None,
    };
    network.forget_connections(&any).await.unwrap();
    assert!(network.set_up("a").await.is_err());
}

#[tokio::test]
async fn a_pair_of_links_on_the_machine() {
    if !(is_root() && has_program("ip")) {
        return;
    }
    let namespaces = IpNetns::new(Arc::new(LinuxExec));
    for name in ["coxswain-test-a", "coxswain-test-b"] {
        namespaces.delete(name).await.unwrap();
        namespaces.create(name).await.unwrap();
    }
    let outcome = connect().await;
    for name in ["coxswain-test-a", "coxswain-test-b"] {
        namespaces.delete(name).await.unwrap();
    }
    outcome.unwrap();
}

async fn connect() -> Result<(), NetError> {
    let network = IpRoute::new(Arc::new(LinuxExec), Some(&path_of("coxswain-test-a")));
    let far = IpRoute::new(Arc::new(LinuxExec), Some(&path_of("coxswain-test-b")));
    network.add_bridge("br0").await?;
    for _ in 0..2 {
        network.add_veth("v0", "eth0", "coxswain-test-b").await?;
    }
    network.set_master("v0", "br0").await?;
    let address: Address =
        "10.99.0.1/24".parse().map_err(|_| NetError::Exec(ExecError::NotFound { program: "".into() }))?;
    for _ in 0..2 {
        far.add_address("eth0", address).await?;
    }
    far.set_up("eth0").await?;
    let gateway = "10.99.0.254".parse().ok();
    far.set_route(&Route { destination: Destination::default_of(false), gateway, device: None, source: None }).await?;
    assert_eq!(far.default_address(false).await?, Some(address.ip));
    far.delete_route(Destination::default_of(false)).await?;
    far.delete_route(Destination::default_of(false)).await?;
    assert_eq!(far.default_address(false).await?, None);
    network.delete_link("v0").await?;
    network.delete_link("v0").await?;
    assert!(far.interfaces().await?.iter().all(|interface| interface.name != "eth0"));
    Ok(())
}
