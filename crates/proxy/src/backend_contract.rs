//! What every backend has to do, told by packets: a table of Services, and what becomes of packets to them. Played over
//! the model, and over the text that the nftables backend writes.

use std::net::SocketAddr;

use super::model::Model;
use super::*;
use crate::endpoints::Endpoint;
use crate::nftables::packet_tests::NftKernel;
use crate::service::PortKey;

/// The addresses of the node in all tests.
const NODE_ADDRESSES: [&str; 2] = ["203.0.113.9", "fd00::203:0:113:9"];

/// Whether the node itself has an address.
pub(crate) fn is_local_address(address: IpAddr) -> bool {
    address.is_loopback() || NODE_ADDRESSES.iter().any(|own| own.parse() == Ok(address))
}

/// Where a packet comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A program in the node's own network.
    Node,
    /// Through an interface of this name.
    Interface(&'static str),
}

/// The first packet of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    pub(crate) origin: Origin,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) port: u16,
    /// In lower case.
    pub(crate) protocol: &'static str,
}

/// What becomes of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    Untouched,
    Dropped,
    Rejected,
    /// To any of these; and whether it then seems to come from the node.
    To(BTreeSet<(SocketAddr, bool)>),
}

/// Something that takes rules, and packets after them.
pub(crate) trait Kernel {
    /// A backend that begins on whatever is there.
    fn backend(&self) -> Box<dyn Backend>;
    /// From now on rules are refused, or taken again.
    fn refuse(&self, refuses: bool);
    fn fate(&self, packet: &Packet) -> Fate;
}

fn kernels() -> [(&'static str, Box<dyn Kernel>); 2] {
    [("model", Box::new(Model::default())), ("nftables", Box::new(NftKernel::default()))]
}

fn options() -> RuleOptions {
    RuleOptions {
        family: Family::V4,
        mark: 0x4000,
        masquerade_all: false,
        local_detector: Some(LocalDetector::Network("10.0.0.0/16".into())),
        node_ports: NodePorts::All,
        node_ip: "203.0.113.9".parse().ok(),
        service_cidrs: Vec::new(),
    }
}

/// A load balancer's port at 10.96.0.1, 192.0.2.1, 198.51.100.1 and 30080 with an endpoint here and one elsewhere.
fn route() -> Route {
    let (here, there) = (endpoint("10.0.0.1", true), endpoint("10.0.1.1", false));
    let port = ServedPort {
        key: PortKey { namespace: "n".into(), name: "web".into(), port: String::new(), protocol: "TCP".into() },
        cluster_ip: "10.96.0.1".parse().unwrap(),
        port: 80,
        node_port: 30_080,
        external_ips: vec!["192.0.2.1".parse().unwrap()],
        load_balancer_ips: vec!["198.51.100.1".parse().unwrap()],
        source_ranges: Vec::new(),
        external_local: false,
        internal_local: false,
        affinity_seconds: None,
        health_check_port: 0,
    };
    Route { port, endpoints: Selection { local: vec![here.clone()], cluster: vec![here, there], any: true } }
}

fn endpoint(address: &str, local: bool) -> Endpoint {
    Endpoint {
        address: address.parse().unwrap(),
        port: 8080,
        local,
        ready: true,
        serving: true,
        terminating: false,
        zones: Vec::new(),
        nodes: Vec::new(),
    }
}

fn routes(name: &str, route: Route) -> Routes {
    [(ObjectKey::new("n", name), vec![route])].into()
}

/// `pod`, `client` or `node` to `address:port`.
fn packet(from: &str, to: &str) -> Packet {
    let to: SocketAddr = to.parse().unwrap();
    let (origin, source) = match from {
        "node" => (Origin::Node, "203.0.113.9"),
        "pod" => (Origin::Interface("veth1"), "10.0.0.7"),
        "endpoint" => (Origin::Interface("veth0"), "10.0.0.1"),
        "near" => (Origin::Interface("eth0"), "203.0.113.77"),
        _ => (Origin::Interface("eth0"), "198.18.0.1"),
    };
    Packet { origin, source: source.parse().unwrap(), destination: to.ip(), port: to.port(), protocol: "tcp" }
}

/// As the tables write it: `here` and `there`, with `*` where the packet seems to come from the node.
fn shown(fate: &Fate) -> String {
    match fate {
        Fate::Untouched => "untouched".into(),
        Fate::Dropped => "dropped".into(),
        Fate::Rejected => "rejected".into(),
        Fate::To(all) => {
            let name = |to: &SocketAddr| if to.to_string() == "10.0.0.1:8080" { "here" } else { "there" };
            let one =
                |(to, masqueraded): &(SocketAddr, bool)| format!("{}{}", name(to), if *masqueraded { "*" } else { "" });
            all.iter().map(one).collect::<Vec<_>>().join(" ")
        }
    }
}

const CLUSTER: &str = "10.96.0.1:80";
const EXTERNAL: &str = "192.0.2.1:80";
const BALANCER: &str = "198.51.100.1:80";
const NODE_PORT: &str = "203.0.113.9:30080";

type Case = (&'static str, fn(&mut RuleOptions, &mut Route), &'static [(&'static str, &'static str, &'static str)]);

/// A name, what is other than usual, and packets with their fates.
const CASES: &[Case] = &[
    (
        "as usual",
        |_, _| {},
        &[
            ("pod", CLUSTER, "here there"),
            ("client", CLUSTER, "here* there*"),
            ("endpoint", CLUSTER, "here* there"),
            ("client", EXTERNAL, "here* there*"),
            ("pod", BALANCER, "here* there*"),
            ("client", NODE_PORT, "here* there*"),
            ("node", NODE_PORT, "here* there*"),
            ("client", "203.0.113.9:80", "untouched"),
            ("pod", "10.96.0.1:81", "rejected"),
            ("pod", "10.96.0.2:80", "untouched"),
        ],
    ),
    ("sticky", |_, route| route.port.affinity_seconds = Some(60), &[("pod", CLUSTER, "here there")]),
    ("masquerade all", |options, _| options.masquerade_all = true, &[("pod", CLUSTER, "here* there*")]),
    (
        "nothing tells pods",
        |options, _| options.local_detector = None,
        &[("client", CLUSTER, "here there"), ("endpoint", CLUSTER, "here* there")],
    ),
    (
        "pods by their bridge",
        |options, _| options.local_detector = Some(LocalDetector::Interface("veth1".into())),
        &[("pod", CLUSTER, "here there"), ("endpoint", CLUSTER, "here* there*")],
    ),
    (
        "pods by the prefix of their interfaces",
        |options, _| options.local_detector = Some(LocalDetector::InterfacePrefix("veth".into())),
        &[("pod", CLUSTER, "here there"), ("client", CLUSTER, "here* there*")],
    ),
    (
        "outside traffic stays here",
        |_, route| route.port.external_local = true,
        &[
            ("client", BALANCER, "here"),
            ("pod", BALANCER, "here there"),
            ("node", BALANCER, "here* there*"),
            ("client", NODE_PORT, "here"),
            ("pod", CLUSTER, "here there"),
        ],
    ),
    (
        "outside traffic would stay here, but nobody is",
        |_, route| {
            route.port.external_local = true;
            route.endpoints.local.clear();
        },
        &[("client", BALANCER, "dropped"), ("pod", BALANCER, "here there"), ("client", NODE_PORT, "dropped")],
    ),
    ("inside traffic stays here", |_, route| route.port.internal_local = true, &[("pod", CLUSTER, "here")]),
    (
        "inside traffic would stay here, but nobody is",
        |_, route| {
            route.port.internal_local = true;
            route.endpoints.local.clear();
        },
        &[("pod", CLUSTER, "dropped"), ("client", BALANCER, "here* there*")],
    ),
    (
        "nobody anywhere",
        |_, route| route.endpoints = Selection::default(),
        &[
            ("pod", CLUSTER, "rejected"),
            ("client", EXTERNAL, "rejected"),
            ("client", NODE_PORT, "rejected"),
            ("node", NODE_PORT, "rejected"),
        ],
    ),
    (
        "sources of the load balancer",
        |_, route| route.port.source_ranges = vec!["203.0.113.64/26".into()],
        &[("client", BALANCER, "dropped"), ("near", BALANCER, "here* there*"), ("client", EXTERNAL, "here* there*")],
    ),
    (
        "node ports at other addresses",
        |options, _| options.node_ports = NodePorts::Addresses(["192.168.0.1".parse().unwrap()].into()),
        &[("client", NODE_PORT, "untouched"), ("client", "192.168.0.1:30080", "here* there*")],
    ),
    (
        "networks of cluster addresses",
        |options, _| options.service_cidrs = vec!["10.96.0.0/24".into(), "10.97.0.0/24".into()],
        &[
            ("pod", "10.97.0.2:80", "dropped"),
            ("pod", "10.96.0.1:81", "rejected"),
            ("pod", "10.98.0.2:80", "untouched"),
        ],
    ),
];

fn check(kernel: &dyn Kernel, at: &str, packets: &[(&str, &str, &str)]) {
    for (from, to, expected) in packets {
        assert_eq!(shown(&kernel.fate(&packet(from, to))), *expected, "{at}: {from} to {to}");
    }
}

#[tokio::test(start_paused = true)]
async fn packets_go_where_services_promise() {
    for (name, change, packets) in CASES {
        for (kind, kernel) in kernels() {
            let (mut options, mut other) = (options(), route());
            change(&mut options, &mut other);
            let (now, at) = (Instant::now(), format!("{kind}, {name}"));
            kernel.backend().replace(&options, routes("web", other.clone()), now).await.unwrap();
            check(kernel.as_ref(), &at, packets);
            // The same by way of the usual, which another process left behind.
            let mut backend = kernel.backend();
            backend.replace(&options, routes("web", route()), now).await.unwrap();
            backend.change(&options, routes("web", other), now).await.unwrap();
            check(kernel.as_ref(), &format!("{at}, changed"), packets);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_leaves_no_trace() {
    for (kind, kernel) in kernels() {
        let (mut backend, mut now) = (kernel.backend(), Instant::now());
        let gone: Routes = [(ObjectKey::new("n", "web"), Vec::new())].into();
        backend.replace(&options(), routes("web", route()), now).await.unwrap();
        backend.change(&options(), gone, now).await.unwrap();
        let packets =
            [("pod", CLUSTER, "untouched"), ("client", BALANCER, "untouched"), ("client", NODE_PORT, "untouched")];
        check(kernel.as_ref(), kind, &packets);
        for _ in 0..60 {
            now += std::time::Duration::from_secs(1);
            backend.collect(&options(), now).await.unwrap();
        }
        assert!(!backend.has_stale(), "{kind}");
        backend.change(&options(), routes("web", route()), now).await.unwrap();
        check(kernel.as_ref(), kind, &[("pod", CLUSTER, "here there")]);
        kernel.backend().replace(&options(), Routes::new(), now).await.unwrap();
        check(kernel.as_ref(), kind, &packets);
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_that_claim_an_address_the_last_by_name_has_it_until_it_goes() {
    for (kind, kernel) in kernels() {
        let (mut backend, now) = (kernel.backend(), Instant::now());
        let mut other = route();
        (other.port.key.name, other.port.cluster_ip) = ("xyz".into(), "10.96.0.2".parse().unwrap());
        other.endpoints.cluster.remove(0);
        backend.replace(&options(), routes("xyz", other), now).await.unwrap();
        backend.change(&options(), routes("web", route()), now).await.unwrap();
        check(kernel.as_ref(), kind, &[("client", BALANCER, "there*"), ("client", CLUSTER, "here* there*")]);
        backend.change(&options(), [(ObjectKey::new("n", "xyz"), Vec::new())].into(), now).await.unwrap();
        check(kernel.as_ref(), kind, &[("client", BALANCER, "here* there*"), ("client", "10.96.0.2:80", "untouched")]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_made_good_by_a_replacement() {
    for (kind, kernel) in kernels() {
        let (mut backend, now) = (kernel.backend(), Instant::now());
        backend.replace(&options(), routes("web", route()), now).await.unwrap();
        kernel.refuse(true);
        let nobody = || routes("web", Route { endpoints: Selection::default(), ..route() });
        backend.change(&options(), nobody(), now).await.unwrap_err();
        check(kernel.as_ref(), kind, &[("pod", CLUSTER, "here there")]);
        backend.replace(&options(), nobody(), now).await.unwrap_err();
        kernel.refuse(false);
        backend.replace(&options(), nobody(), now).await.unwrap();
        check(kernel.as_ref(), kind, &[("pod", CLUSTER, "rejected")]);
    }
}
