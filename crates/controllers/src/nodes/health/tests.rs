//! Tests of the health of nodes.

use std::time::Duration;

use api_machinery::time::MicroTime;
use api_types::core_v1::constants::{TAINT_NODE_NOT_READY, TAINT_NODE_UNREACHABLE};
use api_types::core_v1::{Node, NodeCondition, Pod};
use tokio::time::Instant;

use super::eviction_queue::EvictionQueue;
use super::mirror::taints;
use super::record::{Grace, Now, hear};
use super::*;
use crate::workloads::fixtures::{Running, at, meta, ready as ready_pod};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];

fn node(ready: &str, heartbeat: i64) -> Node {
    let mut node = Node::default();
    node.metadata.name = "n".into();
    node.metadata.creation_timestamp = at(1);
    if !ready.is_empty() {
        node.status.conditions.push(NodeCondition {
            type_: "Ready".into(),
            status: ready.into(),
            last_heartbeat_time: at(heartbeat),
            ..NodeCondition::default()
        });
    }
    node
}

#[tokio::test(start_paused = true)]
async fn only_news_end_the_silence() {
    let grace = Grace { startup: Duration::from_secs(60), running: Duration::from_secs(50) };
    let start = Instant::now();
    let now = |seconds: u64| Now {
        wall: at(1000 + i64::try_from(seconds).unwrap()),
        monotonic: start + Duration::from_secs(seconds),
    };
    let lease = |seconds: i64| Some(MicroTime::from_unix_micros(seconds * 1_000_000));
    let first = hear(None, &node("True", 5), lease(5), grace, now(0));
    assert!(!first.is_silent(now(50).monotonic) && first.is_silent(now(51).monotonic));
    for (name, node, lease, silent) in [
        ("nothing new", node("True", 5), lease(5), true),
        ("a heartbeat", node("True", 6), lease(5), false),
        ("a renewed lease", node("True", 5), lease(6), false),
        ("a lease of a clock that was set back", node("True", 5), lease(4), false),
        ("the lease is gone", node("True", 5), None, true),
    ] {
        let record = hear(Some(&first), &node, lease, grace, now(60));
        assert_eq!(record.is_silent(now(60).monotonic), silent, "{name}");
    }
    let young = hear(None, &node("", 0), None, grace, Now { wall: at(1 + 59), monotonic: now(59).monotonic });
    assert!(!young.is_silent(now(59).monotonic) && young.is_silent(now(62).monotonic), "since its creation");
}

#[test]
fn taints_mirror_conditions() {
    let keys = |taints: Vec<api_types::core_v1::Taint>| taints.into_iter().map(|taint| taint.key).collect::<Vec<_>>();
    let mut cordoned = node("True", 1);
    cordoned.spec.unschedulable = true;
    let mut tainted = node("True", 1);
    tainted.spec.taints.push(crate::nodes::node_taints::taint(TAINT_NODE_NOT_READY, "NoSchedule", at(1)));
    tainted.spec.taints.push(crate::nodes::node_taints::taint(TAINT_NODE_NOT_READY, "NoExecute", at(1)));
    tainted.spec.taints.push(crate::nodes::node_taints::taint("mine", "NoSchedule", at(1)));
    for (name, node, add, remove) in [
        ("ready", node("True", 1), vec![], vec![]),
        ("not ready", node("False", 1), vec![TAINT_NODE_NOT_READY], vec![]),
        ("silent", node("Unknown", 1), vec![TAINT_NODE_UNREACHABLE], vec![]),
        ("cordoned", cordoned, vec!["node.kubernetes.io/unschedulable"], vec![]),
        ("ready again", tainted, vec![], vec![TAINT_NODE_NOT_READY]),
    ] {
        let (added, removed) = taints(&node, at(2));
        assert_eq!(
            (keys(added), keys(removed)),
            (
                add.into_iter().map(str::to_owned).collect::<Vec<_>>(),
                remove.into_iter().map(str::to_owned).collect::<Vec<_>>()
            ),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_are_tainted_at_the_rate() {
    let start = Instant::now();
    let mut queue = EvictionQueue::new(0.1, start);
    queue.add("a");
    queue.add("b");
    queue.add("a");
    assert_eq!(queue.next(start).as_deref(), Some("a"));
    assert_eq!(queue.next(start + Duration::from_secs(9)), None, "one in ten seconds");
    assert_eq!(queue.next(start + Duration::from_secs(10)).as_deref(), Some("b"));
    queue.add("a");
    assert_eq!(queue.next(start + Duration::from_secs(30)), None, "it was tainted already");
    queue.reset("a");
    queue.add("a");
    assert_eq!(queue.next(start + Duration::from_secs(40)).as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_zone_at_rest_taints_nobody() {
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    let mut queue = EvictionQueue::new(0.1, start);
    queue.set_rate(0.0, start);
    queue.add("a");
    assert_eq!(queue.next(after(1000)), None, "not even with the token that was left");
    queue.set_rate(0.1, after(1000));
    assert_eq!(queue.next(after(1009)), None, "it begins without a token");
    assert_eq!(queue.next(after(1010)).as_deref(), Some("a"));
    queue.add("b");
    queue.set_rate(0.1, after(1019));
    assert_eq!(queue.next(after(1020)).as_deref(), Some("b"), "the same rate changes nothing");
    queue.add("c");
    queue.set_rate(0.01, after(1029));
    assert_eq!(queue.next(after(1128)), None, "part of a token does not count at another rate");
    assert_eq!(queue.next(after(1129)).as_deref(), Some("c"));
}

/// The network is down here, not they.
#[tokio::test(start_paused = true)]
async fn nobody_has_to_leave_where_all_nodes_are_silent() {
    let running = Running::start(KNOWN);
    for name in ["a", "b"] {
        let mut node = node("True", 5);
        node.metadata.name = name.into();
        running.put("v1/nodes", &node);
    }
    tokio::time::sleep(Duration::from_secs(300)).await;
    for node in running.server.objects("v1/nodes") {
        assert_eq!(node["status"]["conditions"][0]["status"], "Unknown");
        let taints = node["spec"]["taints"].as_array().unwrap();
        let effects: Vec<_> = taints.iter().map(|taint| taint["effect"].as_str()).collect();
        assert_eq!(effects, [Some("NoSchedule")], "{taints:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_is_said_to_be_unknown() {
    let running = Running::start(KNOWN);
    let mut other = node("True", 5);
    other.metadata.name = "other".into();
    running.put("v1/nodes", &node("True", 5));
    running.put("v1/nodes", &other);
    let mut pod = ready_pod(Pod { metadata: meta("p"), ..Pod::default() }, 1);
    pod.spec.node_name = "n".into();
    running.put("v1/pods", &pod);
    for second in 0..100 {
        other.status.conditions[0].last_heartbeat_time = at(second);
        running.put("v1/nodes", &other);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let nodes = running.server.objects("v1/nodes");
    let silent = nodes.iter().find(|node| node["metadata"]["name"] == "n").unwrap();
    assert_eq!(silent["status"]["conditions"][0]["status"], "Unknown");
    assert_eq!(silent["status"]["conditions"][0]["reason"], "NodeStatusUnknown");
    let taints = silent["spec"]["taints"].as_array().unwrap();
    let keys: Vec<_> = taints.iter().map(|taint| (taint["key"].as_str(), taint["effect"].as_str())).collect();
    assert!(keys.contains(&(Some(TAINT_NODE_UNREACHABLE), Some("NoSchedule"))), "{keys:?}");
    assert!(keys.contains(&(Some(TAINT_NODE_UNREACHABLE), Some("NoExecute"))), "{keys:?}");
    assert_eq!(running.server.objects("v1/pods")[0]["status"]["conditions"][0]["status"], "False");
    let awake = nodes.iter().find(|node| node["metadata"]["name"] == "other").unwrap();
    assert_eq!(awake["status"]["conditions"][0]["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn pods_are_marked_once_and_only_when_the_kubelet_is_silent() {
    for (name, status, failures, expected) in [
        ("the kubelet says that it is not ready", "False", vec![], false),
        ("silent before this process", "Unknown", vec![], true),
        ("silent, and the first try fails", "Unknown", vec![500; 2], true),
    ] {
        let running = Running::start(KNOWN);
        let mut pod = ready_pod(Pod { metadata: meta("p"), ..Pod::default() }, 1);
        pod.spec.node_name = "n".into();
        let is_ready = || running.server.objects("v1/pods")[0]["status"]["conditions"][0]["status"] == "True";
        running.put("v1/pods", &pod);
        running.put("v1/nodes", &node(if expected { status } else { "True" }, 1));
        running.server.fail_next("PUT", &failures);
        tokio::time::sleep(Duration::from_secs(11)).await;
        running.put("v1/nodes", &node(status, 2));
        tokio::time::sleep(Duration::from_secs(16)).await;
        assert_eq!(!is_ready(), expected, "{name}");
        running.put("v1/pods", &pod);
        tokio::time::sleep(Duration::from_secs(16)).await;
        assert!(is_ready(), "{name}: it is not said over and over");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_freed_does_not_hold_up_the_others() {
    let running = Running::start(KNOWN);
    for name in ["a", "b"] {
        let mut node = node("True", 1);
        node.metadata.name = name.into();
        node.spec.taints.push(crate::nodes::node_taints::taint(TAINT_NODE_UNREACHABLE, "NoExecute", at(1)));
        running.put("v1/nodes", &node);
    }
    running.server.fail_next("PATCH", &[500]);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let events = running.server.objects("v1/events");
    let said: Vec<_> = events.iter().filter_map(|event| event["message"].as_str()).collect();
    for name in ["a", "b"] {
        assert!(
            said.contains(&format!("Node {name} event: Registered Node {name} in Controller").as_str()),
            "{said:?}"
        );
    }
}

/// No kubelet says anything new for minutes.
#[tokio::test(start_paused = true)]
async fn a_taint_that_could_not_be_removed_goes_later() {
    let running = Running::start(KNOWN);
    let mut node = node("True", 1);
    node.spec.taints.push(crate::nodes::node_taints::taint(TAINT_NODE_UNREACHABLE, "NoSchedule", at(1)));
    running.server.fail_next("PATCH", &[500, 503]);
    running.put("v1/nodes", &node);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(running.server.objects("v1/nodes")[0]["spec"]["taints"].as_array().is_none_or(Vec::is_empty));
}
