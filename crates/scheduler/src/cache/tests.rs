//! The cache: choices, confirmations, nodes that come and go, snapshots.

use super::*;
use crate::test_objects::{node, pod};

fn names(snapshot: &Snapshot) -> Vec<String> {
    snapshot.nodes().iter().map(|node| node.name.to_string()).collect()
}

#[test]
fn choices_count_until_they_are_confirmed_or_forgotten() {
    let cache = Cache::new();
    cache.set_node(node("a").build());
    let info = cache.pod_info(pod("p").request("cpu", "1").build());
    let mut snapshot = Snapshot::default();
    let used = |snapshot: &mut Snapshot| {
        cache.update_snapshot(snapshot);
        snapshot.by_name("a").unwrap().requested.milli_cpu
    };
    cache.assume(&info, &"a".into()).unwrap();
    assert_eq!((used(&mut snapshot), cache.is_assumed("uid-p")), (1000, true));
    let twice = cache.assume(&info, &"a".into()).unwrap_err();
    assert_eq!(twice.to_string(), "pod uid-p(default/p) is in the cache, so can't be assumed");
    cache.forget("uid-p").unwrap();
    assert_eq!(used(&mut snapshot), 0);
    cache.assume(&info, &"a".into()).unwrap();
    cache.add_pod(pod("p").request("cpu", "1").on("a").build());
    assert_eq!((used(&mut snapshot), cache.is_assumed("uid-p")), (1000, false));
    assert!(cache.forget("uid-p").is_err());
    cache.remove_pod("uid-p");
    assert_eq!((used(&mut snapshot), cache.size()), (0, CacheSize { nodes: 1, pods: 0, assumed: 0 }));
}

#[test]
fn a_confirmation_may_name_another_node() {
    let cache = Cache::new();
    cache.set_node(node("a").build());
    cache.set_node(node("b").build());
    cache.assume(&cache.pod_info(pod("p").build()), &"a".into()).unwrap();
    cache.add_pod(pod("p").on("b").build());
    assert_eq!(cache.node_of("uid-p").as_deref(), Some("b"));
}

#[test]
fn pods_keep_a_node_that_is_gone() {
    let cache = Cache::new();
    cache.add_pod(pod("p").on("a").build());
    let mut snapshot = Snapshot::default();
    cache.update_snapshot(&mut snapshot);
    assert!(snapshot.is_empty());
    cache.set_node(node("a").build());
    cache.update_snapshot(&mut snapshot);
    assert_eq!(snapshot.by_name("a").unwrap().pods.len(), 1);
    cache.remove_node("a");
    cache.update_snapshot(&mut snapshot);
    assert!(snapshot.is_empty());
    assert_eq!(cache.size().nodes, 1);
    cache.remove_pod("uid-p");
    assert_eq!(cache.size().nodes, 0);
}

#[test]
fn zones_take_turns() {
    let cache = Cache::new();
    let zone = "topology.kubernetes.io/zone";
    for (name, in_zone) in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b")] {
        cache.set_node(node(name).label(zone, in_zone).build());
    }
    let mut snapshot = Snapshot::default();
    cache.update_snapshot(&mut snapshot);
    assert_eq!(names(&snapshot), ["a1", "b1", "a2", "a3"]);
    cache.set_node(node("a3").label(zone, "b").build());
    cache.update_snapshot(&mut snapshot);
    assert_eq!(names(&snapshot), ["a1", "b1", "a2", "a3"]);
    cache.remove_node("a1");
    cache.update_snapshot(&mut snapshot);
    assert_eq!(names(&snapshot), ["a2", "b1", "a3"]);
}

#[test]
fn only_what_changed_is_copied() {
    let cache = Cache::new();
    cache.set_node(node("a").build());
    cache.set_node(node("b").build());
    let mut snapshot = Snapshot::default();
    cache.update_snapshot(&mut snapshot);
    let before: Vec<_> = snapshot.nodes().to_vec();
    let topology = snapshot.topology("kubernetes.io/hostname");
    cache.add_pod(pod("p").far("x", "zone").on("b").build());
    cache.update_snapshot(&mut snapshot);
    assert!(Arc::ptr_eq(&before[0], &snapshot.nodes()[0]) && !Arc::ptr_eq(&before[1], &snapshot.nodes()[1]));
    assert!(Arc::ptr_eq(&topology, &snapshot.topology("kubernetes.io/hostname")));
    let with: Vec<_> = snapshot.with_required_anti().map(|node| node.index).collect();
    assert_eq!(with, [1]);
    cache.set_node(node("b").label("zone", "1").build());
    cache.update_snapshot(&mut snapshot);
    assert!(!Arc::ptr_eq(&topology, &snapshot.topology("kubernetes.io/hostname")));
}
