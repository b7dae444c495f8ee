//! What is remembered of local plugins is what they would say: clusters and pods at random, every plugin, asked both ways.

use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{
    Container, ContainerImage, ContainerPort, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement,
    NodeSelectorTerm, Pod, PreferredSchedulingTerm, Toleration, Volume,
};
use base::Rng;
use serde_json::json;

use super::tests::build_cx;
use crate::cache::{Cache, Snapshot};
use crate::config::{build_profiles, decode};
use crate::framework::{CycleCx, CycleState, Diagnosis, Profile, Status};
use crate::known_answers::{KnownAnswers, ShapeAnswers};
use crate::node_info::NodeView;
use crate::pod_info::PodInfo;
use crate::pod_shape::PodShape;
use crate::test_objects::{PodBuilder, node, pod};

const NODES: u64 = 7;
const STEPS: u64 = 250;
/// Pods that are looked for a place after each change.
const PROBES: u64 = 6;

/// True once in so many times.
fn once_in(rng: &Rng, times: u64) -> bool {
    rng.below(times) == 0
}

fn one_of<'a>(rng: &Rng, all: &[&'a str]) -> &'a str {
    all[usize::try_from(rng.below(all.len() as u64)).unwrap()]
}

fn random_node(rng: &Rng, name: &str) -> Arc<Node> {
    let mut made = node(name)
        .label("zone", one_of(rng, &["a", "b"]))
        .label("disk", one_of(rng, &["ssd", "hdd"]))
        .capacity("cpu", one_of(rng, &["2", "4", "8"]))
        .capacity("memory", one_of(rng, &["2Gi", "8Gi"]))
        .capacity("pods", one_of(rng, &["3", "110"]));
    if once_in(rng, 3) {
        made = made.taint(one_of(rng, &["k", "l"]), one_of(rng, &["NoSchedule", "PreferNoSchedule", "NoExecute"]));
    }
    if once_in(rng, 3) {
        made = made.capacity("example.com/gpu", one_of(rng, &["1", "4"]));
    }
    if once_in(rng, 8) {
        made = made.cordoned();
    }
    let mut made = made.0;
    for image in ["image:latest", "other:1", "third:latest"] {
        if once_in(rng, 2) {
            let size_bytes = 100_000_000 * i64::try_from(1 + rng.below(5)).unwrap();
            made.status.images.push(ContainerImage { names: vec![image.into()], size_bytes });
        }
    }
    Arc::new(made)
}

fn requirement(rng: &Rng) -> NodeSelectorTerm {
    let expression = NodeSelectorRequirement {
        key: one_of(rng, &["zone", "disk"]).into(),
        operator: one_of(rng, &["In", "NotIn", "Exists"]).into(),
        values: vec![one_of(rng, &["a", "ssd"]).into()],
    };
    let values = if expression.operator == "Exists" { Vec::new() } else { expression.values };
    let expression = NodeSelectorRequirement { values, ..expression };
    NodeSelectorTerm { match_expressions: vec![expression], ..NodeSelectorTerm::default() }
}

/// What local plugins look at in a pod: each sets one thing as chance has it, whatever it was before.
const TRAITS: [fn(&Rng, &mut Pod); 11] = [
    |rng, pod| request(rng, pod, "cpu", &["", "100m", "1", "3"]),
    |rng, pod| request(rng, pod, "memory", &["", "100Mi", "1Gi", "3Gi"]),
    |rng, pod| request(rng, pod, "example.com/gpu", &["", "", "1"]),
    |rng, pod| {
        let host_port = i32::try_from(rng.below(3)).unwrap();
        let port = ContainerPort { host_port, container_port: 80, ..ContainerPort::default() };
        pod.spec.containers[0].ports = vec![port];
    },
    |rng, pod| {
        let disk = one_of(rng, &["", "ssd", "hdd"]);
        pod.spec.node_selector = (!disk.is_empty()).then(|| ("disk".into(), disk.into())).into_iter().collect();
    },
    |rng, pod| {
        let key = one_of(rng, &["", "k", "l", "node.kubernetes.io/unschedulable"]);
        let toleration = Toleration { key: key.into(), operator: "Exists".into(), ..Toleration::default() };
        pod.spec.tolerations = (!key.is_empty()).then_some(toleration).into_iter().collect();
    },
    |rng, pod| pod.spec.containers[0].image = one_of(rng, &["image", "other:1", "third"]).into(),
    |rng, pod| {
        let container = |image: &str| Container { name: "more".into(), image: image.into(), ..Container::default() };
        pod.spec.containers.truncate(1);
        pod.spec.init_containers = once_in(rng, 3).then(|| container("image")).into_iter().collect();
        pod.spec.containers.extend(once_in(rng, 3).then(|| container("other:1")));
    },
    |rng, pod| {
        let mut volume = Volume::default();
        volume.volume_source.image.get_or_insert_default().reference = one_of(rng, &["third", "image"]).into();
        pod.spec.volumes = once_in(rng, 3).then_some(volume).into_iter().collect();
    },
    |rng, pod| {
        let preferred = PreferredSchedulingTerm { weight: 10, preference: requirement(rng) };
        let required = NodeSelector { node_selector_terms: vec![requirement(rng)] };
        let affinity = NodeAffinity {
            required_during_scheduling_ignored_during_execution: once_in(rng, 2).then_some(required),
            preferred_during_scheduling_ignored_during_execution: vec![preferred],
        };
        pod.spec.affinity.get_or_insert_default().node_affinity = (!once_in(rng, 3)).then_some(affinity);
    },
    |rng, pod| pod.spec.node_name = if once_in(rng, 8) { format!("n{}", rng.below(NODES)) } else { String::new() },
];

fn request(rng: &Rng, pod: &mut Pod, resource: &str, amounts: &[&str]) {
    let requests = &mut pod.spec.containers[0].resources.requests;
    requests.remove(resource);
    let amount = one_of(rng, amounts);
    if !amount.is_empty() {
        requests.insert(resource.into(), Quantity::parse(amount).unwrap());
    }
}

/// A workload, and others that differ from it in one thing each.
fn workloads(rng: &Rng) -> Vec<Pod> {
    let mut first = pod("w").0;
    TRAITS.iter().for_each(|set| set(rng, &mut first));
    let twin = |set: &fn(&Rng, &mut Pod)| {
        let mut twin = first.clone();
        (0..50).find(|_| {
            set(rng, &mut twin);
            twin != first
        });
        twin
    };
    std::iter::once(first.clone()).chain(TRAITS.iter().map(twin)).collect()
}

/// A pod of a workload, with all that local plugins must not look at as chance has it.
fn pod_of(workload: &Pod, rng: &Rng, number: u64) -> PodBuilder {
    let mut made = PodBuilder(workload.clone()).label("app", one_of(rng, &["a", "b", "c"]));
    if once_in(rng, 4) {
        made = made.spread(one_of(rng, &["a", "b"]), "zone", 1, one_of(rng, &["DoNotSchedule", "ScheduleAnyway"]));
    }
    if once_in(rng, 5) {
        made = made.far(one_of(rng, &["a", "b"]), "kubernetes.io/hostname");
    }
    if once_in(rng, 5) {
        made = made.rather_near(one_of(rng, &["a", "b"]), "zone", 5);
    }
    let mut made = made.priority(i32::try_from(rng.below(3)).unwrap());
    let pod = &mut made.0;
    (pod.metadata.name, pod.metadata.uid) = (format!("p{number}"), format!("uid-p{number}"));
    pod.metadata.namespace = one_of(rng, &["default", "other"]).into();
    pod.metadata.annotations.insert("note".into(), number.to_string());
    pod.spec.service_account_name = one_of(rng, &["", "robot"]).into();
    pod.spec.host_network = once_in(rng, 3);
    pod.spec.restart_policy = one_of(rng, &["Always", "Never"]).into();
    pod.spec.containers[0].command.push(number.to_string());
    made
}

fn change(cache: &Cache, rng: &Rng, workloads: &[Pod], step: u64) {
    let name = format!("n{}", rng.below(NODES));
    match rng.below(30) {
        0 => cache.remove_node(&name),
        1..=4 => cache.set_node(random_node(rng, &name)),
        5..=20 => cache.remove_pod(&format!("uid-p{}", rng.below(step + 1))),
        _ => {
            let workload = &workloads[usize::try_from(rng.below(workloads.len() as u64)).unwrap()];
            cache.add_pod(pod_of(workload, rng, step).on(&name).build());
        }
    }
}

fn text(verdict: Result<(), Status>) -> String {
    verdict.err().map(|status| status.message()).unwrap_or_default()
}

/// Asks both ways; says how many verdicts were known.
fn compare(profile: &Profile, cx: CycleCx<'_>, info: &PodInfo, known: &mut ShapeAnswers, what: &str) -> usize {
    let mut state = CycleState::default();
    if profile.run_pre_filter(cx, &mut state, info, &mut Diagnosis::default()).is_err() {
        return 0;
    }
    let (mut hits, mut feasible): (usize, Vec<NodeView<'_>>) = (0, Vec::new());
    for view in cx.snapshot.views() {
        let fresh = profile.run_filters(&state, info, view);
        if known.fits(view) {
            hits += 1;
            let remembered = text(profile.run_filters_from(profile.local_filters(), &state, info, view).outcome);
            assert_eq!(remembered, text(fresh.clone()), "{what}, filters on {}", view.name);
        } else if fresh.is_ok() {
            known.note_fit(view);
        }
        feasible.extend(fresh.is_ok().then_some(view));
    }
    profile.run_pre_score(cx, &mut state, info, &feasible).unwrap();
    let fresh = profile.run_score(&state, info, &feasible, &mut ShapeAnswers::default()).unwrap();
    let remembered = profile.run_score(&state, info, &feasible, known).unwrap();
    assert_eq!(remembered, fresh, "{what}, scores");
    hits
}

fn profiles() -> Vec<Arc<Profile>> {
    let ratio = json!({"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]});
    let fit = json!({"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": ratio,
        "resources": [{"name": "cpu", "weight": 3}, {"name": "example.com/gpu", "weight": 1}]},
        "ignoredResources": ["example.com/gpu"]});
    let term = json!({"weight": 3, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}});
    let affinity = json!({"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}});
    let most = json!({"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "memory", "weight": 1}]}});
    let value = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"schedulerName": "default-scheduler"},
            {"schedulerName": "ratio", "pluginConfig": [{"name": "NodeResourcesFit", "args": fit}]},
            {"schedulerName": "most", "pluginConfig": [{"name": "NodeResourcesFit", "args": most},
                {"name": "NodeAffinity", "args": affinity}]},
        ],
    });
    build_profiles(&decode(&value).unwrap(), super::ALL, &build_cx()).unwrap()
}

#[test]
fn known_answers_are_those_that_plugins_would_give() {
    let (mut hits, profiles) = (0, profiles());
    for seed in 0..4 {
        let (cache, rng) = (Cache::new(), Rng::seeded(seed));
        let (mut snapshot, mut all) = (Snapshot::default(), KnownAnswers::default());
        let workloads = workloads(&rng);
        for number in 0..NODES {
            cache.set_node(random_node(&rng, &format!("n{number}")));
        }
        for step in 0..STEPS {
            change(&cache, &rng, &workloads, step);
            cache.update_snapshot(&mut snapshot);
            let cx = CycleCx { snapshot: &snapshot };
            for probe in 0..PROBES {
                let workload = &workloads[usize::try_from(rng.below(workloads.len() as u64)).unwrap()];
                let info = cache.pod_info(pod_of(workload, &rng, STEPS + probe).build());
                let profile = &profiles[usize::try_from(rng.below(3)).unwrap()];
                let mut known = all.take(&profile.name, PodShape::of(&info), snapshot.len());
                hits += compare(profile, cx, &info, &mut known, &format!("seed {seed}, step {step}, {}", profile.name));
                all.put(known, &rng);
            }
        }
    }
    assert!(hits > 1000, "only {hits} answers were known");
}
