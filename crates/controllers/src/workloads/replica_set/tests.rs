//! Plans and reports from tables, and the controller against the fake server.

use api_types::apps_v1::ReplicaSetCondition;
use serde_json::json;

use super::super::fixtures::{
    OverQuota, Running, Swallow, Terminating, at, dying, meta, pod, ready, run_until_idle, selector, template,
};
use super::*;

fn set(replicas: i32) -> ReplicaSet {
    let mut set = ReplicaSet { metadata: meta("web"), ..ReplicaSet::default() };
    set.metadata.generation = 3;
    set.spec.replicas = Some(replicas);
    set.spec.selector = selector();
    set.spec.template = template("v1");
    set
}

fn pods(count: usize) -> Vec<Arc<Pod>> {
    (0..count).map(|index| Arc::new(ready(pod(&format!("p{index}"), "Running", None), 100))).collect()
}

#[test]
fn plans() {
    let describe = |replicas, active: usize| match plan::scaling(
        &set(replicas),
        &pods(active),
        Vec::new,
        ALL,
        MicroTime::default(),
    ) {
        Scaling::Enough => "enough".to_owned(),
        Scaling::Create(count) => format!("create {count}"),
        Scaling::Delete(pods) => format!("delete {}", pods.len()),
    };
    for (name, replicas, active, expected) in [
        ("create", 3, 0, "create 3"),
        ("steady state", 3, 3, "enough"),
        ("scale up", 3, 2, "create 1"),
        ("scale down", 1, 3, "delete 2"),
        ("to nothing", 0, 3, "delete 3"),
        ("a burst at a time", 2000, 10, "create 500"),
        ("a burst down at a time", 0, 700, "delete 500"),
        ("nonsense", -1, 0, "enough"),
    ] {
        assert_eq!(describe(replicas, active), expected, "{name}");
    }
}

#[test]
fn the_status_counts_and_keeps_the_first_failure() {
    let mut set = set(4);
    set.spec.min_ready_seconds = 30;
    let old = Arc::new(ready(pod("a", "Running", None), 10));
    let fresh = Arc::new(ready(pod("b", "Running", None), 90));
    let mut bare = pod("c", "Pending", None);
    bare.metadata.labels.clear();
    let pods = Pods { active: vec![old, fresh, Arc::new(bare)], terminating: 2 };
    let status = status::status_of(&set, &pods, Some("no quota".into()), ALL, at(100));
    assert_eq!((status.replicas, status.fully_labeled_replicas), (3, 2));
    assert_eq!((status.ready_replicas, status.available_replicas), (2, 1));
    assert_eq!((status.terminating_replicas, status.observed_generation), (Some(2), 3));
    let failure = &status.conditions[0];
    assert_eq!((failure.type_.as_str(), failure.reason.as_str()), ("ReplicaFailure", "FailedCreate"));
    assert_eq!(status::look_again(&set, &pods.active, &status, at(100)), Some(Duration::from_secs(20)));

    set.status = status.clone();
    let again = status::status_of(&set, &pods, Some("something else".into()), ALL, at(200));
    assert_eq!(again.conditions, status.conditions, "as it was first seen");
    let healed = status::status_of(&set, &pods, None, ALL, at(200));
    let silent = status::status_of(&set, &pods, None, Features { terminating: false, ..ALL }, at(200));
    assert_eq!(silent.terminating_replicas, None, "where nobody is to know");
    assert_eq!(healed.conditions, Vec::<ReplicaSetCondition>::new());
    assert_eq!(status::look_again(&set, &pods.active, &healed, at(200)), None, "all ready pods are available");
}

const ALL: Features = Features { deletion_cost: true, terminating: true };
const KNOWN: &[Descriptor] = &[DESCRIPTOR];
const SETS_AT: &str = "apps/v1/replicasets";
const PODS_AT: &str = "v1/pods";

#[tokio::test(start_paused = true)]
async fn pods_follow_the_number() {
    let running = Running::start(KNOWN);
    running.put(SETS_AT, &set(3));
    run_until_idle().await;
    assert_eq!(running.count(PODS_AT), 3);
    let sets = running.client.namespaced::<ReplicaSet>("ns");
    let mut live = sets.get("web").await.unwrap();
    assert_eq!(live.status.replicas, 3);
    live.spec.replicas = Some(1);
    sets.update(&live).await.unwrap();
    run_until_idle().await;
    assert_eq!(running.count(PODS_AT), 1);
    running.assert_steady().await;
}

#[tokio::test(start_paused = true)]
async fn replication_controllers_are_the_same_but_for_their_status() {
    let running = Running::start(&[REPLICATION_CONTROLLER]);
    let mut object = ReplicationController { metadata: meta("web"), ..ReplicationController::default() };
    object.spec.replicas = Some(2);
    object.spec.selector = selector().unwrap().match_labels;
    object.spec.template = Some(template("v1"));
    running.put("v1/replicationcontrollers", &object);
    run_until_idle().await;
    assert_eq!(running.count(PODS_AT), 2);
    let live = running.client.namespaced::<ReplicationController>("ns").get("web").await.unwrap();
    assert_eq!((live.status.replicas, live.status.fully_labeled_replicas), (2, 2));
    let pods = running.client.namespaced::<Pod>("ns").list(&Default::default()).await.unwrap();
    assert_eq!(pods.items[0].metadata.owner_references[0].kind, "ReplicationController");
    running.assert_steady().await;
}

#[tokio::test(start_paused = true)]
async fn orphans_are_adopted_and_strangers_left_alone() {
    let running = Running::start(KNOWN);
    let stranger = controller_ref::<ReplicaSet>(&meta("other"));
    running.put(PODS_AT, &pod("orphan", "Running", None));
    running.put(PODS_AT, &dying(pod("dying", "Running", None)));
    running.put(PODS_AT, &pod("stranger", "Running", Some(stranger)));
    running.put(SETS_AT, &set(1));
    run_until_idle().await;
    assert_eq!((running.count(PODS_AT), running.requests("PATCH", "pods")), (3, 1), "one adopted, none made");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_no_longer_matches_is_let_go_and_replaced() {
    let running = Running::start(KNOWN);
    let mut astray = pod("astray", "Running", Some(controller_ref::<ReplicaSet>(&meta("web"))));
    astray.metadata.labels.clear();
    running.put(PODS_AT, &astray);
    running.put(SETS_AT, &set(1));
    run_until_idle().await;
    assert_eq!((running.count(PODS_AT), running.requests("POST", "pods")), (2, 1));
    assert_eq!(running.requests("PATCH", "pods/astray"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_settled_with_the_live_object() {
    let running = Running::start(KNOWN);
    running.server.fail_next("PUT", &[409]);
    running.put(SETS_AT, &set(2));
    run_until_idle().await;
    let live = running.client.namespaced::<ReplicaSet>("ns").get("web").await.unwrap();
    assert_eq!((running.count(PODS_AT), live.status.replicas), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_failing_server_is_asked_again() {
    let running = Running::start(KNOWN);
    run_until_idle().await;
    running.server.fail_next("POST", &[500, 500]);
    running.put(SETS_AT, &set(4));
    run_until_idle().await;
    assert_eq!(running.count(PODS_AT), 4, "exactly as many as wanted, after partial failures");
    let live = running.client.namespaced::<ReplicaSet>("ns").get("web").await.unwrap();
    assert!(live.status.conditions.is_empty(), "the failure is taken back");
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_deleted_makes_nothing() {
    let running = Running::start(KNOWN);
    let mut going = set(3);
    going.metadata.deletion_timestamp = Some(at(1));
    running.put(SETS_AT, &going);
    run_until_idle().await;
    assert_eq!(running.count(PODS_AT), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_came_and_went_between_two_lists_is_waited_for_no_longer() {
    let running = Running::start_over(KNOWN, Settings::default(), Swallow::over);
    running.put(SETS_AT, &set(1));
    run_until_idle().await;
    assert_eq!((running.requests("POST", "pods"), running.count(PODS_AT)), (2, 1), "another was made in its place");
}

/// It would be waited for until its expectation expires, which is longer than some namespaces take to go.
#[tokio::test(start_paused = true)]
async fn a_pod_that_could_not_be_made_as_its_namespace_goes_is_not_waited_for() {
    let running = Running::start_over(KNOWN, Settings::default(), Terminating::over);
    running.put(SETS_AT, &set(1));
    run_until_idle().await;
    assert_eq!(running.count(PODS_AT), 1, "the next look, at what the first has written, makes it");
}

#[tokio::test(start_paused = true)]
async fn what_a_quota_refused_is_made_as_soon_as_there_is_room() {
    let running = Running::start_over(&[DESCRIPTOR], Settings::default(), OverQuota::over);
    let quota = |used: &str| {
        let status = json!({"hard": {"pods": "3"}, "used": {"pods": used}});
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
            "status": status});
        running.server.put("v1/resourcequotas", quota);
    };
    quota("3");
    running.put("apps/v1/replicasets", &set(1));
    tokio::time::sleep(Duration::from_secs(700)).await;
    assert_eq!(running.count("v1/pods"), 0);
    quota("2");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(running.count("v1/pods"), 1);
}
