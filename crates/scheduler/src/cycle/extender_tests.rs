//! Whole cycles with HTTP extenders: real servers have a say in filtering, scoring, binding and eviction.

use std::time::Duration;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use api_types::resource_v1::{DeviceClass, ResourceClaim};
use api_types::storage_v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};
use http::StatusCode;
use serde_json::{Value, json};

use super::tests::Fixture;
use super::*;
use crate::config::{decode, validate};
use crate::framework::{ClusterEvent, EventObject, Resource};
use crate::plugins::extender::test_server::TestServer;
use crate::test_objects::{PodBuilder, node, pod};

/// A scheduler with these extenders and nodes.
fn extended(extenders: &Value, nodes: &[&str]) -> Fixture {
    let file = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "extenders": extenders});
    let configuration = decode(&file).unwrap();
    validate(&configuration, &component_base::Gates::default()).unwrap();
    let fixture = Fixture::of(&configuration, Parallelism::default(), |_| {});
    for name in nodes {
        fixture.scheduler.node_added(&node(name).build());
    }
    fixture
}

/// An extender of the configuration with further fields.
fn extender(server: &TestServer, fields: Value) -> Value {
    let mut extender = json!({"urlPrefix": server.url("http") + "/api/"});
    for (name, value) in fields.as_object().unwrap() {
        extender[name] = value.clone();
    }
    extender
}

/// The node that a pod gets, or why it gets none.
async fn outcome(fixture: &Fixture, pod: PodBuilder) -> String {
    fixture.pod(pod);
    fixture.step().await;
    let lines = fixture.lines();
    let node = lines.iter().find_map(|line| Some(line.strip_prefix("bind ")?.rsplit_once(' ')?.1));
    let told = lines.iter().find_map(|line| Some(line.strip_prefix("FailedScheduling ")?.split_once(": ")?.1));
    node.or(told).unwrap_or_else(|| panic!("{lines:?}")).to_owned()
}

/// A text in which the address of a server stands as `URL`.
fn without_address(text: &str, server: &TestServer) -> String {
    text.replace(&server.url("http"), "URL")
}

fn sorted_names(nodes: &Value) -> Vec<String> {
    let name = |node: &Value| node.as_str().or(node["metadata"]["name"].as_str()).unwrap().to_owned();
    let mut names: Vec<_> = nodes.as_array().unwrap().iter().map(name).collect();
    names.sort_unstable();
    names
}

const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";

#[tokio::test]
async fn filters_are_asked_about_what_the_plugins_leave() {
    let server = TestServer::plain();
    let fixture = extended(&json!([extender(&server, json!({"filterVerb": "filter"}))]), &["a", "b", "c"]);
    fixture.scheduler.node_added(&node("cordoned").cordoned().build());
    let left = json!({"items": [{"metadata": {"name": "b"}, "unknown": 1}]});
    server.answers("/api/filter", &json!({"nodes": left, "failedNodes": {"a": "too far"}, "more": {}}));
    assert_eq!(outcome(&fixture, pod("p")).await, "b", "names match whatever their case");
    let asked = server.asked().remove(0);
    assert_eq!((asked.path.as_str(), asked.content_type.as_str()), ("/api/filter", "application/json"));
    let body = asked.body;
    assert_eq!((&body["Pod"]["metadata"]["name"], &body["NodeNames"]), (&json!("p"), &Value::Null));
    assert_eq!(sorted_names(&body["Nodes"]["items"]), ["a", "b", "c"]);
    assert_eq!((&body["Pod"]["kind"], &body["Nodes"]["items"][0]["kind"]), (&Value::Null, &Value::Null));
    // Nodes that are gone without a word have no reason.
    let failed = json!({"a": "too far", "b": "too far"});
    let never = json!({"b": "never"});
    server.answers("/api/filter", &json!({"FailedNodes": failed, "FailedAndUnresolvableNodes": never}));
    let reasons = "0/4 nodes are available: 1 never, 1 node(s) were unschedulable, 1 too far. no new claims to deallocate, preemption: 0/4 nodes are \
                   available: 1 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling.";
    assert_eq!(outcome(&fixture, pod("q")).await, reasons);
    let waits = "scheduler_unschedulable_pods{plugin=\"Extender\",profile=\"default-scheduler\"} 1\n";
    assert!(fixture.shown.text().contains(waits));
}

#[tokio::test]
async fn any_change_may_help_whom_an_extender_rejected() {
    let server = TestServer::plain();
    let fixture = extended(&json!([extender(&server, json!({"filterVerb": "filter"}))]), &["a"]);
    server.answers("/api/filter", &json!({"FailedNodes": {"a": "full"}}));
    let gone = pod("gone").on("a").build();
    fixture.scheduler.pod_added(&gone);
    let unschedulable = || fixture.scheduler.queue().size().unschedulable;
    outcome(&fixture, pod("p")).await;
    assert_eq!(unschedulable(), 1);
    fixture.scheduler.node_added(&node("b").build());
    assert_eq!(unschedulable(), 0);
    outcome(&fixture, pod("q")).await;
    assert_eq!(unschedulable(), 1);
    fixture.scheduler.pod_deleted(&gone);
    assert_eq!(unschedulable(), 0);
    // Extenders look at volumes, too.
    let kinds = [
        Resource::of::<PersistentVolume>(),
        Resource::of::<PersistentVolumeClaim>(),
        Resource::of::<StorageClass>(),
        Resource::of::<CSINode>(),
        Resource::of::<CSIDriver>(),
        Resource::of::<CSIStorageCapacity>(),
        Resource::of::<ResourceClaim>(),
        Resource::of::<DeviceClass>(),
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        let Resource::Other(watched) = kind else { panic!("{kind:?}") };
        assert!(fixture.scheduler.other_kinds().contains(&watched), "{kind:?}");
        outcome(&fixture, pod(&format!("r{number}"))).await;
        assert_eq!(unschedulable(), 1);
        fixture.scheduler.other_changed(&ClusterEvent::of_change(kind, true, true), &EventObject::None);
        assert_eq!(unschedulable(), 0, "{kind:?}");
    }
}

#[tokio::test]
async fn an_extender_that_knows_the_nodes_is_told_their_names() {
    let server = TestServer::plain();
    let filter = |capable: bool| json!({"filterVerb": "filter", "nodeCacheCapable": capable});
    let fixture = extended(&json!([extender(&server, filter(true))]), &["a", "b"]);
    server.answers("/api/filter", &json!({"NodeNames": ["b"]}));
    assert_eq!(outcome(&fixture, pod("p")).await, "b");
    let body = server.asked().remove(0).body;
    assert_eq!((sorted_names(&body["NodeNames"]), &body["Nodes"]), (vec!["a".into(), "b".into()], &Value::Null));
    server.answers("/api/filter", &json!({"NodeNames": ["b", "z"]}));
    let expected = "extender \"URL/api\" claims a filtered node \"z\" which is not found in the input node list";
    assert_eq!(without_address(&outcome(&fixture, pod("q")).await, &server), expected);
    // Whole nodes will do as well; who was not asked for names has none.
    server.answers("/api/filter", &json!({"Nodes": {"items": [{"metadata": {"name": "a"}}]}}));
    assert_eq!(outcome(&fixture, pod("r")).await, "a");
    let fixture = extended(&json!([extender(&server, filter(false))]), &["a"]);
    server.answers("/api/filter", &json!({"NodeNames": ["a"]}));
    let nothing = format!(
        "0/1 nodes are available: no new claims to deallocate, preemption: 0/1 nodes are available: 1 {NOT_HELPFUL}."
    );
    assert_eq!(outcome(&fixture, pod("s")).await, nothing);
}

#[tokio::test]
async fn each_filter_is_asked_about_what_the_one_before_left_those_that_may_be_ignored_last() {
    let (first, second) = (TestServer::plain(), TestServer::plain());
    let ignorable = extender(&first, json!({"filterVerb": "f", "nodeCacheCapable": true, "ignorable": true}));
    let needed = extender(&second, json!({"filterVerb": "f", "nodeCacheCapable": true}));
    let fixture = extended(&json!([ignorable, needed]), &["a", "b", "c"]);
    second.answers("/api/f", &json!({"NodeNames": ["b", "c"]}));
    first.answers("/api/f", &json!({"NodeNames": ["c"]}));
    assert_eq!(outcome(&fixture, pod("p")).await, "c");
    assert_eq!(sorted_names(&first.asked().remove(0).body["NodeNames"]), ["b", "c"]);
    second.answers("/api/f", &json!({"NodeNames": []}));
    outcome(&fixture, pod("q")).await;
    assert_eq!(first.paths(), Vec::<String>::new(), "there is nothing left to ask about");
}

#[tokio::test]
async fn scores_count_by_their_weight_beside_those_of_plugins() {
    let (one, two) = (TestServer::plain(), TestServer::plain());
    let scorer = |server, weight| extender(server, json!({"prioritizeVerb": "score", "weight": weight}));
    let fixture = extended(&json!([scorer(&one, 1), scorer(&two, 5)]), &["a", "b"]);
    // The plugins' word is for the node with more room, worth less than one extender point.
    fixture.scheduler.pod_added(&pod("other").request("cpu", "1").on("b").build());
    let scores =
        |a: i64, b: i64| json!([{"Host": "a", "Score": a}, {"host": "b", "score": b}, {"Host": "z", "Score": 9}]);
    for (first, second, expected) in
        [((0, 0), (0, 0), "a"), ((0, 10), (0, 0), "b"), ((10, 0), (0, 10), "b"), ((10, 0), (9, 10), "a")]
    {
        one.answers("/api/score", &scores(first.0, first.1));
        two.answers("/api/score", &scores(second.0, second.1));
        let name = format!("{first:?} {second:?}");
        assert_eq!(outcome(&fixture, pod(&name).request("cpu", "0")).await, expected, "{name}");
    }
    assert_eq!(sorted_names(&one.asked().remove(0).body["Nodes"]["items"]), ["a", "b"]);
    // Scores that do not come do not count, whoever fails.
    one.answers("/api/score", &scores(0, 10));
    two.says("/api/score", StatusCode::SERVICE_UNAVAILABLE, "");
    assert_eq!(outcome(&fixture, pod("last")).await, "b");
}

#[tokio::test]
async fn an_extender_binds_in_the_place_of_the_plugins() {
    let server = TestServer::plain();
    let binder = |ignorable: bool| json!([extender(&server, json!({"bindVerb": "bind", "ignorable": ignorable}))]);
    let fixture = extended(&binder(false), &["a"]);
    server.answers("/api/bind", &json!({"Error": ""}));
    fixture.pod(pod("p"));
    assert_eq!(fixture.step().await.as_deref(), Some("a"));
    assert_eq!(fixture.lines(), ["Scheduled p: Successfully assigned default/p to a"]);
    let expected = json!({"PodName": "p", "PodNamespace": "default", "PodUID": "uid-p", "Node": "a"});
    assert_eq!(server.asked().remove(0).body, expected);
    server.answers("/api/bind", &json!({"Error": "no way"}));
    fixture.pod(pod("q"));
    fixture.step().await;
    let failed = ["FailedScheduling q: no way", "patch q \"PodScheduled SchedulerError\" []"];
    assert_eq!(fixture.lines(), failed);
    let fixture = extended(&binder(true), &["a"]);
    fixture.pod(pod("r"));
    fixture.step().await;
    assert_eq!(fixture.lines()[0], "bind r a", "the others bind where it may be ignored");
}

/// A pod that needs the room of another, on two nodes. The lines are what becomes of it.
async fn preempted(server: &TestServer, fields: Value) -> (Vec<String>, Value) {
    let fixture = extended(&json!([extender(server, fields)]), &["a", "b"]);
    for (name, node) in [("on-a", "a"), ("on-b", "b"), ("small-b", "b")] {
        let cpu = if name == "on-b" { "3" } else { "1" };
        let cpu = if name == "on-a" { "4" } else { cpu };
        let victim = pod(name).request("cpu", cpu).on(node).build();
        fixture.pods.put(Arc::clone(&victim));
        fixture.scheduler.pod_added(&victim);
    }
    fixture.pod(pod("high").request("cpu", "4").priority(10));
    fixture.step().await;
    (fixture.lines(), server.asked().pop().map(|asked| asked.body).unwrap_or_default())
}

#[tokio::test]
async fn an_extender_has_a_say_in_who_is_evicted() {
    let server = TestServer::plain();
    let by_uid = json!({"preemptVerb": "preempt", "nodeCacheCapable": true});
    let meta = |node: &str, pods: &[&str]| {
        let pods: Vec<_> = pods.iter().map(|uid| json!({"UID": uid})).collect();
        json!({"NodeNameToMetaVictims": {node: {"Pods": pods, "NumPDBViolations": 0}}})
    };
    // Two victims cost more than one, but the extender leaves no other choice; and it may spare some of them.
    for (spared, gone) in [(&["uid-on-b", "uid-small-b"][..], &["on-b", "small-b"][..]), (&["uid-on-b"], &["on-b"])] {
        server.answers("/api/preempt", &meta("b", spared));
        let (lines, body) = preempted(&server, by_uid.clone()).await;
        for name in ["on-a", "on-b", "small-b"] {
            assert_eq!(lines.contains(&format!("delete {name}")), gone.contains(&name), "{name} in {lines:?}");
        }
        assert_eq!(body["NodeNameToVictims"], Value::Null);
        let expected = json!({"Pods": [{"UID": "uid-on-a"}], "NumPDBViolations": 0});
        assert_eq!(body["NodeNameToMetaVictims"]["a"], expected);
    }
    // Whole pods go to an extender that does not know them.
    let (_, body) = preempted(&server, json!({"preemptVerb": "preempt"})).await;
    assert_eq!((&body["Pod"]["metadata"]["name"], &body["NodeNameToMetaVictims"]), (&json!("high"), &Value::Null));
    assert_eq!(body["NodeNameToVictims"]["a"]["Pods"][0]["spec"]["nodeName"], "a");
    let told = async |answer: &Value, ignorable: bool| {
        server.answers("/api/preempt", answer);
        let (lines, _) = preempted(&server, json!({"preemptVerb": "preempt", "ignorable": ignorable})).await;
        let line = lines.iter().find(|line| line.starts_with("FailedScheduling")).unwrap();
        assert!(ignorable || !lines.iter().any(|line| line.starts_with("delete")), "{lines:?}");
        without_address(line.split("preemption: ").nth(1).unwrap(), &server)
    };
    let stranger =
        "extender: URL/api claims to preempt pod (UID: who) on node: a, but the pod is not found on that node";
    assert_eq!(told(&meta("a", &["who"]), false).await, stranger);
    let nowhere = "extender: URL/api claims to preempt pods on node: z, but the node is not found";
    assert_eq!(told(&meta("z", &["who"]), false).await, nowhere);
    assert_eq!(told(&meta("a", &[]), false).await, "expected at least one victim pod on node \"a\"");
    assert_eq!(told(&meta("a", &[]), true).await, "no candidate node for preemption");
    assert_eq!(told(&json!({}), false).await, "no candidate node for preemption");
}

#[tokio::test]
async fn who_fails_to_answer_fails_the_attempt_unless_it_may_be_ignored() {
    let server = TestServer::plain();
    let filter = |verb: &str, ignorable: bool| {
        json!([extender(&server, json!({"filterVerb": verb, "httpTimeout": "50ms", "ignorable": ignorable}))])
    };
    server.says("/api/away", StatusCode::NOT_FOUND, "");
    server.says("/api/garbled", StatusCode::OK, "{");
    server.answers("/api/unwell", &json!({"Error": "not today"}));
    for (verb, expected) in [
        ("away", "failed away with extender at URL URL/api/away, code 404"),
        ("garbled", "decoding the extender's answer: "),
        ("unwell", "not today"),
        ("silent", "URL/api: context deadline exceeded"),
    ] {
        let told = without_address(&outcome(&extended(&filter(verb, false), &["a"]), pod("p")).await, &server);
        assert!(told.starts_with(expected), "{verb}: {told}");
        assert_eq!(outcome(&extended(&filter(verb, true), &["a"]), pod("p")).await, "a", "{verb}");
    }
    let gone = json!([{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}]);
    let told = outcome(&extended(&gone, &["a"]), pod("p")).await;
    assert!(told.starts_with("Post \"http://127.0.0.1:1/filter\": ") && told.contains("refused"), "{told}");
}

#[tokio::test]
async fn only_pods_that_ask_for_its_resources_concern_an_extender() {
    let server = TestServer::plain();
    let managed = |ignored: bool| {
        let resources = json!([{"name": "example.com/gpu", "ignoredByScheduler": ignored}]);
        json!([extender(&server, json!({"filterVerb": "f", "nodeCacheCapable": true, "managedResources": resources}))])
    };
    server.answers("/api/f", &json!({"NodeNames": ["a"]}));
    let fixture = extended(&managed(true), &["a", "b"]);
    outcome(&fixture, pod("plain").request("cpu", "1")).await;
    assert_eq!(server.paths(), Vec::<String>::new());
    assert_eq!(outcome(&fixture, pod("p").request("example.com/gpu", "1")).await, "a", "no node says that it has any");
    assert_eq!(server.paths(), ["/api/f"]);
    let mut limited = pod("limited");
    let mut init = limited.0.spec.containers[0].clone();
    init.resources.limits.insert("example.com/gpu".into(), Quantity::parse("1").unwrap());
    limited.0.spec.init_containers.push(init);
    assert_eq!(outcome(&fixture, limited).await, "a");
    assert_eq!(server.paths(), ["/api/f"]);
    let told = outcome(&extended(&managed(false), &["a", "b"]), pod("p").request("example.com/gpu", "1")).await;
    assert!(told.starts_with("0/2 nodes are available: 2 Insufficient example.com/gpu."), "{told}");
}

#[tokio::test]
async fn a_nominated_node_is_the_first_that_extenders_are_asked_about() {
    let server = TestServer::plain();
    let filter = json!({"filterVerb": "f", "nodeCacheCapable": true});
    let fixture = extended(&json!([extender(&server, filter)]), &["a", "b"]);
    server.answers("/api/f", &json!({"NodeNames": ["b"]}));
    let mut nominated = pod("p");
    nominated.0.status.nominated_node_name = "b".into();
    assert_eq!(outcome(&fixture, nominated).await, "b");
    assert_eq!(sorted_names(&server.asked().remove(0).body["NodeNames"]), ["b"]);
    // It does not take it: the others are looked at, too.
    let mut nominated = pod("q");
    nominated.0.status.nominated_node_name = "a".into();
    server.answers("/api/f", &json!({"NodeNames": [], "FailedNodes": {"a": "no", "b": "no"}}));
    outcome(&fixture, nominated).await;
    let asked: Vec<_> = server.asked().iter().map(|asked| sorted_names(&asked.body["NodeNames"])).collect();
    assert_eq!(asked, [vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()]]);
}

#[tokio::test]
async fn the_loop_waits_for_the_answer_without_holding_anybody_else_up() {
    let server = TestServer::plain();
    let filter = json!({"filterVerb": "f", "nodeCacheCapable": true, "httpTimeout": "1h"});
    let fixture = extended(&json!([extender(&server, filter)]), &["a"]);
    let tasks = TaskGroup::new("test");
    tasks.spawn("scheduler", Arc::clone(&fixture.scheduler).run(tasks.clone(), tasks.token()));
    fixture.pod(pod("p"));
    while server.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(fixture.scheduler.pass.try_lock().is_some(), "evictions may be looked at meanwhile");
    fixture.scheduler.node_added(&node("b").build());
    assert_eq!(tasks.shutdown(Duration::from_secs(5)).await, base::Drained::All, "nor does it hold the end up");
}
