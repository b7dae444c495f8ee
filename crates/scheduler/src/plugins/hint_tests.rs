//! Which events wake the pods that a plugin rejected.

use std::sync::Arc;

use api_machinery::object::{Kind, Object};
use api_machinery::quantity::Quantity;
use api_types::core_v1::{ContainerStatus, Node, Pod, ResourceList, ResourceRequirements};

use super::tests::default_profile;
use crate::framework::{ClusterEvent, EventObject, Hint, Resource, node_update_events, pod_update_events};
use crate::test_objects::{NodeBuilder, PodBuilder, node, pod};

/// What happened to an object of another kind.
pub(super) fn after_other<T: Kind + Object>(plugin: &str, waiting: PodBuilder, old: Option<T>, new: Option<T>) -> bool {
    let event = ClusterEvent::of_change(Resource::of::<T>(), old.is_some(), new.is_some());
    let whole = |object: T| -> Arc<dyn Object> { Arc::new(object) };
    wakes(plugin, &waiting.0, &[event], &EventObject::Other { old: old.map(whole), new: new.map(whole) })
}

/// Whether any registration of the plugin says that one of the events may help the pod.
fn wakes(plugin: &str, waiting: &Pod, events: &[ClusterEvent], object: &EventObject) -> bool {
    let profile = default_profile();
    let of_plugin = profile.registrations.iter().filter(|(name, _)| *name == plugin);
    of_plugin.map(|(_, registration)| registration).any(|registration| {
        let wanted = events.iter().any(|event| event.is_wanted_by(registration.resource, registration.action));
        wanted && registration.hint.as_ref().is_none_or(|hint| hint(waiting, object) == Hint::Queue)
    })
}

pub(super) fn after_node(plugin: &str, waiting: PodBuilder, old: Option<NodeBuilder>, new: NodeBuilder) -> bool {
    let (old, new): (Option<Arc<Node>>, _) = (old.map(NodeBuilder::build), new.build());
    let events = match &old {
        Some(old) => node_update_events(old, &new),
        None => vec![ClusterEvent::NODE_ADD],
    };
    wakes(plugin, &waiting.0, &events, &EventObject::Node { old, new: Some(new) })
}

pub(super) fn after_pod(plugin: &str, waiting: PodBuilder, old: Option<PodBuilder>, new: Option<PodBuilder>) -> bool {
    let (old, new) = (old.map(PodBuilder::build), new.map(PodBuilder::build));
    let events = match (&old, &new) {
        (Some(old), Some(new)) => pod_update_events(old, new),
        (Some(_), None) => vec![ClusterEvent::ASSIGNED_POD_DELETE],
        _ => vec![ClusterEvent::ASSIGNED_POD_ADD],
    };
    wakes(plugin, &waiting.0, &events, &EventObject::Pod { old, new })
}

#[test]
fn nodes() {
    let big = || pod("p").request("cpu", "4");
    let cases = [
        ("NodeResourcesFit", big(), None, node("n"), true),
        ("NodeResourcesFit", big(), None, node("n").capacity("cpu", "3"), false),
        ("NodeResourcesFit", big(), Some(node("n").capacity("cpu", "3")), node("n"), true),
        ("NodeResourcesFit", big(), Some(node("n")), node("n").capacity("memory", "9Gi"), false),
        ("NodeResourcesFit", big(), Some(node("n")), node("n").label("a", "b"), false),
        ("NodeUnschedulable", pod("p"), Some(node("n").cordoned()), node("n"), true),
        ("NodeUnschedulable", pod("p"), None, node("n").cordoned(), false),
        ("NodeUnschedulable", pod("p"), Some(node("n")), node("n").taint("k", "NoSchedule"), false),
        ("TaintToleration", pod("p"), Some(node("n").taint("k", "NoSchedule")), node("n"), true),
        ("TaintToleration", pod("p"), Some(node("n")), node("n").taint("k", "NoSchedule"), false),
        ("TaintToleration", pod("p"), Some(node("n")), node("n").taint("k", "PreferNoSchedule"), false),
        ("NodeAffinity", pod("p").selector("a", "b"), Some(node("n")), node("n").label("a", "b"), true),
        ("NodeAffinity", pod("p").selector("a", "b"), Some(node("n")), node("n").label("a", "c"), false),
        ("InterPodAffinity", pod("p").near("db", "zone"), None, node("n").label("zone", "1"), true),
        ("InterPodAffinity", pod("p").near("db", "zone"), None, node("n"), false),
        ("NodeName", pod("p").on("n"), Some(node("n")), node("n").label("a", "b"), false),
    ];
    for (place, (plugin, waiting, old, new, expected)) in cases.into_iter().enumerate() {
        assert_eq!(after_node(plugin, waiting, old, new), expected, "case {place}: {plugin}");
    }
}

/// A pod on a node that is to have so much of the processor, and has so much.
fn resized(wanted: &str, given: &str) -> PodBuilder {
    let mut pod = pod("x").request("cpu", wanted).on("n");
    let requests: ResourceList = [("cpu".to_owned(), Quantity::parse(given).unwrap())].into();
    pod.0.status.container_statuses.push(ContainerStatus {
        name: pod.0.spec.containers[0].name.clone(),
        allocated_resources: requests.clone(),
        resources: Some(ResourceRequirements { requests, ..ResourceRequirements::default() }),
        ..ContainerStatus::default()
    });
    pod
}

#[test]
fn pods() {
    let needy = || pod("p").request("cpu", "1");
    let spread = || pod("p").label("app", "web").spread("web", "zone", 1, "DoNotSchedule");
    let cases = [
        ("NodeResourcesFit", pod("p"), Some(pod("x").on("n")), None, true),
        ("NodeResourcesFit", pod("p"), Some(pod("x")), None, false),
        ("NodePorts", pod("p").host_port(80), Some(pod("x").host_port(80).on("n")), None, true),
        ("NodePorts", pod("p").host_port(80), Some(pod("x").host_port(81).on("n")), None, false),
        ("InterPodAffinity", pod("p").near("db", "zone"), None, Some(pod("x").label("app", "db").on("n")), true),
        ("InterPodAffinity", pod("p").near("db", "zone"), None, Some(pod("x").on("n")), false),
        ("InterPodAffinity", pod("p").far("db", "zone"), Some(pod("x").label("app", "db").on("n")), None, true),
        ("PodTopologySpread", spread(), Some(pod("x").label("app", "web").on("n")), None, true),
        ("PodTopologySpread", spread(), Some(pod("x").on("n")), None, false),
        ("SchedulingGates", pod("p").gate("g"), Some(pod("p").gate("g")), Some(pod("p")), true),
        ("SchedulingGates", pod("p").gate("g"), Some(pod("x").gate("g")), Some(pod("x")), false),
        ("TaintToleration", pod("p"), Some(pod("p")), Some(pod("p").tolerates("k")), true),
        ("DefaultPreemption", pod("p"), Some(pod("x").on("n")), None, false),
        // What is to be less is not less yet.
        ("NodeResourcesFit", needy(), Some(resized("2", "2")), Some(resized("1", "2")), false),
        ("NodeResourcesFit", needy(), Some(resized("1", "2")), Some(resized("1", "1")), true),
        ("NodeResourcesFit", pod("p"), Some(resized("1", "2")), Some(resized("1", "1")), false),
        ("NodeResourcesFit", needy(), Some(resized("1", "1")), Some(resized("2", "1")), false),
    ];
    for (place, (plugin, waiting, old, new, expected)) in cases.into_iter().enumerate() {
        assert_eq!(after_pod(plugin, waiting, old, new), expected, "case {place}: {plugin}");
    }
}
