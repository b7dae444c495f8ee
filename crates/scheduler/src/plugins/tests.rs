//! Tables of plugins: a pod and nodes in, verdicts or scores out, through a profile so that states and skips count.

use std::sync::Arc;

use async_trait::async_trait;
use base::TaskGroup;
use component_base::Gates;
use component_base::metrics::{Metrics, MetricsOptions};

use super::*;
use crate::config::{build_profiles, decode, default_configuration};
use crate::framework::{BuildCx, CycleCx, CycleState, Diagnosis, Profile};
use crate::known_answers::ShapeAnswers;
use crate::listers::Listers;
use crate::metrics::SchedulerMetrics;
use crate::node_info::NodeView;
use crate::parallel::Parallelism;
use crate::pod_class::ClassTable;
use crate::test_objects::{NodeBuilder, PodBuilder, node, pod, snapshot};
use crate::writer::{ClusterWriter, NoEvents, NoObjects, WriteError};

pub(crate) struct NoWriter;

#[async_trait]
impl ClusterWriter for NoWriter {
    async fn bind(&self, _: &api_types::core_v1::Pod, _: &str) -> Result<(), WriteError> {
        Ok(())
    }
    async fn patch_status(
        &self,
        _: &api_types::core_v1::Pod,
        _: &api_types::core_v1::PodStatus,
    ) -> Result<(), WriteError> {
        Ok(())
    }
    async fn delete(&self, _: &api_types::core_v1::Pod) -> Result<(), WriteError> {
        Ok(())
    }
}

pub(crate) fn build_cx() -> BuildCx {
    BuildCx {
        listers: Arc::new(Listers::in_memory()),
        gates: Gates::default(),
        writer: Arc::new(NoWriter),
        objects: Arc::new(NoObjects),
        events: Arc::new(NoEvents),
        gate: Arc::default(),
        waiting: Arc::default(),
        groups: Arc::default(),
        metrics: Arc::new(SchedulerMetrics::new(&Metrics::new(MetricsOptions::default()))),
        clock: base::TokioClock::shared(),
        rng: base::Rng::seeded(1),
        tasks: TaskGroup::new("test"),
        proxies: Arc::default(),
        parallelism: Parallelism::default(),
    }
}

pub(crate) fn default_profile() -> Arc<Profile> {
    default_profile_in(&build_cx())
}

pub(crate) fn default_profile_in(cx: &BuildCx) -> Arc<Profile> {
    build_profiles(&default_configuration(), ALL, cx).unwrap().remove(0)
}

/// A profile with these plugins only, and what the queue and binding need.
fn profile_of(plugins: &[&str]) -> Arc<Profile> {
    profile_in(&build_cx(), plugins)
}

/// The same from what a test put there.
pub(super) fn profile_in(cx: &BuildCx, plugins: &[&str]) -> Arc<Profile> {
    let names: Vec<_> = ["PrioritySort", "DefaultBinder"].iter().chain(plugins).collect();
    let enabled: Vec<_> = names.iter().map(|name| serde_json::json!({ "name": name })).collect();
    let value = serde_json::json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{ "plugins": { "multiPoint": { "enabled": enabled, "disabled": [{ "name": "*" }] } } }],
    });
    build_profiles(&decode(&value).unwrap(), ALL, cx).unwrap().remove(0)
}

/// What each node says: empty when it fits.
fn verdicts(plugins: &[&str], incoming: PodBuilder, nodes: Vec<NodeBuilder>, pods: Vec<PodBuilder>) -> Vec<String> {
    verdicts_in(&build_cx(), plugins, incoming, nodes, pods)
}

/// The same where there are other objects, too.
pub(super) fn verdicts_in(
    cx: &BuildCx,
    plugins: &[&str],
    incoming: PodBuilder,
    nodes: Vec<NodeBuilder>,
    pods: Vec<PodBuilder>,
) -> Vec<String> {
    let (profile, classes) = (profile_in(cx, plugins), ClassTable::default());
    let snapshot = snapshot(nodes, pods, &classes);
    let incoming = incoming.info(&classes);
    let cx = CycleCx { snapshot: &snapshot };
    let mut state = CycleState::default();
    if let Err(status) = profile.run_pre_filter(cx, &mut state, &incoming, &mut Diagnosis::default()) {
        return vec![status.message()];
    }
    let verdict = |node: NodeView<'_>| profile.run_filters(&state, &incoming, node).err();
    snapshot.views().map(|node| verdict(node).map(|status| status.message()).unwrap_or_default()).collect()
}

fn scores(plugins: &[&str], incoming: PodBuilder, nodes: Vec<NodeBuilder>, pods: Vec<PodBuilder>) -> Vec<i64> {
    let (profile, classes) = (profile_of(plugins), ClassTable::default());
    let snapshot = snapshot(nodes, pods, &classes);
    let cx = CycleCx { snapshot: &snapshot };
    let views: Vec<NodeView<'_>> = snapshot.views().collect();
    profile
        .run_scores(cx, &mut CycleState::default(), &incoming.info(&classes), &views, &mut ShapeAnswers::default())
        .unwrap()
}

#[test]
fn simple_filters() {
    let cases: Vec<(&str, PodBuilder, NodeBuilder, &str)> = vec![
        ("NodeName", pod("p"), node("n"), ""),
        ("NodeName", pod("p").on("n"), node("n"), ""),
        ("NodeName", pod("p").on("m"), node("n"), "node(s) didn't match the requested node name"),
        ("NodeUnschedulable", pod("p"), node("n").cordoned(), "node(s) were unschedulable"),
        ("NodeUnschedulable", pod("p").tolerates("node.kubernetes.io/unschedulable"), node("n").cordoned(), ""),
        ("TaintToleration", pod("p"), node("n").taint("k", "NoSchedule"), "node(s) had untolerated taint(s)"),
        ("TaintToleration", pod("p"), node("n").taint("k", "PreferNoSchedule"), ""),
        ("TaintToleration", pod("p").tolerates("k"), node("n").taint("k", "NoExecute"), ""),
        ("NodeAffinity", pod("p").selector("zone", "a"), node("n").label("zone", "a"), ""),
        (
            "NodeAffinity",
            pod("p").selector("zone", "a"),
            node("n"),
            "node(s) didn't match Pod's node affinity/selector",
        ),
        ("NodeResourcesFit", pod("p").request("cpu", "4"), node("n"), ""),
        ("NodeResourcesFit", pod("p").request("cpu", "5"), node("n"), "Insufficient cpu"),
        (
            "NodeResourcesFit",
            pod("p").request("cpu", "5").request("memory", "9Gi").request("example.com/gpu", "1"),
            node("n").capacity("pods", "0"),
            "Too many pods, Insufficient cpu, Insufficient memory, Insufficient example.com/gpu",
        ),
    ];
    for (place, (plugin, incoming, node, expected)) in cases.into_iter().enumerate() {
        assert_eq!(verdicts(&[plugin], incoming, vec![node], vec![]), [expected], "case {place}: {plugin}");
    }
}

#[test]
fn host_ports_conflict() {
    let taken = "node(s) didn't have free ports for the requested pod ports";
    let nodes = || vec![node("a"), node("b")];
    let running = || vec![pod("x").host_port(80).on("a")];
    assert_eq!(verdicts(&["NodePorts"], pod("p").host_port(80), nodes(), running()), [taken, ""]);
    assert_eq!(verdicts(&["NodePorts"], pod("p").host_port(81), nodes(), running()), ["", ""]);
}

#[test]
fn spreading_is_enforced() {
    let nodes = || vec![node("a").label("zone", "1"), node("b").label("zone", "2"), node("c")];
    let running = || vec![pod("x").label("app", "web").on("a"), pod("y").label("app", "other").on("b")];
    let uneven = "node(s) didn't match pod topology spread constraints";
    let missing = "node(s) didn't match pod topology spread constraints (missing required label)";
    let incoming = |skew| pod("p").label("app", "web").spread("web", "zone", skew, "DoNotSchedule");
    assert_eq!(verdicts(&["PodTopologySpread"], incoming(1), nodes(), running()), [uneven, "", missing]);
    assert_eq!(verdicts(&["PodTopologySpread"], incoming(2), nodes(), running()), ["", "", missing]);
}

#[test]
fn affinity_is_enforced() {
    let nodes = || vec![node("a").label("zone", "1"), node("b").label("zone", "2"), node("c")];
    let running = || vec![pod("x").label("app", "db").on("a")];
    let (near, far) = ("node(s) didn't match pod affinity rules", "node(s) didn't match pod anti-affinity rules");
    let existing = "node(s) didn't satisfy existing pods anti-affinity rules";
    let run = |incoming, running| verdicts(&["InterPodAffinity"], incoming, nodes(), running);
    assert_eq!(run(pod("p").near("db", "zone"), running()), ["", near, near]);
    assert_eq!(run(pod("p").far("db", "zone"), running()), [far, "", ""]);
    assert_eq!(run(pod("p").near("none", "zone"), running()), [near, near, near]);
    // The first of a group may go anywhere where the label is.
    assert_eq!(run(pod("p").label("app", "self").near("self", "zone"), running()), ["", "", near]);
    let jealous = || vec![pod("x").far("web", "zone").on("b")];
    assert_eq!(run(pod("p").label("app", "web"), jealous()), ["", existing, ""]);
    assert_eq!(run(pod("p").label("app", "other"), jealous()), ["", "", ""]);
}

#[test]
fn scoring() {
    let busy = || vec![pod("x").request("cpu", "2").request("memory", "4Gi").on("a")];
    let nodes = || vec![node("a"), node("b")];
    let small = || pod("p").request("cpu", "1").request("memory", "2Gi");
    assert_eq!(scores(&["NodeResourcesFit"], small(), nodes(), busy()), [25, 75]);
    assert_eq!(scores(&["NodeResourcesBalancedAllocation"], small(), nodes(), busy()), [75, 75]);
    let tainted = || vec![node("a").taint("k", "PreferNoSchedule"), node("b")];
    assert_eq!(scores(&["TaintToleration"], small(), tainted(), vec![]), [0, 100]);
    assert_eq!(
        scores(&["TaintToleration"], small().tolerates("k"), tainted(), vec![]),
        [100, 100],
        "whatever the effect"
    );
    let near = pod("p").rather_near("db", "kubernetes.io/hostname", 5);
    let db = vec![pod("x").label("app", "db").on("b")];
    assert_eq!(scores(&["InterPodAffinity"], near, nodes(), db), [0, 100]);
    let spread = pod("p").spread("web", "kubernetes.io/hostname", 1, "ScheduleAnyway");
    let web = vec![pod("x").label("app", "web").on("a")];
    assert_eq!(scores(&["PodTopologySpread"], spread, nodes(), web), [0, 100]);
}

#[test]
fn images_attract() {
    let with_image = |name: &str, size: i64| {
        let mut node = node(name).0;
        node.status
            .images
            .push(api_types::core_v1::ContainerImage { names: vec!["image:latest".into()], size_bytes: size });
        Arc::new(node)
    };
    let cache = crate::cache::Cache::new();
    cache.set_node(with_image("a", 600 << 20));
    cache.set_node(node("b").build());
    let mut snapshot = crate::cache::Snapshot::default();
    cache.update_snapshot(&mut snapshot);
    let cx = CycleCx { snapshot: &snapshot };
    let views: Vec<NodeView<'_>> = snapshot.views().collect();
    let incoming = cache.pod_info(pod("p").build());
    let scores = profile_of(&["ImageLocality"])
        .run_scores(cx, &mut CycleState::default(), &incoming, &views, &mut ShapeAnswers::default())
        .unwrap();
    // Half of the nodes have it: 300 MiB count, of which 23 are too little to matter.
    assert_eq!(scores, [(100 * (300 - 23)) / (1000 - 23), 0]);
}

#[test]
fn every_plugin_builds_once() {
    let profile = default_profile();
    let filters: Vec<&str> = profile.filter.iter().map(|at| at.name).collect();
    let expected = [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ];
    assert_eq!(filters, expected);
    let weights: Vec<_> = profile.score.iter().map(|at| (at.name, at.weight)).collect();
    assert!(weights.contains(&("TaintToleration", 3)) && weights.contains(&("NodeAffinity", 2)), "{weights:?}");
}

#[test]
fn pods_of_a_service_spread_by_default() {
    let (cx, classes) = (build_cx(), ClassTable::default());
    let profile = default_profile_in(&cx);
    let mut service = api_types::core_v1::Service::default();
    service.metadata.namespace = "default".into();
    service.spec.selector = [("app".to_owned(), "web".to_owned())].into();
    cx.listers.of().put(Arc::new(service));
    let zone = "topology.kubernetes.io/zone";
    let nodes = vec![node("a").label(zone, "1"), node("b").label(zone, "2")];
    let snapshot = snapshot(nodes, vec![pod("x").label("app", "web").on("a")], &classes);
    let cx = CycleCx { snapshot: &snapshot };
    let views: Vec<NodeView<'_>> = snapshot.views().collect();
    let totals = |incoming: PodBuilder| {
        profile
            .run_scores(cx, &mut CycleState::default(), &incoming.info(&classes), &views, &mut ShapeAnswers::default())
            .unwrap()
    };
    let spread = totals(pod("p").label("app", "web"));
    let plain = totals(pod("p"));
    assert!(spread[1] - spread[0] > plain[1] - plain[0], "{spread:?} {plain:?}");
}

#[test]
fn namespaces_are_chosen_by_label() {
    let (cx, classes) = (build_cx(), ClassTable::default());
    let profile = profile_in(&cx, &["InterPodAffinity"]);
    let mut team = api_types::core_v1::Namespace::default();
    team.metadata.name = "team".into();
    team.metadata.labels.insert("team".into(), "one".into());
    cx.listers.of().put(Arc::new(team));
    let mut db = pod("db").label("app", "db").on("a");
    db.0.metadata.namespace = "team".into();
    let snapshot = snapshot(vec![node("a"), node("b")], vec![db], &classes);
    let cx = CycleCx { snapshot: &snapshot };
    let verdicts = |labels: &[(&str, &str)]| -> Vec<bool> {
        let mut incoming = pod("p").near("db", "kubernetes.io/hostname").0;
        let affinity = incoming.spec.affinity.as_mut().unwrap().pod_affinity.as_mut().unwrap();
        let term = &mut affinity.required_during_scheduling_ignored_during_execution[0];
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        term.namespace_selector = Some(api_machinery::meta::LabelSelector {
            match_labels: labels.collect(),
            ..api_machinery::meta::LabelSelector::default()
        });
        let incoming = crate::pod_info::PodInfo::new(Arc::new(incoming), &classes);
        let mut state = CycleState::default();
        profile.run_pre_filter(cx, &mut state, &incoming, &mut Diagnosis::default()).unwrap();
        snapshot.views().map(|node| profile.run_filters(&state, &incoming, node).is_ok()).collect()
    };
    assert_eq!(verdicts(&[("team", "one")]), [true, false]);
    assert_eq!(verdicts(&[("team", "two")]), [false, false]);
    assert_eq!(verdicts(&[]), [true, false], "an empty selector takes every namespace");
}

#[test]
fn a_nominated_pod_keeps_others_away_as_it_would_on_the_node() {
    let (profile, classes) = (profile_of(&["InterPodAffinity"]), ClassTable::default());
    let snapshot = snapshot(vec![node("a").label("zone", "1"), node("b")], vec![], &classes);
    let cx = CycleCx { snapshot: &snapshot };
    let incoming = pod("p").label("app", "web").far("nobody", "kubernetes.io/hostname").info(&classes);
    let nominated = [pod("guard").far("web", "zone").info(&classes)];
    let mut state = CycleState::default();
    profile.run_pre_filter(cx, &mut state, &incoming, &mut Diagnosis::default()).unwrap();
    let fits = |nominated: &[Arc<crate::pod_info::PodInfo>]| -> Vec<bool> {
        let run = |node| profile.run_filters_with_nominated(&state, &incoming, node, nominated).is_ok();
        snapshot.views().map(run).collect()
    };
    assert_eq!(fits(&[]), [true, true]);
    assert_eq!(fits(&nominated), [false, true], "nodes without the label are in no zone");
}
