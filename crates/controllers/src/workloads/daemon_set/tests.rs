//! Plans from tables, and the controller against the fake server.

use api_types::apps_v1::RollingUpdateDaemonSet;

use super::super::fixtures::{Running, Swallow, at, dying, meta, pod, ready, run_until_idle, selector, template};
use super::*;

const SETS_AT: &str = "apps/v1/daemonsets";
const REVISIONS_AT: &str = "apps/v1/controllerrevisions";
const PODS_AT: &str = "v1/pods";

fn set(unavailable: i32, surge: i32) -> DaemonSet {
    let mut set = DaemonSet { metadata: meta("d"), ..DaemonSet::default() };
    set.metadata.labels.clear();
    set.metadata.generation = 2;
    set.spec.selector = selector();
    set.spec.template = template("v1");
    set.spec.revision_history_limit = Some(10);
    set.spec.update_strategy.type_ = ROLLING_UPDATE.into();
    set.spec.update_strategy.rolling_update =
        Some(RollingUpdateDaemonSet { max_unavailable: Some(unavailable.into()), max_surge: Some(surge.into()) });
    set
}

fn node(name: &str) -> Arc<Node> {
    let mut node = Node::default();
    node.metadata.name = name.into();
    Arc::new(node)
}

/// A pod `{name}` on a node, of a template's hash, ready or not.
fn on(name: &str, node: &str, hash: &str, is_ready: bool) -> Pod {
    let mut pod = pod(name, "Running", None);
    pod.spec.node_name = node.into();
    pod.metadata.labels.insert("controller-revision-hash".into(), hash.into());
    if is_ready { ready(pod, 1) } else { pod }
}

fn placed(set: &DaemonSet, nodes: &[&str], pods: Vec<Pod>) -> Placement {
    let nodes: Vec<_> = nodes.iter().map(|name| node(name)).collect();
    Placement::new(set, &nodes, pods.into_iter().map(Arc::new).collect(), Comparing::Texts)
}

fn summary(create: &[String], delete: &[Arc<Pod>]) -> String {
    let names: Vec<_> = delete.iter().map(|pod| pod.metadata.name.as_str()).collect();
    format!("+{} -{}", create.join(","), names.join(","))
}

#[test]
fn every_node_gets_one_pod() {
    let phase = |mut pod: Pod, phase: &str| {
        pod.status.phase = phase.into();
        pod
    };
    let created = |mut pod: Pod, when| {
        pod.metadata.creation_timestamp = at(when);
        pod
    };
    let unbound = |node: &str| {
        let mut pod = pod_content::pod_for(&set(1, 0), node, "h");
        pod.metadata.name = "unbound".into();
        pod
    };
    let ok = |name: &str| on(name, "a", "h", true);
    for (name, nodes, pods, expected) in [
        ("create", vec!["a", "b"], vec![], "+a,b -"),
        ("steady state", vec!["a"], vec![ok("p")], "+ -"),
        ("a new node", vec!["a", "b"], vec![ok("p")], "+b -"),
        ("too many: the oldest stays", vec!["a"], vec![created(ok("young"), 9), created(ok("old"), 1)], "+ -young"),
        ("failed", vec!["a"], vec![phase(ok("p"), "Failed")], "+ -p"),
        ("succeeded", vec!["a"], vec![phase(ok("p"), "Succeeded")], "+ -p"),
        ("on its way out", vec!["a"], vec![dying(ok("p"))], "+ -"),
        ("ended and deleted is gone", vec!["a"], vec![phase(dying(ok("p")), "Failed")], "+a -"),
        ("made for a node that is gone", vec!["a"], vec![ok("p"), unbound("z")], "+ -unbound"),
        ("bound to a node that is gone", vec!["a"], vec![ok("p"), on("q", "z", "h", true)], "+ -"),
    ] {
        let set = set(1, 0);
        let plan = manage::plan(&set, &placed(&set, &nodes, pods), "h", |_| None, at(100));
        assert_eq!(summary(&plan.create, &plan.delete), expected, "{name}");
    }
}

#[test]
fn a_node_that_is_not_meant_keeps_nothing() {
    let mut set = set(1, 0);
    set.spec.template.spec.node_selector.insert("x".into(), "y".into());
    let placement = placed(&set, &["a"], vec![on("p", "a", "h", true)]);
    let plan = manage::plan(&set, &placement, "h", |_| None, at(100));
    assert_eq!(summary(&plan.create, &plan.delete), "+ -p");
    let status = status::status_of(&set, &placement, "h", 2, at(100));
    assert_eq!((status.number_misscheduled, status.desired_number_scheduled), (1, 0));
}

#[test]
fn failed_pods_are_held_back() {
    let set = set(1, 0);
    let mut failed = on("p", "a", "h", false);
    failed.status.phase = "Failed".into();
    let placement = placed(&set, &["a"], vec![failed]);
    let plan = manage::plan(&set, &placement, "h", |_| Some(Duration::from_secs(8)), at(100));
    assert_eq!(summary(&plan.create, &plan.delete), "+ -");
    assert_eq!(plan.look_again, Some(Duration::from_secs(8)));
}

#[test]
fn surge_keeps_one_of_each_template() {
    let set = set(0, 1);
    let (old, new) = (|ready| on("old", "a", "g", ready), |ready| on("new", "a", "h", ready));
    for (name, pods, expected) in [
        ("none, as the old one goes", vec![dying(old(true))], "+a -"),
        ("both, new not available", vec![old(true), new(false)], "+ -"),
        ("both, new available", vec![old(true), new(true)], "+ -old"),
        ("both, old not ready", vec![old(false), new(false)], "+ -old"),
    ] {
        let plan = manage::plan(&set, &placed(&set, &["a"], pods), "h", |_| None, at(100));
        assert_eq!(summary(&plan.create, &plan.delete), expected, "{name}");
    }
}

#[test]
fn updates_delete_as_many_as_may_be_missing() {
    let (old, new) = (|name, node, ready| on(name, node, "g", ready), |name, node, ready| on(name, node, "h", ready));
    for (name, unavailable, pods, expected) in [
        ("one at a time", 1, vec![old("p", "a", true), old("q", "b", true)], "+ -p"),
        ("two at a time", 2, vec![old("p", "a", true), old("q", "b", true)], "+ -p,q"),
        ("broken ones at once", 1, vec![old("p", "a", false), old("q", "b", true)], "+ -p"),
        ("a new one is on its way", 1, vec![new("p", "a", false), old("q", "b", true)], "+ -"),
        ("a new one is there", 1, vec![new("p", "a", true), old("q", "b", true)], "+ -q"),
        ("a node without", 1, vec![old("q", "b", true)], "+ -"),
        ("done", 1, vec![new("p", "a", true), new("q", "b", true)], "+ -"),
        ("nothing may be missing, so one", 0, vec![old("p", "a", true), old("q", "b", true)], "+ -p"),
    ] {
        let set = set(unavailable, 0);
        let step = rolling::plan(&set, &placed(&set, &["a", "b"], pods), "h", at(100));
        assert_eq!(summary(&step.create, &step.delete), expected, "{name}");
    }
}

#[test]
fn updates_with_surge_start_new_ones_first() {
    let (old, new) = (|name, node, ready| on(name, node, "g", ready), |name, node, ready| on(name, node, "h", ready));
    for (name, pods, expected) in [
        ("one at a time", vec![old("p", "a", true), old("q", "b", true)], "+a -"),
        ("broken ones at once", vec![old("p", "a", false), old("q", "b", true)], "+a,b -"),
        ("one is starting", vec![old("p", "a", true), new("n", "a", false), old("q", "b", true)], "+ -"),
        ("one has started", vec![old("p", "a", true), new("n", "a", true), old("q", "b", true)], "+b -p"),
    ] {
        let set = set(0, 1);
        let step = rolling::plan(&set, &placed(&set, &["a", "b"], pods), "h", at(100));
        assert_eq!(summary(&step.create, &step.delete), expected, "{name}");
    }
}

#[test]
fn history_goes_by_content_and_use() {
    let set = set(1, 0);
    let named = |name: &str, number, image: &str| {
        let mut other = set.clone();
        other.spec.template = template(image);
        let mut revision = revisions::revision(&other, number);
        revision.metadata.labels.insert("controller-revision-hash".into(), name.into());
        Arc::new(revision)
    };
    let all = vec![named("c", 3, "v3"), named("a", 1, "v0"), named("b", 2, "v1")];
    let (current, old) = revisions::sort(&set, all);
    assert_eq!((current.len(), revisions::hash_of(&current[0])), (1, "b"));
    assert_eq!(revisions::next_number(&old), 4);
    let surplus = |limit, pods: &[Arc<Pod>]| {
        revisions::surplus(&old, Some(limit), pods)
            .iter()
            .map(|it| revisions::hash_of(it).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(surplus(1, &[]), ["a"]);
    assert_eq!(surplus(1, &[Arc::new(on("p", "n", "a", true))]), ["c"]);
    assert_eq!(surplus(2, &[]), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn nodes_get_pods_and_updates_roll() {
    let running = Running::start(&[DESCRIPTOR]);
    running.put(SETS_AT, &set(1, 0));
    running.put("v1/nodes", &*node("a"));
    run_until_idle().await;
    running.put("v1/nodes", &*node("b"));
    run_until_idle().await;
    assert_eq!((running.count(PODS_AT), running.count(REVISIONS_AT)), (2, 1));
    running.make_pods_ready().await;
    run_until_idle().await;
    let sets = running.client.namespaced::<DaemonSet>("ns");
    let mut live = sets.get("d").await.unwrap();
    assert_eq!((live.status.number_available, live.status.observed_generation), (2, 2));
    running.assert_steady().await;

    live.spec.template = template("v2");
    sets.update(&live).await.unwrap();
    for _ in 0..4 {
        run_until_idle().await;
        running.make_pods_ready().await;
    }
    run_until_idle().await;
    let pods = running.client.namespaced::<Pod>("ns").list(&Default::default()).await.unwrap().items;
    assert!(pods.len() == 2 && pods.iter().all(|pod| pod.spec.containers[0].image == "v2"));
    assert_eq!(running.count(REVISIONS_AT), 2);
    assert_eq!(sets.get("d").await.unwrap().status.updated_number_scheduled, 2);
}

#[tokio::test(start_paused = true)]
async fn a_failing_server_is_asked_again() {
    let running = Running::start(&[DESCRIPTOR]);
    for name in ["a", "b", "c"] {
        running.put("v1/nodes", &*node(name));
    }
    run_until_idle().await;
    running.server.fail_next("POST", &[500, 500, 500]);
    running.put(SETS_AT, &set(1, 0));
    run_until_idle().await;
    assert_eq!(running.count(PODS_AT), 3);
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_means_the_same_is_kept() {
    for (grace, expected) in [(30, 1), (31, 2)] {
        let running = Running::start(&[DESCRIPTOR]);
        let mut adopted = set(1, 0);
        kinds::set_defaults(&mut adopted);
        adopted.spec.template.spec.termination_grace_period_seconds = Some(grace);
        let mut revision = revisions::revision(&adopted, 1);
        // As a release wrote it that knew fewer defaults and printed times that are not set.
        let mut data = revision.data.value();
        data["spec"]["template"]["metadata"]["creationTimestamp"] = serde_json::Value::Null;
        data["spec"]["template"]["spec"].as_object_mut().unwrap().remove("terminationGracePeriodSeconds");
        revision.data = api_machinery::leaf::RawJson::from_value(&data);
        revision.metadata.labels.insert("controller-revision-hash".into(), "before".into());
        revision.metadata.name = "d-before".into();
        running.put(REVISIONS_AT, &revision);
        running.put("v1/nodes", &*node("n"));
        running.put(SETS_AT, &adopted);
        run_until_idle().await;
        assert_eq!(running.count(REVISIONS_AT), expected, "grace period {grace}");
        let pods = running.server.objects(PODS_AT);
        assert_eq!(pods[0]["metadata"]["labels"]["controller-revision-hash"] == "before", expected == 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_came_and_went_between_two_lists_is_waited_for_no_longer() {
    let running = Running::start_over(&[DESCRIPTOR], Settings::default(), Swallow::over);
    running.put("v1/nodes", &*node("a"));
    running.put(SETS_AT, &set(1, 0));
    run_until_idle().await;
    assert_eq!((running.requests("POST", "pods"), running.count(PODS_AT)), (2, 1), "another was made in its place");
}
