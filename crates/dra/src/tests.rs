//! Tables of the allocator: claims and slices in, devices out.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::json;
use api_machinery::reflect::Reflect;
use api_types::resource_v1::{AllocationResult, DeviceClass, ResourceClaim, ResourceSlice};
use base::Rng;
use serde_json::{Value, json};

use crate::{AllocateError, Allocated, Allocator, CandidateNode, Features, Inventory, Selectors, Slices};

const ALL: Features = Features {
    admin_access: true,
    prioritized_list: true,
    partitionable_devices: true,
    device_taints: true,
    consumable_capacity: true,
    binding_conditions: false,
    list_attributes: true,
};

fn read<T: Reflect + Default>(manifest: &Value) -> Arc<T> {
    let mut object = T::default();
    let decoded = json::decode(manifest.to_string().as_bytes(), &mut object).unwrap();
    assert_eq!(decoded.problems, Vec::<String>::new(), "{manifest}");
    Arc::new(object)
}

/// What there is, on the node `n` of the zone `z`.
struct World {
    features: Features,
    slices: Vec<Value>,
    classes: Vec<Value>,
    allocated: Vec<Value>,
}

impl Inventory for World {
    fn class(&self, name: &str) -> Option<Arc<DeviceClass>> {
        self.classes.iter().find(|class| class["metadata"]["name"] == name).map(read)
    }
}

impl World {
    /// One slice of the driver `d`.
    fn of(devices: Value) -> Self {
        let classes = vec![json!({"metadata": {"name": "any"}, "spec": {}})];
        Self { features: ALL, slices: vec![slice(devices)], classes, allocated: vec![] }
    }

    fn allocator(&self, claims: &[Value]) -> Allocator {
        let slices: Vec<Arc<ResourceSlice>> = self.slices.iter().map(read).collect();
        let claims: Vec<Arc<ResourceClaim>> = claims.iter().map(read).collect();
        let mut allocated = Allocated::default();
        for own in &self.allocated {
            allocated.add(&read::<AllocationResult>(own), self.features.consumable_capacity);
        }
        let selectors = Arc::new(Selectors::new(true));
        Allocator::new(self.features, claims, Arc::new(Slices::of(&slices)), Arc::new(allocated), selectors)
    }

    fn allocate_on(&self, allocator: &Allocator, node: &str) -> Result<Option<Vec<AllocationResult>>, AllocateError> {
        let labels = BTreeMap::from([("zone".to_owned(), "z".to_owned())]);
        let found = allocator.find(CandidateNode { name: node, labels: &labels }, None, self, &|| false)?;
        found.map(|found| allocator.results(&found, node, None, self, &Rng::seeded(1))).transpose()
    }

    /// What claims get on the node `n`.
    fn allocate(&self, claims: &[Value]) -> Result<Option<Vec<AllocationResult>>, AllocateError> {
        self.allocate_on(&self.allocator(claims), "n")
    }

    /// The same as text.
    fn outcome(&self, claims: &[Value]) -> String {
        self.outcome_on(&self.allocator(claims), "n")
    }

    /// The devices as `request:device`, those of each claim together; `-` where there are not enough, or the error.
    fn outcome_on(&self, allocator: &Allocator, node: &str) -> String {
        match self.allocate_on(allocator, node) {
            Ok(None) => "-".to_owned(),
            Err(error) => error.to_string(),
            Ok(Some(results)) => {
                let device = |result: &api_types::resource_v1::DeviceRequestAllocationResult| {
                    format!("{}:{}", result.request, result.device)
                };
                let of_claim =
                    |result: &AllocationResult| result.devices.results.iter().map(device).collect::<Vec<_>>().join(",");
                results.iter().map(of_claim).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

fn slice(devices: Value) -> Value {
    json!({"metadata": {"name": "s"}, "spec": {"driver": "d", "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": devices}})
}

fn claim(requests: Value) -> Value {
    json!({"metadata": {"name": "c", "namespace": "ns"}, "spec": {"devices": {"requests": requests}}})
}

fn constrained(requests: Value, constraints: Value) -> Value {
    let mut claim = claim(requests);
    claim["spec"]["devices"]["constraints"] = constraints;
    claim
}

/// A request for so many devices of any class, with further fields.
fn request(name: &str, count: i64, more: Value) -> Value {
    let mut exactly = json!({"deviceClassName": "any", "allocationMode": "ExactCount", "count": count});
    exactly.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"name": name, "exactly": exactly})
}

fn all(name: &str) -> Value {
    json!({"name": name, "exactly": {"deviceClassName": "any", "allocationMode": "All"}})
}

fn cel(expression: &str) -> Value {
    json!({"selectors": [{"cel": {"expression": expression}}]})
}

fn plain(count: usize) -> Value {
    (0..count).map(|number| json!({"name": format!("d{number}")})).collect()
}

fn taken(device: &str, more: Value) -> Value {
    let mut result = json!({"request": "r", "driver": "d", "pool": "p", "device": device});
    result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"devices": {"results": [result]}})
}

#[test]
fn devices_are_taken_in_order_and_once() {
    let none = json!({});
    let one = |name: &str| request(name, 1, json!({}));
    let cases = [
        (World::of(plain(2)), vec![claim(json!([one("r")]))], "r:d0"),
        (World::of(plain(2)), vec![claim(json!([one("a"), one("b")]))], "a:d0,b:d1"),
        (World::of(plain(2)), vec![claim(json!([one("a")])), claim(json!([one("b")]))], "a:d0 b:d1"),
        (World::of(plain(2)), vec![claim(json!([request("r", 3, none.clone())]))], "-"),
        (World::of(plain(1)), vec![claim(json!([one("a")])), claim(json!([one("b")]))], "-"),
        (
            World { allocated: vec![taken("d0", none.clone())], ..World::of(plain(2)) },
            vec![claim(json!([one("r")]))],
            "r:d1",
        ),
        (
            World { allocated: vec![taken("d0", json!({"adminAccess": true}))], ..World::of(plain(2)) },
            vec![claim(json!([one("r")]))],
            "r:d0",
        ),
        (
            World::of(plain(40)),
            vec![claim(json!([request("r", 33, none)]))],
            "claim ns/c: number of requested devices 33 exceeds the claim limit of 32",
        ),
    ];
    for (place, (world, claims, expected)) in cases.into_iter().enumerate() {
        assert_eq!(world.outcome(&claims), expected, "case {place}");
    }
}

#[test]
fn the_way_back_is_found() {
    let devices = json!([
        {"name": "both", "attributes": {"a": {"bool": true}, "b": {"bool": true}}},
        {"name": "only-a", "attributes": {"a": {"bool": true}, "b": {"bool": false}}},
    ]);
    let world = World::of(devices);
    let claims = [claim(json!([
        request("a", 1, cel("device.attributes['d'].a")),
        request("b", 1, cel("device.attributes['d'].b")),
    ]))];
    assert_eq!(world.outcome(&claims), "a:only-a,b:both");
}

#[test]
fn expressions_select() {
    let devices = json!([
        {"name": "small", "attributes": {"model": {"string": "x"}, "version": {"version": "1.2.3"}},
            "capacity": {"memory": {"value": "1Gi"}}},
        {"name": "big", "attributes": {"model": {"string": "y"}, "other.org/n": {"int": 7}, "version": {"version": "2.0.0"}},
            "capacity": {"memory": {"value": "4Gi"}}, "allowMultipleAllocations": false},
    ]);
    let cases = [
        ("device.driver == 'd'", "r:small"),
        ("device.driver == 'e'", "-"),
        ("device.attributes['d'].model == 'y'", "r:big"),
        ("has(device.attributes['other.org'].n)", "r:big"),
        ("has(device.attributes['nowhere'].n)", "-"),
        ("'other.org' in device.attributes", "r:big"),
        ("device.attributes['d'].version.isGreaterThan(semver('1.9.0'))", "r:big"),
        ("device.capacity['d'].memory.compareTo(quantity('2Gi')) >= 0", "r:big"),
        ("!device.allowMultipleAllocations", "r:small"),
        ("device.attributes['nowhere'].n == 1", "claim ns/c: selector #0: CEL runtime error: no such key: n"),
    ];
    for (expression, expected) in cases {
        let outcome = World::of(devices.clone()).outcome(&[claim(json!([request("r", 1, cel(expression))]))]);
        assert_eq!(outcome, expected, "{expression}");
    }
    let broken = World::of(devices.clone()).outcome(&[claim(json!([request("r", 1, cel("device."))]))]);
    assert!(broken.starts_with("claim ns/c: selector #0: CEL compile error: "), "{broken}");
    let mut world = World::of(devices);
    world.classes[0]["spec"] = cel("device.attributes['d'].model == 'y'");
    assert_eq!(world.outcome(&[claim(json!([request("r", 1, json!({}))]))]), "r:big");
    assert_eq!(world.outcome(&[claim(json!([request("r", 2, json!({}))]))]), "-");
}

/// What an expression said of one device it has not said of the next, be that in another slice or in another pool.
#[test]
fn what_an_expression_said_is_of_one_device() {
    let device = |name: &str, fits: bool| json!({"name": name, "attributes": {"fits": {"bool": fits}}});
    let slice = |name: &str, node: &str, devices: Value| {
        json!({"metadata": {"name": name}, "spec": {"driver": "d", "nodeName": node, "devices": devices,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": if node == "n" { 2 } else { 1 }}}})
    };
    let world = World {
        slices: vec![
            slice("s", "n", json!([device("a", false), device("b", false)])),
            slice("t", "n", json!([device("c", false), device("d", true)])),
            slice("u", "o", json!([device("e", true), device("f", false)])),
            slice("v", "p", json!([device("g", false)])),
        ],
        ..World::of(json!([]))
    };
    let one = |name: &str, what: &str| request(name, 1, cel(&format!("{what}device.attributes['d'].fits")));
    let allocator = world.allocator(&[claim(json!([one("r", ""), one("not", "!")]))]);
    // The second time from what was said the first time.
    for _ in 0..2 {
        let on = |node| world.outcome_on(&allocator, node);
        assert_eq!([on("n"), on("o"), on("p")], ["r:d,not:a", "r:e,not:f", "-"]);
    }
}

#[test]
fn who_asks_for_all_gets_all_or_nothing() {
    let world = |used: &[&str]| World {
        allocated: used.iter().map(|device| taken(device, json!({}))).collect(),
        ..World::of(plain(3))
    };
    assert_eq!(world(&[]).outcome(&[claim(json!([all("r")]))]), "r:d0,r:d1,r:d2");
    assert_eq!(world(&["d1"]).outcome(&[claim(json!([all("r")]))]), "-");
    assert_eq!(World::of(json!([])).outcome(&[claim(json!([all("r")]))]), "-");
    let mut changing = world(&[]);
    changing.slices[0]["spec"]["pool"]["resourceSliceCount"] = json!(2);
    let text = "claim ns/c, request r: asks for all devices, but resource pool d/p is currently being updated";
    assert_eq!(changing.outcome(&[claim(json!([all("r")]))]), text);
    let twice = World::of(json!([{"name": "d0"}, {"name": "d0"}]));
    let text = "claim ns/c, request r: asks for all devices, but resource pool d/p is currently invalid";
    assert_eq!(twice.outcome(&[claim(json!([all("r")]))]), text);
}

#[test]
fn pools_are_whole_and_of_the_newest_generation() {
    let named = |name: &str, generation: i64, count: i64, device: &str| {
        json!({"metadata": {"name": name}, "spec": {"driver": "d", "nodeName": "n", "devices": [{"name": device}],
            "pool": {"name": "p", "generation": generation, "resourceSliceCount": count}}})
    };
    let of_zone = |zone: &str| {
        let term = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
        json!({"metadata": {"name": "z"}, "spec": {"driver": "d", "nodeSelector": {"nodeSelectorTerms": [term]},
            "devices": [{"name": "far"}], "pool": {"name": "q", "generation": 1, "resourceSliceCount": 1}}})
    };
    let elsewhere = {
        let mut slice = named("e", 1, 1, "e");
        slice["spec"]["nodeName"] = json!("m");
        slice
    };
    let per_device = json!({"metadata": {"name": "x"}, "spec": {"driver": "d", "perDeviceNodeSelection": true,
        "devices": [{"name": "m", "nodeName": "m"}, {"name": "n", "nodeName": "n"}],
        "pool": {"name": "q", "generation": 1, "resourceSliceCount": 1}}});
    let cases = [
        (vec![named("a", 1, 1, "a")], "r:a"),
        (vec![named("a", 1, 2, "a")], "-"),
        (vec![named("b", 1, 2, "b"), named("a", 1, 2, "a")], "r:a"),
        (vec![named("a", 1, 1, "a"), named("b", 2, 1, "b")], "r:b"),
        (vec![of_zone("z")], "r:far"),
        (vec![of_zone("y")], "-"),
        (vec![elsewhere], "-"),
        (vec![per_device], "r:n"),
        (vec![slice(json!([{"name": "a"}, {"name": "a"}]))], "invalid resource pools were encountered"),
        (vec![slice(json!([{"name": "a", "bindingConditions": ["Ready"]}]))], "-"),
    ];
    for (place, (slices, expected)) in cases.into_iter().enumerate() {
        let world = World { slices, ..World::of(json!([])) };
        assert_eq!(world.outcome(&[claim(json!([request("r", 1, json!({}))]))]), expected, "case {place}");
    }
}

#[test]
fn devices_that_wait_for_conditions_are_the_last_to_be_taken() {
    let pool = |name: &str, device: Value| {
        let mut slice = slice(json!([device]));
        slice["metadata"]["name"] = json!(name);
        slice["spec"]["pool"]["name"] = json!(name);
        slice
    };
    let slices =
        || vec![pool("a", json!({"name": "slow", "bindingConditions": ["Ready"]})), pool("b", json!({"name": "fast"}))];
    let world = |on: bool| World {
        features: Features { binding_conditions: on, ..ALL },
        slices: slices(),
        ..World::of(json!([]))
    };
    let wants = |count: i64| [claim(json!([request("r", count, json!({}))]))];
    assert_eq!(world(true).outcome(&wants(1)), "r:fast");
    assert_eq!(world(true).outcome(&wants(2)), "r:fast,r:slow");
    assert_eq!(world(false).outcome(&wants(2)), "-");
}

#[test]
fn constraints_tie_devices_together() {
    let device = |name: &str, numa: i64| json!({"name": name, "attributes": {"numa": {"int": numa}}});
    let devices = json!([device("a0", 0), device("b1", 1), device("c1", 1), {"name": "none"}]);
    let two = || json!([request("r", 2, json!({}))]);
    let each = || json!([request("a", 1, json!({})), request("b", 1, json!({}))]);
    let cases = [
        (two(), json!([{"matchAttribute": "d/numa"}]), "r:b1,r:c1"),
        (two(), json!([{"distinctAttribute": "d/numa"}]), "r:a0,r:b1"),
        (each(), json!([{"matchAttribute": "d/numa", "requests": ["a", "b"]}]), "a:b1,b:c1"),
        (each(), json!([{"matchAttribute": "d/numa", "requests": ["a"]}]), "a:a0,b:b1"),
        (each(), json!([{"matchAttribute": "e/numa"}]), "-"),
        (json!([request("r", 3, json!({}))]), json!([{"matchAttribute": "d/numa"}]), "-"),
        (json!([request("r", 3, json!({}))]), json!([{"distinctAttribute": "d/numa"}]), "-"),
        (
            json!([all("r")]),
            json!([{"matchAttribute": "d/numa"}]),
            "claim ns/c, request r: cannot add device b1 because a claim constraint would not be satisfied",
        ),
    ];
    for (requests, constraints, expected) in cases {
        let outcome = World::of(devices.clone()).outcome(&[constrained(requests, constraints.clone())]);
        assert_eq!(outcome, expected, "{constraints}");
    }
}

#[test]
fn attributes_may_be_lists() {
    let device = |name: &str, roots: &[&str]| json!({"name": name, "attributes": {"roots": {"strings": roots}}});
    let devices = json!([
        device("ab", &["a", "b"]),
        device("bc", &["b", "c"]),
        device("ca", &["c", "a"]),
        device("d", &["d"]),
        {"name": "b", "attributes": {"roots": {"string": "b"}}},
        {"name": "n", "attributes": {"roots": {"ints": [1, 2]}}},
        {"name": "v", "attributes": {"roots": {"versions": ["1.0.0", "2.0.0"]}}},
    ]);
    let outcome = |list_attributes: bool, expression: &str, count: i64, constraints: Value| {
        let selectors = if expression.is_empty() { json!({}) } else { cel(expression) };
        let world = World { features: Features { list_attributes, ..ALL }, ..World::of(devices.clone()) };
        world.outcome(&[constrained(json!([request("r", count, selectors)]), constraints)])
    };
    let (same, different) = (json!([{"matchAttribute": "d/roots"}]), json!([{"distinctAttribute": "d/roots"}]));
    for (on, count, constraints, expected) in [
        (true, 2, &same, "r:ab,r:bc"),
        // Any two of the first three have one in common, and all three have none.
        (true, 3, &same, "r:ab,r:bc,r:b"),
        (true, 4, &same, "-"),
        (true, 4, &different, "r:ab,r:d,r:n,r:v"),
        (true, 5, &different, "r:ca,r:d,r:b,r:n,r:v"),
        (true, 6, &different, "-"),
        (false, 1, &same, "r:b"),
        (false, 2, &same, "-"),
        (false, 2, &different, "-"),
    ] {
        assert_eq!(outcome(on, "", count, constraints.clone()), expected, "{on} {count} {constraints}");
    }
    // Expressions see lists whatever the gate says: it is about what may be written.
    let attribute = "device.attributes['d'].roots";
    for (expression, expected) in [
        ("ATTRIBUTE.includes('c')", "r:bc"),
        ("ATTRIBUTE.includes('d')", "r:d"),
        ("ATTRIBUTE.includes(2)", "r:n"),
        ("ATTRIBUTE.includes(semver('2.0.0'))", "r:v"),
        ("ATTRIBUTE.includes('x')", "-"),
        ("type(ATTRIBUTE) == string", "r:b"),
    ] {
        for on in [true, false] {
            let expression = expression.replace("ATTRIBUTE", attribute);
            assert_eq!(outcome(on, &expression, 1, json!([])), expected, "{on} {expression}");
        }
    }
}

fn alternatives(parts: &[(&str, &str, i64)]) -> Value {
    let part = |(name, expression, count): &(&str, &str, i64)| {
        let mut part = cel(expression);
        part["name"] = json!(name);
        part["deviceClassName"] = json!("any");
        part["allocationMode"] = json!("ExactCount");
        part["count"] = json!(count);
        part
    };
    json!({"name": "r", "firstAvailable": parts.iter().map(part).collect::<Vec<_>>()})
}

#[test]
fn the_first_alternative_that_works_is_taken() {
    let devices = json!([{"name": "a", "attributes": {"k": {"string": "slow"}}}, {"name": "b", "attributes": {"k": {"string": "fast"}}}]);
    let fast = "device.attributes['d'].k == 'fast'";
    let cases = [
        (vec![alternatives(&[("fast", fast, 1), ("any", "true", 1)])], "r/fast:b"),
        (vec![alternatives(&[("fast", fast, 2), ("any", "true", 2)])], "r/any:a,r/any:b"),
        (vec![alternatives(&[("fast", fast, 1), ("any", "true", 1)]), request("q", 1, cel(fast))], "r/any:a,q:b"),
        (vec![alternatives(&[("many", "true", 33), ("one", "true", 1)])], "r/one:a"),
        (vec![alternatives(&[("many", "true", 3)])], "-"),
    ];
    for (place, (requests, expected)) in cases.into_iter().enumerate() {
        assert_eq!(World::of(devices.clone()).outcome(&[claim(json!(requests))]), expected, "case {place}");
    }
    let off = World { features: Features { prioritized_list: false, ..ALL }, ..World::of(devices) };
    let text = "claim ns/c, request r: has subrequests, but the DRAPrioritizedList feature is disabled";
    assert_eq!(off.outcome(&[claim(json!([alternatives(&[("any", "true", 1)])]))]), text);
}

#[test]
fn who_looks_after_devices_may_have_those_of_others() {
    let admin = |name: &str| request(name, 1, json!({"adminAccess": true}));
    let world = || World { allocated: vec![taken("d0", json!({}))], ..World::of(plain(1)) };
    assert_eq!(world().outcome(&[claim(json!([admin("r")]))]), "r:d0");
    assert_eq!(world().outcome(&[claim(json!([admin("a"), admin("b")]))]), "-", "not twice in a claim");
    assert_eq!(world().outcome(&[claim(json!([admin("a")])), claim(json!([admin("b")]))]), "a:d0 b:d0");
    let free = World::of(plain(1));
    let both = [claim(json!([admin("a")])), claim(json!([request("b", 1, json!({}))]))];
    assert_eq!(free.outcome(&both), "a:d0 b:d0", "who looks after it takes nothing");
    let off = World { features: Features { admin_access: false, ..ALL }, ..world() };
    let text = "claim ns/c, request r: admin access is requested, but the feature is disabled";
    assert_eq!(off.outcome(&[claim(json!([admin("r")]))]), text);
}

#[test]
fn taints_are_tolerated_or_keep_away() {
    let taint = |effect: &str| json!({"key": "k", "value": "v", "effect": effect});
    let tolerating = |toleration: Value| request("r", 1, json!({"tolerations": [toleration]}));
    let cases = [
        ("NoSchedule", request("r", 1, json!({})), "-"),
        ("NoExecute", request("r", 1, json!({})), "-"),
        ("None", request("r", 1, json!({})), "r:a"),
        ("NoSchedule", tolerating(json!({"operator": "Exists"})), "r:a"),
        ("NoSchedule", tolerating(json!({"key": "k", "operator": "Equal", "value": "v"})), "r:a"),
        ("NoSchedule", tolerating(json!({"key": "k", "operator": "Equal", "value": "w"})), "-"),
        ("NoSchedule", tolerating(json!({"key": "k", "operator": "Exists", "effect": "NoExecute"})), "-"),
        ("NoSchedule", tolerating(json!({"key": "l", "operator": "Exists"})), "-"),
    ];
    for (effect, request, expected) in cases {
        let world = World::of(json!([{"name": "a", "taints": [taint(effect)]}]));
        assert_eq!(world.outcome(&[claim(json!([request]))]), expected, "{effect} {request}");
    }
    let off = Features { device_taints: false, ..ALL };
    let world = World { features: off, ..World::of(json!([{"name": "a", "taints": [taint("NoSchedule")]}])) };
    assert_eq!(world.outcome(&[claim(json!([request("r", 1, json!({}))]))]), "r:a");
}

#[test]
fn devices_share_counters() {
    let takes = |name: &str, amount: &str| json!({"name": name, "consumesCounters": [{"counterSet": "gpu", "counters": {"memory": {"value": amount}}}]});
    let counters = json!({"metadata": {"name": "counters"}, "spec": {"driver": "d", "nodeName": "n",
        "sharedCounters": [{"name": "gpu", "counters": {"memory": {"value": "10Gi"}}}],
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2}}});
    let world = || {
        let mut devices =
            slice(json!([takes("whole", "10Gi"), takes("half", "5Gi"), takes("other", "5Gi"), takes("more", "6Gi")]));
        devices["spec"]["pool"]["resourceSliceCount"] = json!(2);
        World { slices: vec![counters.clone(), devices], ..World::of(json!([])) }
    };
    let wants = |count: i64| [claim(json!([request("r", count, json!({}))]))];
    assert_eq!(world().outcome(&wants(1)), "r:whole");
    assert_eq!(world().outcome(&wants(2)), "r:half,r:other");
    assert_eq!(world().outcome(&wants(3)), "-");
    let used = World { allocated: vec![taken("half", json!({}))], ..world() };
    assert_eq!((used.outcome(&wants(1)), used.outcome(&wants(2))), ("r:other".to_owned(), "-".to_owned()));
    let off = World { features: Features { partitionable_devices: false, ..ALL }, ..world() };
    assert_eq!(off.outcome(&wants(1)), "-");
    let unknown = World { slices: vec![slice(json!([takes("a", "1")]))], ..world() };
    assert_eq!(unknown.outcome(&wants(1)), "invalid resource pools were encountered");
}

#[test]
fn capacity_is_shared_by_claims() {
    let shared = |policy: Value| json!([{"name": "a", "allowMultipleAllocations": true, "capacity": {"memory": {"value": "10", "requestPolicy": policy}}}]);
    let asks = |amount: &str| request("r", 1, json!({"capacity": {"requests": {"memory": amount}}}));
    let range = json!({"default": "2", "validRange": {"min": "2", "max": "8", "step": "2"}});
    let values = json!({"default": "1", "validValues": ["1", "4", "8"]});
    let used = |amount: &str| taken("a", json!({"shareID": "u", "consumedCapacity": {"memory": amount}}));
    let cases = [
        (json!(null), vec![], asks("3"), Some("3")),
        (json!(null), vec![], asks("11"), None),
        (json!(null), vec![], request("r", 1, json!({})), Some("10")),
        (range.clone(), vec![], request("r", 1, json!({})), Some("2")),
        (range.clone(), vec![], asks("1"), Some("2")),
        (range.clone(), vec![], asks("3"), Some("4")),
        (range.clone(), vec![], asks("9"), None),
        (values.clone(), vec![], asks("2"), Some("4")),
        (values, vec![], asks("9"), None),
        (json!(null), vec![used("7")], asks("3"), Some("3")),
        (json!(null), vec![used("7"), used("1")], asks("3"), None),
        (json!(null), vec![taken("a", json!({}))], asks("3"), None),
        (json!(null), vec![], request("r", 1, json!({"capacity": {"requests": {"cores": "1"}}})), None),
    ];
    for (place, (policy, allocated, request, expected)) in cases.into_iter().enumerate() {
        let world = World { allocated, ..World::of(shared(policy)) };
        let found = world.allocate(&[claim(json!([request]))]).unwrap();
        let result = found.map(|found| found[0].devices.results[0].clone());
        let amount = result.as_ref().map(|result| result.consumed_capacity["memory"].to_string());
        assert_eq!(amount.as_deref(), expected, "case {place}");
        assert!(result.is_none_or(|result| result.share_id.is_some()), "case {place}");
    }
    let two = [claim(json!([asks("6")])), claim(json!([asks("4")]))];
    assert_eq!(World::of(shared(json!(null))).outcome(&two), "r:a r:a");
    let two = [claim(json!([asks("6")])), claim(json!([asks("5")]))];
    assert_eq!(World::of(shared(json!(null))).outcome(&two), "-");
}

#[test]
fn results_tell_where_and_how() {
    let mut world = World::of(plain(1));
    world.classes[0]["spec"] = json!({"config": [{"opaque": {"driver": "d", "parameters": {"a": 1}}}]});
    let mut asked = claim(json!([alternatives(&[("x", "true", 1)])]));
    let config = |requests: Value| json!({"requests": requests, "opaque": {"driver": "d", "parameters": {}}});
    asked["spec"]["devices"]["config"] =
        json!([config(json!([])), config(json!(["r"])), config(json!(["r/x"])), config(json!(["r/y"]))]);
    let found = world.allocate(&[asked]).unwrap().unwrap().remove(0);
    let sources: Vec<_> =
        found.devices.config.iter().map(|own| (own.source.as_str(), own.requests.join(","))).collect();
    let expected = [("FromClass", "r/x"), ("FromClaim", ""), ("FromClaim", "r"), ("FromClaim", "r/x")];
    assert_eq!(sources, expected.map(|(source, requests)| (source, requests.to_owned())));
    let selector = found.node_selector.unwrap();
    assert_eq!(selector.node_selector_terms[0].match_fields[0].values, ["n"]);
    for (place, expected) in [
        (json!({"allNodes": true}), None),
        (
            json!({"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]}}),
            Some("zone"),
        ),
    ] {
        let mut shared = slice(plain(1));
        shared["spec"].as_object_mut().unwrap().remove("nodeName");
        shared["spec"].as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        let world = World { slices: vec![shared], ..World::of(json!([])) };
        let found = world.allocate(&[claim(json!([request("r", 1, json!({}))]))]).unwrap().unwrap().remove(0);
        let key = found.node_selector.map(|own| own.node_selector_terms[0].match_expressions[0].key.clone());
        assert_eq!(key.as_deref(), expected, "{place}");
    }
}

#[test]
fn allocations_come_and_go() {
    let mut allocated = Allocated::default();
    let share = read::<AllocationResult>(&taken("a", json!({"shareID": "u", "consumedCapacity": {"memory": "3"}})));
    let whole = read::<AllocationResult>(&taken("b", json!({})));
    allocated.add(&share, true);
    allocated.add(&share, true);
    allocated.add(&whole, true);
    let left = |allocated: &Allocated| {
        let amount = allocated.of("d", "p", "a").and_then(|own| own.consumed("memory")).map(ToString::to_string);
        (amount, allocated.of("d", "p", "b").is_some_and(|own| own.is_exclusive()))
    };
    assert_eq!(left(&allocated), (Some("6".to_owned()), true));
    allocated.remove(&share, true);
    allocated.remove(&whole, true);
    assert_eq!(left(&allocated), (Some("3".to_owned()), false));
    allocated.remove(&share, true);
    assert_eq!(allocated.of("d", "p", "a"), None);
}

#[test]
fn nobody_waits_for_ever() {
    let world = World::of(plain(2));
    let slices: Vec<Arc<ResourceSlice>> = world.slices.iter().map(read).collect();
    let claims = vec![read(&claim(json!([request("r", 1, json!({}))])))];
    let allocator =
        Allocator::new(ALL, claims, Arc::new(Slices::of(&slices)), Arc::default(), Arc::new(Selectors::new(true)));
    let labels = BTreeMap::new();
    let outcome = allocator.find(CandidateNode { name: "n", labels: &labels }, None, &world, &|| true);
    assert_eq!(outcome.unwrap_err(), AllocateError::Timeout);
    let mut world = world;
    world.classes.clear();
    let text =
        "claim ns/c, request r: could not retrieve device class any: deviceclass.resource.k8s.io \"any\" not found";
    assert_eq!(world.outcome(&[claim(json!([request("r", 1, json!({}))]))]), text);
}
