//! Tests of the slices of services.

use std::sync::Arc;

use api_machinery::value::Value;
use api_types::core_v1::constants::{ANNOTATION_TOPOLOGY_MODE, DEPRECATED_ANNOTATION_TOPOLOGY_AWARE_HINTS};
use api_types::core_v1::{Node, Pod, PodIP, Service, ServicePort};
use api_types::discovery_v1::{Endpoint, EndpointSlice};

use super::desired::{Group, identity};
use super::layout::empty_slice;
use super::pack::{Writes, pack};
use super::zones::Obstacle;
use super::zones::tests::node as zoned_node;
use super::*;
use crate::network::backends::Family;
use crate::workloads::fixtures::{Running, dying, meta, ready, run_until_idle};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];

fn service() -> Service {
    let mut service = Service { metadata: meta("web"), ..Service::default() };
    service.spec.selector.insert("app".into(), "web".into());
    service.spec.cluster_ip = "10.96.0.1".into();
    service.spec.ip_families = vec!["IPv4".into()];
    let port = ServicePort {
        name: "http".into(),
        protocol: "TCP".into(),
        port: 80,
        target_port: api_machinery::intstr::IntOrString::Int(8080),
        ..ServicePort::default()
    };
    service.spec.ports.push(port);
    service
}

fn pod(name: &str, ip: &str) -> Pod {
    let mut pod = Pod { metadata: meta(name), ..Pod::default() };
    pod.spec.node_name = "n".into();
    pod.status.phase = "Running".into();
    pod.status.pod_ip = ip.into();
    pod.status.pod_ips = vec![PodIP { ip: ip.into() }];
    pod
}

fn node() -> Node {
    let mut node = Node::default();
    node.metadata.name = "n".into();
    node
}

fn endpoint(number: usize) -> Endpoint {
    Endpoint { addresses: vec![format!("10.0.{}.{}", number / 256, number % 256)], ..Endpoint::default() }
}

/// A slice with endpoints of these numbers.
fn slice(name: &str, numbers: std::ops::Range<usize>) -> Arc<EndpointSlice> {
    let mut slice = empty_slice(&service(), Family::V4, Vec::new());
    slice.metadata.name = name.into();
    slice.endpoints = numbers.map(endpoint).collect();
    Arc::new(slice)
}

/// The sizes after packing: creates, updates, deletes.
fn packed(existing: &[Arc<EndpointSlice>], wanted: impl Iterator<Item = usize>) -> (Vec<usize>, Vec<usize>, usize) {
    let endpoints = wanted.map(endpoint).map(|endpoint| (identity(&endpoint), endpoint)).collect();
    let mut writes = Writes::default();
    pack(&service(), Family::V4, existing, Group { ports: Vec::new(), endpoints }, 100, &mut writes);
    let sizes = |slices: &[EndpointSlice]| slices.iter().map(|slice| slice.endpoints.len()).collect();
    (sizes(&writes.create), sizes(&writes.update), writes.delete.len())
}

#[test]
fn endpoints_are_packed_with_few_writes() {
    let (a100, b60) = (slice("a", 0..100), slice("b", 100..160));
    let b70 = slice("b", 100..170);
    for (name, existing, wanted, expected) in [
        ("one gone, 50 new", vec![a100.clone(), b60.clone()], (1..210).collect(), (vec![49], vec![100], 0)),
        ("40 new", vec![a100.clone(), b60.clone()], (0..200).collect(), (vec![], vec![100], 0)),
        (
            "the better fit",
            vec![slice("a", 0..90), slice("b", 100..195)],
            (0..90).chain(100..195).chain(200..208).collect(),
            (vec![], vec![98], 0),
        ),
        ("the fuller one", vec![slice("a", 0..50), b70], (0..50).chain(100..190).collect(), (vec![], vec![90], 0)),
        (
            "no merging",
            vec![a100.clone(), slice("b", 100..200), slice("c", 200..300)],
            (0..40).chain(100..140).chain(200..240).collect(),
            (vec![], vec![40, 40, 40], 0),
        ),
        ("none before", vec![], (0..250).collect(), (vec![100, 100, 50], vec![], 0)),
        ("as many as fit a slice", vec![slice("a", 0..30)], (0..130).collect(), (vec![100], vec![], 0)),
        ("what a new slice does not take", vec![slice("a", 0..30)], (0..160).collect(), (vec![100], vec![60], 0)),
        ("replaced", vec![slice("a", 0..1)], vec![5], (vec![1], vec![], 1)),
        ("steady state", vec![a100], (0..100).collect(), (vec![], vec![], 0)),
    ] {
        let wanted: Vec<usize> = wanted;
        assert_eq!(packed(&existing, wanted.into_iter()), expected, "{name}");
    }
}

#[test]
fn conditions_show_what_the_pod_is() {
    let pods = [
        Arc::new(ready(pod("ready", "10.0.0.1"), 1)),
        Arc::new(pod("starting", "10.0.0.2")),
        Arc::new(dying(ready(pod("dying", "10.0.0.3"), 1))),
        Arc::new(pod("no-address", "")),
    ];
    let plan = plan::plan(&service(), &pods, &[], |_| Some(Arc::new(node())), &Err(Obstacle::Nodes), 100);
    let slice = &plan.writes.create[0];
    let shown: Vec<_> = slice
        .endpoints
        .iter()
        .map(|one| {
            (one.addresses[0].as_str(), one.conditions.ready, one.conditions.serving, one.conditions.terminating)
        })
        .collect();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(shown, [("10.0.0.1", yes, yes, no), ("10.0.0.2", no, no, no), ("10.0.0.3", no, yes, yes)]);
    assert_eq!(slice.ports[0].port, Some(8080));
    assert!(plan.problems.is_empty());
}

#[test]
fn a_pod_on_an_unknown_node_is_a_problem() {
    let pods = [Arc::new(ready(pod("p", "10.0.0.1"), 1))];
    let plan = plan::plan(&service(), &pods, &[], |_| None, &Err(Obstacle::Nodes), 100);
    assert_eq!(plan.problems, ["skipping Pod p for Service ns/web: Node n Not Found"]);
}

#[test]
fn slices_of_an_earlier_service_go() {
    let mut foreign = EndpointSlice::clone(&slice("old", 0..1));
    foreign.metadata.owner_references[0].uid = "another".into();
    let plan = plan::plan(&service(), &[], &[Arc::new(foreign)], |_| None, &Err(Obstacle::Nodes), 100);
    assert_eq!((plan.writes.create.len(), plan.writes.delete.len()), (1, 1), "and a placeholder comes");
    let placeholder = Arc::new(plan.writes.create[0].clone());
    let again = plan::plan(&service(), &[], &[placeholder], |_| None, &Err(Obstacle::Nodes), 100);
    assert_eq!((again.writes.create.len(), again.writes.delete.len()), (0, 0), "steady state");
}

#[tokio::test(start_paused = true)]
async fn slices_follow_pods() {
    let running = Running::start(KNOWN);
    running.put("v1/nodes", &node());
    running.put("v1/services", &service());
    running.put("v1/pods", &ready(pod("a", "10.0.0.1"), 1));
    run_until_idle().await;
    let slices = running.server.objects("discovery.k8s.io/v1/endpointslices");
    assert_eq!(slices.len(), 1, "one slice");
    assert_eq!(slices[0]["endpoints"][0]["addresses"][0], "10.0.0.1");
    running.put("v1/pods", &ready(pod("b", "10.0.0.2"), 1));
    run_until_idle().await;
    let slices = running.server.objects("discovery.k8s.io/v1/endpointslices");
    assert_eq!(slices[0]["endpoints"].as_array().map(Vec::len), Some(2));
    running.assert_steady().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_slice_in_the_place_of_another_is_told_as_its_own() {
    let running = Running::start(KNOWN);
    running.put("v1/nodes", &node());
    running.put("v1/services", &service());
    running.put("v1/pods", &ready(pod("a", "10.0.0.1"), 1));
    run_until_idle().await;
    let one = |field: &str| running.server.objects("discovery.k8s.io/v1/endpointslices")[0]["metadata"][field].clone();
    let name = one("name");
    running.server.fail_next("PUT", &[409]);
    running.server.remove("v1/pods", "ns", "a");
    running.put("v1/pods", &ready(pod("b", "10.0.0.2"), 1));
    run_until_idle().await;
    assert_eq!((one("name"), one("generateName")), (name.clone(), "web-".into()));
    let events = running.server.objects("v1/events");
    let start = format!(
        "Error updating Endpoint Slices for Service ns/web: failed to update {} EndpointSlice for Service ns/web: ",
        name.as_str().unwrap_or_default()
    );
    let told = events.iter().filter_map(|event| event["message"].as_str()).any(|text| text.starts_with(&start));
    assert!(told, "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn every_look_at_a_service_counts() {
    let running = Running::start(KNOWN);
    let mut selectorless = service();
    selectorless.spec.selector.clear();
    running.put("v1/services", &selectorless);
    run_until_idle().await;
    running.assert_shows("endpoint_slice_controller_syncs{result=\"success\"} 1");
    running.server.remove("v1/services", "ns", "web");
    run_until_idle().await;
    running.assert_shows("endpoint_slice_controller_syncs{result=\"success\"} 2");
}

/// A cluster with a node `{zone}-node` in each of these zones, and a service that asks for hints by an annotation.
async fn hinting(annotation: &str, zones: &[&str]) -> Running {
    let running = Running::start(KNOWN);
    for zone in zones {
        running.put("v1/nodes", &zoned_node(&format!("{zone}-node"), zone, "4"));
    }
    let mut service = service();
    service.metadata.annotations.insert(annotation.into(), "Auto".into());
    running.put("v1/services", &service);
    run_until_idle().await;
    running
}

/// Puts a ready pod on the node of a zone.
async fn put_pod(running: &Running, number: u8, zone: &str) {
    let mut pod = ready(pod(&format!("p{number}"), &format!("10.0.0.{number}")), 1);
    pod.spec.node_name = format!("{zone}-node");
    running.put("v1/pods", &pod);
    run_until_idle().await;
}

/// The zones that the endpoints of the only slice are meant for, in the order of their addresses; `-` without hints.
fn hinted(running: &Running) -> String {
    let slices = running.server.objects("discovery.k8s.io/v1/endpointslices");
    assert_eq!(slices.len(), 1);
    let endpoints = slices[0]["endpoints"].as_array().map(Vec::as_slice).unwrap_or_default();
    let zone = |endpoint: &Value| endpoint["hints"]["forZones"][0]["name"].as_str().unwrap_or("-").to_owned();
    let mut zones: Vec<_> = endpoints.iter().map(|one| (one["addresses"][0].as_str().unwrap(), zone(one))).collect();
    zones.sort();
    zones.into_iter().map(|(_, zone)| zone).collect()
}

/// Asserts that there was such an event about the service.
fn assert_event(running: &Running, type_: &str, reason: &str, message: &str) {
    let events = running.server.objects("v1/events");
    let is_it = |event: &&Value| event["type"] == type_ && event["reason"] == reason && event["message"] == message;
    let told = events.iter().find(is_it);
    assert_eq!(told.map(|event| event["involvedObject"]["name"].clone()), Some("web".into()), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn hints_come_and_go_with_the_annotation() {
    for annotation in [ANNOTATION_TOPOLOGY_MODE, DEPRECATED_ANNOTATION_TOPOLOGY_AWARE_HINTS] {
        let running = hinting(annotation, &["a", "b"]).await;
        put_pod(&running, 1, "a").await;
        assert_eq!(hinted(&running), "-", "one endpoint does not do for two zones");
        let few = "Insufficient number of endpoints (1 endpoints, 2 zones), addressType: IPv4";
        assert_event(&running, "Warning", "TopologyAwareHintsDisabled", few);
        put_pod(&running, 2, "a").await;
        let mut hints: Vec<_> = hinted(&running).chars().collect();
        hints.sort_unstable();
        assert_eq!(hints, ['a', 'b'], "one is for the other zone");
        let enabled = "Topology Aware Hints has been enabled, addressType: IPv4";
        assert_event(&running, "Normal", "TopologyAwareHintsEnabled", enabled);
        running.assert_steady().await;
        running.put("v1/services", &service());
        run_until_idle().await;
        assert_eq!(hinted(&running), "--");
        let disabled = "Topology Aware Hints has been disabled, addressType: IPv4";
        assert_event(&running, "Warning", "TopologyAwareHintsDisabled", disabled);
    }
}

#[tokio::test(start_paused = true)]
async fn hints_follow_the_nodes() {
    let running = hinting(ANNOTATION_TOPOLOGY_MODE, &["a", "b"]).await;
    for (number, zone) in [(1, "a"), (2, "a"), (3, "b"), (4, "b")] {
        put_pod(&running, number, zone).await;
    }
    assert_eq!(hinted(&running), "aabb");
    running.put("v1/nodes", &zoned_node("c-node", "c", "8"));
    run_until_idle().await;
    assert_eq!(hinted(&running).matches('c').count(), 2, "half of the CPU is in the new zone");
    running.put("v1/nodes", &zoned_node("bare", "", "4"));
    run_until_idle().await;
    assert_eq!(hinted(&running), "----");
    let insufficient = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, \
                        addressType: IPv4";
    assert_event(&running, "Warning", "TopologyAwareHintsDisabled", insufficient);
}
