//! Extended resources that devices stand for: what is asked for on which node, and the claim that comes of it.

use serde_json::{Value, json};

use super::super::tests::verdicts_in;
use super::extended::SpecialClaim;
use super::tests::{Cycle, World};
use super::*;
use crate::test_objects::{NodeBuilder, PodBuilder, node, object, pod};

const GPU: &str = "example.com/gpu";
const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/any";

/// Two devices on the node `a`, of a class that an extended resource stands for.
fn world() -> World {
    World::new().with::<DeviceClass>(json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}))
}

fn containers(init: Value, regular: Value) -> PodBuilder {
    let mut builder = pod("p");
    let read = |list: Value| -> Vec<api_types::core_v1::Container> {
        let list = list.as_array().cloned().unwrap_or_default();
        list.into_iter().map(object::<api_types::core_v1::Container>).collect()
    };
    builder.0.spec.init_containers = read(init);
    builder.0.spec.containers = read(regular);
    builder
}

#[test]
fn containers_share_what_they_never_use_together() {
    let asks = |name: &str, count: &str| json!({"name": name, "resources": {"requests": {"cpu": "1", GPU: count}}});
    let sidecar = |name: &str, count: &str| {
        let mut container = asks(name, count);
        container["restartPolicy"] = json!("Always");
        container
    };
    let cases = [
        ("one", json!([]), json!([asks("a", "2")]), "container-0-request-1=2", "a:container-0-request-1"),
        (
            "two",
            json!([]),
            json!([asks("a", "1"), asks("b", "2")]),
            "container-0-request-1=1 container-1-request-1=2",
            "a:container-0-request-1 b:container-1-request-1",
        ),
        (
            "an init container takes what comes later",
            json!([asks("i", "2")]),
            json!([asks("a", "1"), asks("b", "2")]),
            "container-1-request-1=1 container-2-request-1=2",
            "a:container-1-request-1 b:container-2-request-1 i:container-1-request-1 i:container-2-request-1",
        ),
        (
            "init containers share what is missing",
            json!([asks("i", "3"), asks("j", "2")]),
            json!([asks("a", "1")]),
            "container-0-request-1=2 container-2-request-1=1",
            "a:container-2-request-1 i:container-2-request-1 j:container-2-request-1 i:container-0-request-1 \
             j:container-0-request-1",
        ),
        (
            "a sidecar that runs already keeps its own",
            json!([sidecar("s", "1"), asks("i", "1")]),
            json!([]),
            "container-0-request-1=1 container-1-request-1=1",
            "s:container-0-request-1 i:container-1-request-1",
        ),
        (
            "a sidecar that comes later lends",
            json!([asks("i", "1"), sidecar("s", "1")]),
            json!([]),
            "container-1-request-1=1",
            "s:container-1-request-1 i:container-1-request-1",
        ),
    ];
    for (name, init, regular, requests, mappings) in cases {
        let pod = containers(init, regular).build();
        let special = SpecialClaim::of(&pod, [(GPU, "gpu")]);
        let asked = special.claim.spec.devices.requests.iter().map(|request| {
            let exactly = request.exactly.as_ref().unwrap();
            assert_eq!((exactly.device_class_name.as_str(), exactly.allocation_mode.as_str()), ("gpu", "ExactCount"));
            format!("{}={}", request.name, exactly.count)
        });
        assert_eq!(asked.collect::<Vec<_>>().join(" "), requests, "{name}");
        let mapped = special.mappings.iter().map(|own| format!("{}:{}", own.container_name, own.request_name));
        assert_eq!(mapped.collect::<Vec<_>>().join(" "), mappings, "{name}");
    }
}

#[test]
fn nodes_have_them_one_way_or_the_other() {
    let full = "cannot allocate all claims";
    let none = "cannot fit resource";
    let short = "Insufficient example.com/gpu";
    let listing = |amount: &str| node("b").capacity(GPU, amount);
    let cases: Vec<(&str, PodBuilder, NodeBuilder, [&str; 2])> = vec![
        ("by devices", pod("p").request(GPU, "2"), node("b"), ["", full]),
        ("too many", pod("p").request(GPU, "3"), node("b"), [full, full]),
        ("by the class's own name", pod("p").request(IMPLICIT, "1"), node("b"), ["", full]),
        ("listed by the node", pod("p").request(GPU, "2"), listing("2"), ["", ""]),
        ("listed, and too few", pod("p").request(GPU, "2"), listing("1"), ["", short]),
        ("listed as none", pod("p").request(GPU, "1"), listing("0"), ["", full]),
        (
            "half of it nowhere",
            pod("p").request(GPU, "1").request("example.com/x", "1"),
            node("b"),
            ["Insufficient example.com/x", "Insufficient example.com/x"],
        ),
        ("of no class", pod("p").request("example.com/x", "1"), node("b"), ["Insufficient example.com/x"; 2]),
        ("nothing", pod("p").request(GPU, "0"), node("b"), ["", ""]),
    ];
    for (name, incoming, other, expected) in cases {
        let found = verdicts_in(&world().cx, &["NodeResourcesFit", NAME], incoming, vec![node("a"), other], vec![]);
        assert_eq!(found, expected, "{name}");
    }
    let alone = |incoming: PodBuilder| world().verdicts(incoming);
    assert_eq!(alone(pod("p").request(GPU, "1").request("example.com/x", "1")), [none, none]);
    let mut off = world();
    off.cx.gates = off.cx.gates.with(EXTENDED_RESOURCE, false);
    let found = verdicts_in(&off.cx, &["NodeResourcesFit", NAME], pod("p").request(GPU, "1"), vec![node("a")], vec![]);
    assert_eq!(found, [short]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_made_once_the_node_is_chosen() {
    let mut cycle = Cycle::filtered(world(), pod("p").request(GPU, "2"));
    cycle.reserve();
    // Until it is made, the devices are nobody else's.
    let (first, state) = (Arc::clone(&cycle.info), cycle.state.clone());
    cycle.info = pod("q").request(GPU, "1").info(&crate::pod_class::ClassTable::default());
    assert_eq!(cycle.filter().map_err(|status| status.message()), Err("cannot allocate all claims".to_owned()));
    (cycle.info, cycle.state) = (first, state);
    assert_eq!(cycle.bind().await, Ok(()));
    let name = "p-extended-resources-1";
    let lines = ["create", "update", "status"].map(|what| format!("{what} {name}"));
    assert_eq!(cycle.world.lines(), lines);
    let claim = cycle.world.cx.listers.of::<ResourceClaim>().find("default", name).unwrap();
    assert_eq!(claim.metadata.annotations["resource.kubernetes.io/extended-resource-claim"], "true");
    let owner = &claim.metadata.owner_references[0];
    assert_eq!((owner.kind.as_str(), owner.uid.as_str(), owner.controller), ("Pod", "uid-p", Some(true)));
    let allocation = claim.status.allocation.as_ref().unwrap();
    let devices: Vec<_> = allocation.devices.results.iter().map(|result| result.device.as_str()).collect();
    assert_eq!((devices, claim.status.reserved_for[0].uid.as_str()), (vec!["one", "two"], "uid-p"));
    // Who cannot be bound after all leaves nothing behind.
    cycle.profile.run_unreserve(&cycle.state, &cycle.info, "a");
    tokio::task::yield_now().await;
    assert_eq!(cycle.world.lines(), [format!("update {name}"), format!("delete {name}")]);
    assert!(cycle.filter().is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_claim_of_an_earlier_attempt_goes_first() {
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": true});
    let earlier = json!({"metadata": {"name": "left", "namespace": "default", "uid": "u", "resourceVersion": "1",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}, "ownerReferences": [owner]},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]}}});
    let mut cycle = Cycle::filtered(world(), pod("p").request(GPU, "1"));
    cycle.world.put::<ResourceClaim>(earlier);
    let refused = cycle.filter().map_err(|status| status.message());
    assert_eq!(refused, Err("cannot schedule extended resource claim".to_owned()));
    assert_eq!(cycle.post_filter().await, "deletion of ResourceClaim completed");
    assert_eq!(cycle.world.lines(), ["delete left"]);
    assert!(cycle.filter().is_ok());
}
