//! Resources that devices stand for: how full a node gets with them, and which classes wake pods.

use api_machinery::object::Object;
use api_types::resource_v1::{ResourceClaim, ResourceSlice};
use serde_json::{Value, json};

use super::super::tests::build_cx;
use super::*;
use crate::config::{build_profiles, decode};
use crate::known_answers::ShapeAnswers;
use crate::pod_class::ClassTable;
use crate::test_objects::{node, object, pod, snapshot};

const GPU: &str = "example.com/gpu";

#[test]
fn devices_count_as_what_a_node_has() {
    let mut cx = build_cx();
    cx.gates = cx.gates.with(EXTENDED_RESOURCE, true);
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}});
    cx.listers.of().put(Arc::new(object::<DeviceClass>(class)));
    let slice = |name: &str, count: usize| {
        let devices: Vec<Value> = (0..count).map(|number| json!({"name": format!("d{number}")})).collect();
        let pool = json!({"name": name, "generation": 1, "resourceSliceCount": 1});
        object::<ResourceSlice>(json!({"metadata": {"name": name},
            "spec": {"driver": "d", "nodeName": name, "devices": devices, "pool": pool}}))
    };
    for (name, count) in [("a", 4), ("b", 2)] {
        cx.listers.of().put(Arc::new(slice(name, count)));
    }
    let taken = json!({"request": "r", "driver": "d", "pool": "a", "device": "d0"});
    let claim = json!({"metadata": {"name": "c", "namespace": "default", "uid": "u"}, "spec": {},
        "status": {"allocation": {"devices": {"results": [taken]}}}});
    cx.listers.of().put(Arc::new(object::<ResourceClaim>(claim)));
    let strategy = json!({"type": "MostAllocated", "resources": [{"name": GPU, "weight": 1}]});
    let only = json!({"enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}, {"name": NAME}], "disabled": [{"name": "*"}]});
    let config = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": only},
            "pluginConfig": [{"name": NAME, "args": {"scoringStrategy": strategy}}]}]});
    let profile = build_profiles(&decode(&config).unwrap(), super::super::ALL, &cx).unwrap().remove(0);
    let classes = ClassTable::default();
    let listing = node("c").capacity(GPU, "10");
    let snapshot = snapshot(vec![node("a"), node("b"), listing, node("d")], vec![], &classes);
    let views: Vec<_> = snapshot.views().collect();
    let incoming = pod("p").request(GPU, "1").info(&classes);
    assert!(!profile.is_local_for(&incoming) && profile.is_local_for(&pod("q").info(&classes)));
    let cycle = CycleCx { snapshot: &snapshot };
    let scores = profile.run_scores(cycle, &mut CycleState::default(), &incoming, &views, &mut ShapeAnswers::default());
    assert_eq!(scores.unwrap(), [50, 50, 10, 0]);
}

#[test]
fn classes_wake_who_asks_for_them() {
    let class = |name: &str, resource: Option<&str>| {
        let mut class = DeviceClass::default();
        class.metadata.name = name.into();
        class.spec.extended_resource_name = resource.map(str::to_owned);
        class
    };
    let implicit = "deviceclass.resource.kubernetes.io/gpu";
    let woken = |resource: &str, old: Option<DeviceClass>, new: DeviceClass| {
        let whole = |class: DeviceClass| -> Arc<dyn Object> { Arc::new(class) };
        let change = EventObject::Other { old: old.map(whole), new: Some(whole(new)) };
        offered(&pod("p").request(resource, "1").0, &change) == Hint::Queue
    };
    for (resource, old, new, expected) in [
        (GPU, None, class("gpu", Some(GPU)), true),
        (implicit, None, class("gpu", None), true),
        (implicit, Some(class("gpu", None)), class("gpu", Some(GPU)), false),
        (GPU, Some(class("gpu", None)), class("gpu", Some(GPU)), true),
        (GPU, Some(class("gpu", Some(GPU))), class("gpu", Some(GPU)), false),
        (GPU, None, class("gpu", Some("example.com/other")), false),
    ] {
        assert_eq!(woken(resource, old, new), expected, "{resource}");
    }
}
