//! Devices, processors and memory given together, or not at all.

use std::path::Path;
use std::time::Duration;

use base::{SystemClock, TaskGroup};
use sys::topology::{MemoryNode, Processor};

use super::super::fixtures::{Counted, guaranteed, with_pool};
use super::*;
use crate::cpus::{CpuOptions, CpuPolicy, CpuSettings, Processors};
use crate::devices::{DeviceCounts, DevicesDeps};
use crate::memory::{MemorySettings, Reserved};

struct Uncounted;

impl DeviceCounts for Uncounted {
    fn registered(&self, _: &str) {}

    fn allocated(&self, _: &str, _: Duration) {}
}

/// Two nodes of four processors, without threads, and of 10 Gi, of which 1 Gi and one processor of the first are kept.
fn machine() -> Topology {
    let processor = |cpu: u32| (cpu, Processor { core: cpu, socket: cpu / 4, node: cpu / 4, cache: cpu / 4 });
    let node = || MemoryNode { memory_bytes: 10 << 30, ..MemoryNode::default() };
    Topology { processors: (0..8).map(processor).collect(), nodes: [(0, node()), (1, node())].into() }
}

fn manager(root: &Path, policy: Policy, scope: Scope) -> (Arc<TopologyManager>, Arc<Counted>) {
    gated(root, policy, scope, false)
}

/// With the gate `PodLevelResourceManagers`, or not.
fn gated(root: &Path, policy: Policy, scope: Scope, pod_level: bool) -> (Arc<TopologyManager>, Arc<Counted>) {
    let (topology, counts) = (machine(), Arc::new(Counted::default()));
    let reserved = |node: i32| {
        let text = format!("{{\"numaNode\": {node}, \"limits\": {{\"memory\": \"1Gi\"}}}}");
        let mut reservation = api_types::kubelet_config_v1beta1::MemoryReservation::default();
        api_machinery::json::decode(text.as_bytes(), &mut reservation).unwrap();
        reservation
    };
    let expected = guaranteed("", &[("all", "1", "2Gi")]).spec.containers[0].resources.requests.clone();
    let reserved = Reserved::new(&topology, &[reserved(0), reserved(1)], &expected).unwrap();
    let settings = CpuSettings {
        policy: CpuPolicy::Static(CpuOptions::default()),
        reserved_milli: 1000,
        reserved: Some("0".parse().unwrap()),
        pod_level,
    };
    let memory = MemorySettings { reserved: Some(reserved), pod_level };
    let parts = TopologyParts {
        settings: TopologySettings { policy, scope, ..TopologySettings::default() },
        cpus: Cpus::new(root, settings, &Processors::new(&topology), counts.clone()).unwrap(),
        memory: MemoryNodes::new(root, &memory, counts.clone()),
        pod_level,
        topology,
        devices: Devices::new(
            root,
            DevicesDeps {
                counts: Arc::new(Uncounted),
                clock: SystemClock::shared(),
                tasks: TaskGroup::new("test"),
                extended: true,
            },
        ),
        counts: counts.clone(),
        clock: SystemClock::shared(),
    };
    (TopologyManager::new(parts), counts)
}

/// What the containers of a pod have: processors and nodes of memory, or why it has nothing.
async fn given(manager: &TopologyManager, pod: &Pod) -> Result<String, String> {
    manager.allocate(pod).await.map_err(|error| error.to_string())?;
    Ok(texts(manager, pod))
}

fn texts(manager: &TopologyManager, pod: &Pod) -> String {
    let (uid, mut out) = (&pod.metadata.uid, Vec::new());
    for container in &pod.spec.containers {
        let cpus = manager.cpus.exclusive(uid, &container.name);
        let memory = manager.memory.of_container(uid, &container.name).unwrap_or_default();
        out.push(format!("{cpus} on {memory}"));
    }
    out.join("; ")
}

const REFUSED: &str = "Resources cannot be allocated with Topology locality";

#[tokio::test]
async fn processors_and_memory_are_on_the_same_nodes() {
    type Containers<'a> = &'a [(&'a str, &'a str, &'a str)];
    let (wide, split): (Containers<'_>, Containers<'_>) =
        (&[("main", "6", "4Gi")], &[("a", "3", "8Gi"), ("b", "3", "8Gi")]);
    let cases = [
        (Policy::None, Scope::Container, wide, Ok("1-2,4-7 on 0")),
        (Policy::BestEffort, Scope::Container, &[("main", "4", "4Gi")], Ok("4-7 on 1")),
        (Policy::BestEffort, Scope::Container, wide, Ok("1-2,4-7 on 0-1")),
        (Policy::Restricted, Scope::Container, &[("main", "4", "4Gi")], Ok("4-7 on 1")),
        (Policy::Restricted, Scope::Container, wide, Err(REFUSED)),
        (Policy::Restricted, Scope::Container, &[("main", "6", "12Gi")], Ok("1-2,4-7 on 0-1")),
        (Policy::SingleNumaNode, Scope::Container, &[("main", "6", "12Gi")], Err(REFUSED)),
        (Policy::SingleNumaNode, Scope::Container, split, Ok("1-3 on 0; 4-6 on 1")),
        (Policy::SingleNumaNode, Scope::Pod, split, Err(REFUSED)),
        (Policy::SingleNumaNode, Scope::Pod, &[("a", "2", "4Gi"), ("b", "2", "5Gi")], Ok("4-5 on 1; 6-7 on 1")),
        (Policy::SingleNumaNode, Scope::Pod, &[("a", "500m", "4Gi")], Ok(" on 0")),
        (
            Policy::None,
            Scope::Container,
            &[("main", "8", "1Gi")],
            Err("not enough cpus available to satisfy request: requested=8, available=7"),
        ),
    ];
    for (policy, scope, containers, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (manager, _) = manager(dir.path(), policy, scope);
        let found = given(&manager, &guaranteed("u", containers)).await;
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{policy:?} {scope:?} {containers:?}");
    }
}

#[tokio::test]
async fn who_is_refused_keeps_nothing_and_who_is_asked_again_keeps_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let (first, counted) = manager(dir.path(), Policy::SingleNumaNode, Scope::Container);
    first.restore().unwrap();
    let refused = guaranteed("u", &[("a", "3", "1Gi"), ("b", "5", "1Gi")]);
    assert_eq!(given(&first, &refused).await, Err(REFUSED.to_owned()));
    assert_eq!(first.held("u"), Held::default());
    let expected = ["container numa_node true", "container numa_node false", "admitted false"];
    let seen: Vec<String> = counted
        .0
        .lock()
        .iter()
        .filter(|text| text.contains("numa_node") || text.contains("admitted"))
        .cloned()
        .collect();
    assert_eq!(seen, expected);

    let pod = guaranteed("v", &[("a", "4", "1Gi")]);
    let before = first.allocate(&pod).await.unwrap().expect("it is given something");
    assert!(first.allocate(&pod).await.unwrap().is_none(), "it has it");
    let (next, _) = manager(dir.path(), Policy::SingleNumaNode, Scope::Container);
    next.restore().unwrap();
    assert_eq!(next.held("v"), first.held("v"), "also after a restart");
    first.put_back("v", before);
    assert_eq!(first.held("v"), Held::default());
    assert!(given(&first, &guaranteed("w", &[("a", "4", "1Gi")])).await.is_ok(), "it is free again");
    first.keep(&BTreeSet::new());
    let (last, _) = manager(dir.path(), Policy::SingleNumaNode, Scope::Container);
    last.restore().unwrap();
    assert_eq!(last.held("w"), Held::default(), "who is gone has nothing");
}

#[tokio::test]
async fn what_cannot_be_written_down_is_not_given() {
    let dir = tempfile::tempdir().unwrap();
    let (manager, _) = manager(&dir.path().join("missing"), Policy::None, Scope::Container);
    let error = manager.allocate(&guaranteed("u", &[("a", "1", "1Gi")])).await.unwrap_err();
    assert!(error.to_string().starts_with("could not save checkpoint: "), "{error}");
    assert_eq!(manager.held("u"), Held::default());
}

#[tokio::test]
async fn who_runs_keeps_what_it_has_whatever_it_asks_for_now() {
    const GIVEN: &str = "1-2 on 0";
    let cases = [
        // (policy, what it asks for then, what it has then)
        (Policy::None, ("main", "2", "1Gi"), Ok(GIVEN)),
        (Policy::None, ("main", "4", "2Gi"), Ok(GIVEN)),
        (Policy::None, ("main", "1", "1Gi"), Ok(GIVEN)),
        (Policy::None, ("main", "1500m", "1Gi"), Ok(GIVEN)),
        (Policy::BestEffort, ("main", "4", "1Gi"), Ok(GIVEN)),
        (Policy::Restricted, ("main", "2", "2Gi"), Ok(GIVEN)),
        (Policy::Restricted, ("main", "4", "1Gi"), Err(REFUSED)),
        (Policy::SingleNumaNode, ("main", "1", "1Gi"), Err(REFUSED)),
    ];
    for (policy, asked, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (manager, _) = manager(dir.path(), policy, Scope::Container);
        given(&manager, &guaranteed("u", &[("main", "2", "1Gi")])).await.unwrap();
        let pod = guaranteed("u", &[asked]);
        let resized = manager.resize(&pod).map_err(|error| error.to_string());
        assert_eq!(resized, expected.map(|_| None).map_err(ToOwned::to_owned), "{policy:?} {asked:?}");
        assert_eq!(texts(&manager, &pod), GIVEN, "{policy:?} {asked:?}");
    }
    // Who had none is given some as soon as it asks for whole ones, and they can be taken back.
    let dir = tempfile::tempdir().unwrap();
    let (manager, _) = manager(dir.path(), Policy::BestEffort, Scope::Container);
    assert_eq!(given(&manager, &guaranteed("u", &[("main", "500m", "1Gi")])).await.as_deref(), Ok(" on 0"));
    let whole = guaranteed("u", &[("main", "2", "1Gi")]);
    let before = manager.resize(&whole).unwrap().expect("something is new");
    assert_eq!(texts(&manager, &whole), GIVEN);
    manager.put_back("u", before);
    assert_eq!(texts(&manager, &whole), " on 0");
    assert!(manager.resize(&guaranteed("u", &[("main", "8", "1Gi")])).is_err());
    assert_eq!(texts(&manager, &whole), " on 0");
}

/// A pod with four processors and 5 Gi for all of its containers together.
fn pooled(containers: &[(&str, &str, &str)]) -> Pod {
    let mut pod = with_pool(guaranteed("u", containers), "4", "5Gi");
    // The last one may use more than it asks for.
    pod.spec.containers.last_mut().unwrap().resources.limits.clear();
    pod
}

#[tokio::test]
async fn pods_are_given_processors_and_memory_as_a_whole() {
    const AFFINITY: &str = "Pod Scope pod with pod-level resources failed admission";
    const EMPTY: &str = "pod rejected, sum of exclusive container";
    type Containers<'a> = &'a [(&'a str, &'a str, &'a str)];
    let (mixed, full): (Containers<'_>, Containers<'_>) =
        (&[("a", "2", "2Gi"), ("b", "1", "1Gi")], &[("a", "4", "2Gi"), ("b", "0", "1Gi")]);
    let wide: Containers<'_> = &[("a", "2", "9Gi"), ("b", "1", "1Gi")];
    let cases = [
        (Policy::SingleNumaNode, Scope::Pod, true, mixed, Ok("4-5 on 1; 6-7 on 1")),
        (Policy::Restricted, Scope::Pod, true, full, Err(AFFINITY)),
        (Policy::BestEffort, Scope::Pod, true, full, Err(EMPTY)),
        // Each container for itself: the other runs on what all share.
        (Policy::SingleNumaNode, Scope::Container, true, mixed, Ok("1-2 on 0;  on ")),
        (Policy::SingleNumaNode, Scope::Container, true, wide, Ok("1-2 on 0;  on ")),
        (Policy::None, Scope::Pod, true, mixed, Ok("1-2 on 0;  on ")),
        (Policy::SingleNumaNode, Scope::Pod, false, mixed, Ok(" on ;  on ")),
    ];
    for (policy, scope, pod_level, containers, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (manager, _) = gated(dir.path(), policy, scope, pod_level);
        let found = given(&manager, &pooled(containers)).await;
        match expected {
            Ok(expected) => assert_eq!(found.as_deref(), Ok(expected), "{policy:?} {scope:?} {containers:?}"),
            Err(start) => assert!(found.unwrap_err().starts_with(start), "{policy:?} {scope:?} {containers:?}"),
        }
    }
}

#[tokio::test]
async fn what_a_pod_has_as_a_whole_outlives_the_kubelet_and_goes_with_the_pod() {
    let dir = tempfile::tempdir().unwrap();
    let start = |pod_level| {
        let (manager, counted) = gated(dir.path(), Policy::SingleNumaNode, Scope::Pod, pod_level);
        manager.restore().map(|()| (manager, counted)).map_err(|error| error.to_string())
    };
    let (first, counted) = start(true).unwrap();
    let pod = pooled(&[("a", "2", "2Gi"), ("b", "1", "1Gi")]);
    first.allocate(&pod).await.unwrap().expect("it is given something");
    let seen: Vec<String> = counted.0.lock().iter().filter(|text| text.contains("pod_")).cloned().collect();
    let expected = ["cpu pod_exclusive 1", "cpu pod_shared 1", "memory pod_exclusive 1", "memory pod_shared 1"];
    assert_eq!(seen, expected);
    let [a, b] = [0, 1].map(|index: usize| first.cpus.is_exclusive(&pod, &pod.spec.containers[index]));
    assert!(a && !b && first.cpus.has_exclusive(&pod), "a quota holds for those who share");

    let (next, _) = start(true).unwrap();
    assert_eq!(next.held("u"), first.held("u"));
    assert!(next.allocate(&pod).await.unwrap().is_none(), "it has it");
    assert!(next.resize(&pod).unwrap().is_none());
    let Err(refused) = start(false) else { panic!("somebody has to drain the node") };
    assert!(refused.contains("checkpoint is corrupted"), "{refused}");
    let mut other = pooled(&[("a", "2", "2Gi"), ("b", "1", "1Gi")]);
    other.metadata.uid = "v".into();
    assert!(given(&next, &other).await.is_err(), "all that a node has is the first one's");
    next.keep(&BTreeSet::new());
    assert_eq!(given(&next, &other).await.as_deref(), Ok("4-5 on 1; 6-7 on 1"));
    next.keep(&BTreeSet::new());
    assert!(start(false).is_ok(), "nobody has anything");
}
