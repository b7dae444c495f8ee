//! Tests of the nodes' addresses.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use client::fake::FakeServer;
use client::{Transport, TransportError};
use component_base::serving::Body;
use serde_json::json;

use super::*;
use crate::settings::IpamSettings;
use crate::workloads::fixtures::{Running, run_until_idle};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];

fn set(cluster: &str, mask: u8) -> CidrSet {
    CidrSet::new(cluster.parse().unwrap(), mask).unwrap()
}

#[test]
fn blocks_are_where_upstream_puts_them() {
    for (cluster, mask, index, expected) in [
        ("10.244.0.0/16", 24, 255, "10.244.255.0/24"),
        ("10.0.0.0/14", 24, 1000, "10.3.232.0/24"),
        ("192.168.0.0/23", 26, 5, "192.168.1.64/26"),
        ("fd00:10:244::/56", 64, 171, "fd00:10:244:ab::/64"),
        ("fd00:10:244::/48", 64, 4660, "fd00:10:244:1234::/64"),
        ("fd00:10:244::/60", 72, 300, "fd00:10:244:1:2c00::/72"),
    ] {
        let mut set = set(cluster, mask);
        for _ in 0..index {
            set.allocate().unwrap();
        }
        assert_eq!(set.allocate().unwrap().to_string(), expected, "{cluster}");
    }
}

#[test]
fn ranges_occupy_the_blocks_they_touch() {
    for (range, expected) in [("10.244.3.0/24", 1), ("10.244.3.128/25", 1), ("10.244.8.0/22", 4), ("10.0.0.0/8", 256)] {
        let mut set = set("10.244.0.0/16", 24);
        let range: Cidr = range.parse().unwrap();
        set.occupy(&range).unwrap();
        set.occupy(&range).unwrap();
        assert_eq!(set.count(), expected, "{range}");
        set.release(&range).unwrap();
        assert_eq!(set.count(), 0, "{range}");
    }
    let error = set("10.244.0.0/16", 24).occupy(&"10.245.0.0/24".parse().unwrap()).unwrap_err().to_string();
    assert_eq!(error, "cidr 10.245.0.0/24 is out the range of cluster cidr 10.244.0.0/16");
}

#[test]
fn freed_blocks_come_last() {
    let mut set = set("10.0.0.0/22", 24);
    let mut take = || set.allocate().map(|range| range.to_string());
    assert_eq!([take(), take(), take()].map(Result::unwrap), ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"]);
    set.release(&"10.0.0.0/24".parse().unwrap()).unwrap();
    let mut take = || set.allocate().map(|range| range.to_string());
    assert_eq!([take(), take()].map(Result::unwrap), ["10.0.3.0/24", "10.0.0.0/24"]);
    assert!(take().is_err());
}

#[test]
fn flags_are_checked() {
    let settings = |cluster: &str, masks: [u8; 3]| IpamSettings {
        allocate: true,
        cluster_cidr: cluster.into(),
        mask: masks[0],
        mask_v4: masks[1],
        mask_v6: masks[2],
        ..IpamSettings::default()
    };
    for (cluster, masks, expected) in [
        ("10.244.0.0/16", [0, 0, 0], None),
        ("10.244.0.0/16,fd00::/48", [0, 25, 64], None),
        ("", [0, 0, 0], Some("Controller: Must specify --cluster-cidr")),
        ("10.0.0.0/16,10.1.0.0/16", [0, 0, 0], Some("len of ClusterCIDRs==2")),
        ("10.244.0.0/16,fd00::/48", [24, 0, 0], Some("usage of --node-cidr-mask-size is not allowed with dual")),
        ("10.244.0.0/16", [24, 24, 0], Some("usage of --node-cidr-mask-size-ipv4 and")),
        ("fd00::/48", [0, 24, 0], Some("usage of --node-cidr-mask-size-ipv4 is not allowed for a single")),
        ("10.244.0.0/16", [0, 0, 64], Some("usage of --node-cidr-mask-size-ipv6 is not allowed for a single")),
        ("10.244.0.0/25", [0, 0, 0], Some("Controller: Invalid --cluster-cidr")),
        ("fd00::/40", [0, 0, 64], Some("New CIDR set failed")),
        ("nonsense", [0, 0, 0], Some("invalid CIDR address: nonsense")),
    ] {
        let outcome = options::complete(&settings(cluster, masks)).err().map(|error| error.to_string());
        match expected {
            None => assert_eq!(outcome, None, "{cluster}"),
            Some(start) => assert!(outcome.clone().unwrap_or_default().starts_with(start), "{cluster}: {outcome:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_get_ranges_that_nobody_has() {
    let settings = Settings {
        ipam: IpamSettings {
            allocate: true,
            cluster_cidr: "10.244.0.0/16".into(),
            service_cidr: "10.244.0.0/24".into(),
            ..IpamSettings::default()
        },
        ..Settings::default()
    };
    let running = Running::start_with(KNOWN, settings);
    let node = |name: &str, ranges: &[&str]| {
        let mut node = Node::default();
        node.metadata.name = name.into();
        node.spec.pod_cidrs = ranges.iter().map(|range| (*range).to_owned()).collect();
        node
    };
    running.put("v1/nodes", &node("old", &["10.244.1.0/24"]));
    running.put("v1/nodes", &node("new", &[]));
    run_until_idle().await;
    let nodes = running.server.objects("v1/nodes");
    let new = nodes.iter().find(|node| node["metadata"]["name"] == "new").unwrap();
    assert_eq!(new["spec"]["podCIDRs"][0], "10.244.2.0/24", "services have the first, the old node the second");
    assert_eq!(new["spec"]["podCIDR"], "10.244.2.0/24");
    running.assert_steady().await;
    running.assert_shows("running_managed_controllers{manager=\"kube-controller-manager\",name=\"nodeipam\"} 1");
    let shows = |family: &str, value: &str| {
        running.assert_shows(&format!("node_ipam_controller_{family}{{clusterCIDR=\"10.244.0.0/16\"}} {value}"));
    };
    shows("cirdset_max_cidrs", "256");
    shows("cidrset_cidrs_allocations_total", "3");
    shows("cidrset_usage_cidrs", "0.01171875");
    shows("cidrset_allocation_tries_per_request_count", "1");
    running.server.remove("v1/nodes", "", "old");
    run_until_idle().await;
    shows("cidrset_cidrs_releases_total", "1");
}

/// A node changes while its ranges are being written, and the watch is cut before it can tell of the write.
struct Late {
    server: FakeServer,
    done: AtomicBool,
}

#[async_trait::async_trait]
impl Transport for Late {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        if request.method() == http::Method::PATCH && !self.done.swap(true, Ordering::Relaxed) {
            self.server.put(
                "v1/nodes",
                json!({"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": "a", "uid": "a-uid", "labels": {"changed": "meanwhile"}}}),
            );
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.server.cut_watches();
            self.server.fail_next("GET", &[500; 3]);
        }
        self.server.transport().send(request).await
    }

    fn server(&self) -> &str {
        "https://fake"
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_gets_ranges_once_however_late_the_cache_is() {
    let ipam = IpamSettings { allocate: true, cluster_cidr: "10.244.0.0/16".into(), ..IpamSettings::default() };
    let settings = Settings { ipam, ..Settings::default() };
    let running = Running::start_over(KNOWN, settings, |server| {
        Arc::new(Late { server: server.clone(), done: AtomicBool::new(false) })
    });
    let node = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": format!("{name}-uid")}})
    };
    run_until_idle().await;
    running.server.put("v1/nodes", node("a"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(running.requests("PATCH", "nodes/a"), 1, "{:?}", running.server.requests());
    running.server.put("v1/nodes", node("b"));
    run_until_idle().await;
    let nodes = running.server.objects("v1/nodes");
    let ranges: Vec<_> = nodes.iter().map(|node| node["spec"]["podCIDR"].as_str().unwrap_or_default()).collect();
    assert_eq!(ranges, ["10.244.0.0/24", "10.244.1.0/24"]);
}

#[test]
fn a_node_that_goes_unseen_gives_its_ranges_back() {
    let node = |uid: &str, ranges: &[&str]| {
        let mut node = Node::default();
        node.metadata.name = "n".into();
        node.metadata.uid = uid.into();
        node.spec.pod_cidrs = ranges.iter().map(|range| (*range).to_owned()).collect();
        node
    };
    for (name, gone, left) in [
        ("never seen with ranges", node("u", &[]), 0),
        ("seen with ranges", node("u", &["10.244.0.0/24"]), 0),
        ("another of the name", node("v", &[]), 1),
    ] {
        let mut ranges = Ranges { sets: vec![set("10.244.0.0/16", 24)], given: BTreeMap::new() };
        let range = ranges.sets[0].allocate().unwrap();
        ranges.given.insert("n".into(), Given { uid: "u".into(), ranges: vec![range] });
        assert!(ranges.has_given(&node("u", &[])) && !ranges.has_given(&node("v", &[])));
        ranges.release(&gone);
        assert_eq!(ranges.sets[0].count(), left, "{name}");
    }
}
