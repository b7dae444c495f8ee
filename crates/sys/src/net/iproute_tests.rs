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
        reply_source: None,
    };
    network.forget_connections(&stale).await.unwrap();
    let expected = [
        "ip -4 route replace 10.244.2.0/24 via 172.30.0.2",
        "ip address add fd30::1/64 dev eth0 nodad",
        "conntrack -D -p udp -f ipv4 --orig-dst 10.96.0.10 --orig-port-dst 53",
    ];
    assert_eq!(exec.lines(), expected);
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
    };
    network.forget_connections(&any).await.unwrap();
    assert!(network.set_up("a").await.is_err());
}

#[tokio::test]
async fn a_pair_of_links_on_the_machine() {
    if !(is_root("net") && has_program("net", "ip")) {
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
