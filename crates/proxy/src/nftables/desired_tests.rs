use std::path::Path;

use super::*;
use crate::Family;
use crate::backend::LocalDetector;
use crate::endpoints::{Endpoint, Selection};
use crate::nftables::transaction::{Present, full, partial};
use crate::service::{PortKey, ServedPort};

fn options() -> RuleOptions {
    RuleOptions {
        family: Family::V4,
        mark: 0x4000,
        masquerade_all: false,
        local_detector: Some(LocalDetector::Network("10.0.0.0/16".into())),
        node_ports: NodePorts::Addresses(["198.51.100.4".parse().unwrap()].into()),
        node_ip: "198.51.100.4".parse().ok(),
        service_cidrs: Vec::new(),
    }
}

fn port() -> ServedPort {
    ServedPort {
        key: PortKey { namespace: "demo".into(), name: "web".into(), port: "http".into(), protocol: "TCP".into() },
        cluster_ip: "10.96.7.7".parse().unwrap(),
        port: 80,
        node_port: 30080,
        external_ips: Vec::new(),
        load_balancer_ips: vec!["192.0.2.10".parse().unwrap()],
        source_ranges: vec!["203.0.113.0/24".into()],
        external_local: true,
        internal_local: false,
        affinity_seconds: None,
        health_check_port: 0,
    }
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

fn selection(local: bool) -> Selection {
    let here = endpoint("10.0.1.2", local);
    let there = endpoint("10.0.2.7", false);
    let own = if local { vec![here.clone()] } else { Vec::new() };
    Selection { cluster: vec![here, there], local: own, any: true }
}

fn route(port: ServedPort, endpoints: Selection) -> Route {
    Route { port, endpoints }
}

/// The whole table of one Service with these routes.
fn table(options: &RuleOptions, routes: &[Route]) -> Desired {
    let mut table = part(options, routes);
    add_fixed(&mut table, &fixed_part(options));
    table
}

fn elements<'a>(table: &'a Desired, set: &str) -> Vec<(&'a str, &'a str)> {
    table.elements[set].iter().map(|(key, element)| (key.as_str(), element.value.as_str())).collect()
}

fn texts<'a>(table: &'a Desired, chain: &str) -> Vec<&'a str> {
    table.chains[chain].iter().map(|rule| rule.text.as_str()).collect()
}

#[test]
fn the_worked_example() {
    let table = table(&options(), &[route(port(), selection(true))]);
    let base = "AXK6CI2C-demo/web/tcp/http";
    assert_eq!(elements(&table, "cluster-ips"), [("10.96.7.7", "")]);
    assert_eq!(elements(&table, "nodeport-ips"), [("198.51.100.4", "")]);
    assert_eq!(
        elements(&table, "service-ips"),
        [
            ("10.96.7.7 . tcp . 80", "goto service-AXK6CI2C-demo/web/tcp/http"),
            ("192.0.2.10 . tcp . 80", "goto external-AXK6CI2C-demo/web/tcp/http"),
        ]
    );
    assert_eq!(elements(&table, "service-nodeports"), [("tcp . 30080", "goto external-AXK6CI2C-demo/web/tcp/http")]);
    assert_eq!(
        elements(&table, "firewall-ips"),
        [("192.0.2.10 . tcp . 80", "goto firewall-AXK6CI2C-demo/web/tcp/http")]
    );
    assert_eq!(elements(&table, "hairpin-connections"), [("10.0.1.2 . 10.0.1.2 . tcp . 8080", "")]);
    assert!(elements(&table, "no-endpoint-services").is_empty());
    assert_eq!(
        texts(&table, &format!("service-{base}")),
        [
            "meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.0.1.2 . 8080 , 1 : 10.0.2.7 . 8080 }"
        ]
    );
    assert_eq!(
        texts(&table, &format!("local-{base}")),
        ["meta l4proto tcp dnat ip addr . port to numgen random mod 1 map { 0 : 10.0.1.2 . 8080 }"]
    );
    assert_eq!(
        texts(&table, &format!("external-{base}")),
        [
            "ip saddr 10.0.0.0/16 goto service-AXK6CI2C-demo/web/tcp/http",
            "fib saddr type local mark set mark or 0x00004000",
            "fib saddr type local goto service-AXK6CI2C-demo/web/tcp/http",
            "goto local-AXK6CI2C-demo/web/tcp/http",
        ]
    );
    assert_eq!(texts(&table, &format!("firewall-{base}")), ["ip saddr != { 203.0.113.0/24 } drop"]);
}

#[test]
fn without_a_local_endpoint_outside_traffic_is_dropped() {
    let table = table(&options(), &[route(port(), selection(false))]);
    assert_eq!(elements(&table, "no-endpoint-services"), [("192.0.2.10 . tcp . 80", "drop")]);
    assert_eq!(elements(&table, "no-endpoint-nodeports"), [("tcp . 30080", "drop")]);
    assert!(!table.chains.contains_key("local-AXK6CI2C-demo/web/tcp/http"));
    assert_eq!(table.chains["external-AXK6CI2C-demo/web/tcp/http"].len(), 3);
}

#[test]
fn without_any_endpoint_traffic_is_rejected() {
    let table = table(&options(), &[route(port(), Selection::default())]);
    let rejected = "goto reject-chain";
    assert_eq!(
        elements(&table, "no-endpoint-services"),
        [("10.96.7.7 . tcp . 80", rejected), ("192.0.2.10 . tcp . 80", rejected)]
    );
    assert!(elements(&table, "service-ips").is_empty());
}

#[test]
fn nothing_changed_is_an_empty_transaction() {
    let table = table(&options(), &[route(port(), selection(true))]);
    let (text, stale) = partial(&options(), &table, &table);
    assert!(text.is_empty() && stale.is_empty(), "{text}");
}

#[test]
fn a_partial_transaction_touches_only_what_changed() {
    let mut sticky = port();
    sticky.affinity_seconds = Some(60);
    let of = |port: &ServedPort| table(&options(), &[route(port.clone(), selection(true))]);
    let (before, after) = (of(&port()), of(&sticky));
    let (text, stale) = partial(&options(), &before, &after);
    assert!(text.contains("add set ip kube-proxy affinity-YGDWQAUX-demo/web/tcp/http__10.0.1.2/8080"), "{text}");
    assert!(!text.contains("element"), "the addresses did not change: {text}");
    assert!(stale.is_empty());
    let mut longer = sticky.clone();
    longer.affinity_seconds = Some(90);
    let later = of(&longer);
    let (text, _) = partial(&options(), &after, &later);
    assert!(text.contains("timeout 90s"), "only how long clients stick changed: {text}");
    assert_eq!(partial(&options(), &after, &after).0.matches("affinity").count(), 0);
    let (text, stale) = partial(&options(), &after, &before);
    assert!(text.contains("delete set ip kube-proxy affinity-"), "{text}");
    assert_eq!(stale.iter().filter(|name| name.starts_with("endpoint-")).count(), 2);
}

/// The kernel's own parser agrees, where there is one to ask.
#[tokio::test]
async fn nft_accepts_the_transactions() {
    use sys::packet_filter::{Nft, PacketFilter as _};

    let nft = Nft::new(std::sync::Arc::new(sys::exec::LinuxExec), None);
    if !Path::new("/usr/sbin/nft").exists() || !nft.is_supported().await {
        test_facts::skipped("no nft here, or no right to use it");
        return;
    }
    let mut sticky = port();
    sticky.affinity_seconds = Some(60);
    sticky.key.name = "sticky".into();
    (sticky.cluster_ip, sticky.node_port) = ("10.96.7.8".parse().unwrap(), 30081);
    sticky.load_balancer_ips.clear();
    let mut lonely = port();
    lonely.key.name = "lonely".into();
    (lonely.cluster_ip, lonely.node_port) = ("10.96.7.9".parse().unwrap(), 30082);
    lonely.load_balancer_ips.clear();
    let routes = [route(port(), selection(true)), route(sticky, selection(true)), route(lonely, Selection::default())];
    for node_ports in [options().node_ports, NodePorts::All] {
        let options = RuleOptions { node_ports, service_cidrs: vec!["10.96.0.0/16".into()], ..options() };
        let (table, part) = (table(&options, &routes), part(&options, &routes));
        let texts = full(&options, &table, [&part], &Present::default());
        assert_eq!(texts.len(), 1);
        nft.check(&texts[0]).await.unwrap_or_else(|error| panic!("{error}\n{}", texts[0]));
    }
}
