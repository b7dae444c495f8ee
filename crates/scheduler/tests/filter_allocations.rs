//! Filters are asked for every node: none of them allocates when the node fits, unless it is to find volumes or devices.
//!
//! A program of its own, as there is one allocator for a whole program.

#![expect(unsafe_code, reason = "an allocator cannot be written without it; this one counts and passes on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use api_machinery::json;
use api_types::core_v1::{Node, Pod};
use base::TaskGroup;
use component_base::Gates;
use component_base::metrics::{Metrics, MetricsOptions};
use scheduler::framework::{BuildCx, CycleCx, CycleState, Diagnosis};
use scheduler::{
    ALL, Cache, ClusterWriter, Listers, NoEvents, NoObjects, Parallelism, SchedulerMetrics, Snapshot, WriteError,
    build_profiles, default_configuration,
};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it came; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, so from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Nobody writes here.
struct Unwritten;

#[async_trait::async_trait]
impl ClusterWriter for Unwritten {
    async fn bind(&self, _: &Pod, _: &str) -> Result<(), WriteError> {
        Ok(())
    }
    async fn patch_status(&self, _: &Pod, _: &api_types::core_v1::PodStatus) -> Result<(), WriteError> {
        Ok(())
    }
    async fn delete(&self, _: &Pod) -> Result<(), WriteError> {
        Ok(())
    }
}

const NODE: &str = r#"{"metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n", "zone": "a", "disk": "ssd"}},
    "spec": {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}], "unschedulable": true},
    "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110", "example.com/gpu": "4"}}}"#;

const THERE: &str = r#"{"metadata": {"name": "there", "namespace": "ns", "uid": "1", "labels": {"app": "db"}},
    "spec": {"nodeName": "n", "containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 81}]}],
      "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "foe"}}}]}}}}"#;

/// A pod that gives every filter something to do.
const WANTED: &str = r#"{"metadata": {"name": "p", "namespace": "ns", "uid": "2", "labels": {"app": "web"}},
    "spec": {"schedulerName": "default-scheduler", "nodeSelector": {"disk": "ssd"},
      "tolerations": [{"operator": "Exists"}],
      "containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}}}],
      "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}],
      "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
          {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]},
            {"key": "old", "operator": "DoesNotExist"}, {"key": "disk", "operator": "NotIn", "values": ["hdd"]}]}]}},
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
          {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}]},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
          {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "foe"}}}]}}}}"#;

fn read<T: api_machinery::reflect::Reflect + Default>(text: &str) -> Result<Arc<T>, json::DecodeError> {
    let mut out = T::default();
    json::decode(text.as_bytes(), &mut out)?;
    Ok(Arc::new(out))
}

#[test]
fn a_node_that_fits_costs_no_allocation() {
    let metrics = Arc::new(SchedulerMetrics::new(&Metrics::new(MetricsOptions::default())));
    let cx = BuildCx {
        listers: Arc::new(Listers::in_memory()),
        gates: Gates::default(),
        writer: Arc::new(Unwritten),
        objects: Arc::new(NoObjects),
        events: Arc::new(NoEvents),
        gate: Arc::default(),
        waiting: Arc::default(),
        groups: Arc::default(),
        metrics,
        clock: base::TokioClock::shared(),
        rng: base::Rng::seeded(1),
        tasks: TaskGroup::new("test"),
        proxies: Arc::default(),
        parallelism: Parallelism::default(),
    };
    let profile = build_profiles(&default_configuration(), ALL, &cx).unwrap().remove(0);
    let cache = Cache::new();
    cache.set_node(read::<Node>(NODE).unwrap());
    cache.add_pod(read::<Pod>(THERE).unwrap());
    let mut snapshot = Snapshot::of(Vec::new());
    cache.update_snapshot(&mut snapshot);
    let pod = cache.pod_info(read::<Pod>(WANTED).unwrap());
    let (mut state, mut diagnosis) = (CycleState::default(), Diagnosis::default());
    let cycle = CycleCx { snapshot: &snapshot };
    profile.run_pre_filter(cycle, &mut state, &pod, &mut diagnosis).unwrap();
    assert_ne!(ALLOCATIONS.get(), 0, "allocations are counted");
    let node = snapshot.views().next().unwrap();
    let skipped: Vec<&str> =
        profile.filter.iter().filter(|at| state.skip_filter.contains(at.place)).map(|at| at.name).collect();
    let without_work = [
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ];
    assert_eq!(skipped, without_work, "a pod without claims should give all other filters work");
    for at in &profile.filter {
        let before = ALLOCATIONS.get();
        let verdict = at.plugin.filter(&state, &pod, node);
        let allocated = ALLOCATIONS.get() - before;
        assert!(verdict.is_ok(), "{}: {verdict:?}", at.name);
        assert_eq!(allocated, 0, "{} allocates", at.name);
    }
    let before = ALLOCATIONS.get();
    profile.run_filters_with_nominated(&state, &pod, node, &[]).unwrap();
    assert_eq!(ALLOCATIONS.get() - before, 0, "the frame around them allocates");
}
