//! The watch over a made-up node, on paused time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use api_machinery::quantity::Quantity;
use api_types::core_v1::Container;
use base::TokioClock;
use node_api::cri::CriError;
use parking_lot::Mutex;

use super::usage::{ContainerUse, Observation, Observations, PodUse, Room};
use super::*;
use crate::events::RecordedEvents;
use crate::interfaces::NodeView as _;
use crate::resources::thresholds::Amount;

/// A node whose free memory and disk are set by the test; what is removed frees disk, who is evicted frees memory.
struct Node {
    clock: SharedClock,
    free: Mutex<(i64, i64)>,
    pods: Mutex<Vec<Arc<Pod>>>,
    uses: Mutex<Vec<(String, PodUse)>>,
    did: Mutex<VecDeque<String>>,
    layout: Mutex<Option<FileSystems>>,
    /// How many pods were measured, and of how many the disk was looked at.
    measured: AtomicUsize,
    walked: AtomicUsize,
}

#[async_trait]
impl Gauge for Node {
    async fn node(&self) -> Result<Snapshot, CriError> {
        let (memory, disk) = *self.free.lock();
        let at = self.clock.wall();
        let seen = |available| Observation { available, capacity: 1000, at };
        let observations: Observations = [
            (Signal::MemoryAvailable, seen(memory)),
            (Signal::NodefsAvailable, seen(disk)),
            (Signal::ImagefsAvailable, seen(disk)),
        ]
        .into();
        Ok(Snapshot { observations, layout: *self.layout.lock() })
    }

    async fn pods(&self, pods: &[Arc<Pod>], parts: Parts) -> Result<PodUses, CriError> {
        self.measured.fetch_add(pods.len(), Ordering::Relaxed);
        self.walked.fetch_add(if parts == Parts::All { pods.len() } else { 0 }, Ordering::Relaxed);
        let asked = |uid: &str| pods.iter().any(|pod| pod.metadata.uid == uid);
        Ok(self.uses.lock().iter().filter(|(uid, _)| asked(uid)).cloned().collect())
    }
}

#[async_trait]
impl Reclaim for Node {
    fn is_up(&self) -> bool {
        true
    }

    fn candidates(&self) -> Vec<Arc<Pod>> {
        self.pods.lock().clone()
    }

    async fn evict(&self, uid: &str, eviction: Eviction) -> Result<(), SideError> {
        self.pods.lock().retain(|pod| pod.metadata.uid != uid);
        self.free.lock().0 += 500;
        let disruption = if eviction.condition_message.is_some() { " disrupted" } else { "" };
        let text =
            format!("{uid} {} {}s{disruption}: {}", eviction.reason, eviction.grace.unwrap_or(-1), eviction.message);
        self.did.lock().push_back(text);
        Ok(())
    }

    fn is_clean(&self, _uid: &str) -> bool {
        true
    }

    async fn remove_dead_containers(&self) {
        self.did.lock().push_back("containers".to_owned());
        self.free.lock().1 += 20;
    }

    async fn remove_unused_images(&self) {
        self.did.lock().push_back("images".to_owned());
        self.free.lock().1 += 200;
    }
}

fn pod(name: &str, memory: u64, priority: i32) -> (Arc<Pod>, (String, PodUse)) {
    let mut pod = Pod::default();
    pod.metadata.uid = name.into();
    pod.metadata.name = name.into();
    pod.spec.priority = Some(priority);
    pod.spec.termination_grace_period_seconds = Some(30);
    pod.spec.containers.push(Container { name: "main".into(), ..Container::default() });
    let container = ContainerUse { name: "main".into(), memory_bytes: memory, ..ContainerUse::default() };
    let used = PodUse { memory_bytes: Some(memory), containers: vec![container], ..PodUse::default() };
    (Arc::new(pod), (name.into(), used))
}

struct Bench {
    node: Arc<Node>,
    state: Arc<NodeState>,
    events: Arc<RecordedEvents>,
    counted: Arc<Mutex<Vec<String>>>,
    evictor: Evictor,
}

fn bench(layout: FileSystems) -> Bench {
    let (pods, uses) =
        [pod("vital", 900, 2_000_000_000), pod("small", 10, 0), pod("large", 300, 0)].into_iter().unzip();
    let clock = TokioClock::shared();
    let node = Arc::new(Node {
        clock: clock.clone(),
        free: Mutex::new((500, 500)),
        pods: Mutex::new(pods),
        uses: Mutex::new(uses),
        did: Mutex::default(),
        layout: Mutex::new(Some(layout)),
        measured: AtomicUsize::new(0),
        walked: AtomicUsize::new(0),
    });
    let (state, events) = (NodeState::new("n", None, None), Arc::new(RecordedEvents::default()));
    let counted = Arc::new(Mutex::new(Vec::new()));
    let soft =
        Threshold { grace: Duration::from_secs(30), ..Threshold::hard(Signal::MemoryAvailable, Amount::Bytes(400)) };
    let settings = EvictionSettings {
        thresholds: vec![
            Threshold::hard(Signal::MemoryAvailable, Amount::Bytes(100)),
            soft,
            Threshold::hard(Signal::NodefsAvailable, Amount::Percent(10.0)),
        ],
        max_pod_grace: 7,
        hold: Duration::from_secs(60),
        pods_are_limited: false,
    };
    let counts = Arc::clone(&counted);
    let evictor = Evictor {
        settings,
        node_name: "n".into(),
        gauge: node.clone(),
        pods: node.clone(),
        state: state.clone(),
        events: events.clone(),
        clock,
        count: Box::new(move |signal, _| counts.lock().push(signal.to_owned())),
    };
    Bench { node, state, events, counted, evictor }
}

/// Runs the watch for a while.
async fn watch(evictor: Evictor, seconds: u64) {
    let _ = tokio::time::timeout(Duration::from_secs(seconds), evictor.run()).await;
}

#[tokio::test(start_paused = true)]
async fn short_memory_costs_the_greediest_pod() {
    let bench = bench(FileSystems::One);
    bench.node.free.lock().0 = 50;
    watch(bench.evictor, 25).await;
    let did: Vec<String> = bench.node.did.lock().drain(..).collect();
    let expected = "large Evicted 1s disrupted: The node was low on resource: memory. Threshold quantity: 100, available: \
                    50. Container main was using 300, request is 0, has larger consumption of memory. ";
    assert_eq!(did, [expected]);
    assert_eq!(bench.state.pressures(), ["MemoryPressure"], "held for a while after it has passed");
    assert_eq!(*bench.counted.lock(), ["memory.available"]);
    let told = bench.events.taken();
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].reason.as_str(), told[0].message.as_str()),
        ("EvictionThresholdMet", "Attempting to reclaim memory")
    );
}

#[tokio::test(start_paused = true)]
async fn soft_thresholds_wait_and_are_gentle() {
    let bench = bench(FileSystems::One);
    bench.node.free.lock().0 = 300;
    let node = bench.node.clone();
    watch(bench.evictor, 45).await;
    let did: Vec<String> = node.did.lock().drain(..).collect();
    assert_eq!(did.len(), 1);
    assert!(
        did[0].starts_with("large Evicted 7s disrupted: The node was low on resource: memory. Threshold quantity: 400"),
        "{did:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn full_disks_are_cleaned_before_pods_go() {
    for (layout, free, expected) in [
        (FileSystems::One, 50, vec!["containers", "images"]),
        (FileSystems::One, 90, vec!["containers"]),
        (FileSystems::Split, 90, vec!["containers"]),
    ] {
        let bench = bench(layout);
        bench.node.free.lock().1 = free;
        watch(bench.evictor, 15).await;
        assert_eq!(*bench.node.did.lock(), expected, "{layout:?} {free}");
        assert_eq!(bench.state.pressures(), ["DiskPressure"]);
    }
    let bench = bench(FileSystems::Images);
    bench.node.free.lock().1 = 50;
    watch(bench.evictor, 5).await;
    assert!(bench.node.walked.load(Ordering::Relaxed) >= 3);
    assert!(bench.node.did.lock()[0].contains("low on resource: ephemeral-storage"), "nothing to clean there");
}

#[tokio::test(start_paused = true)]
async fn pods_over_their_own_limits_go_regardless() {
    let bench = bench(FileSystems::One);
    let limit = Quantity::parse("1Ki").unwrap();
    let over: Vec<Arc<Pod>> = bench
        .node
        .pods
        .lock()
        .iter()
        .map(|pod| {
            let mut pod = Pod::clone(pod);
            pod.spec.containers[0].resources.limits.insert("ephemeral-storage".into(), limit.clone());
            Arc::new(pod)
        })
        .collect();
    *bench.node.pods.lock() = over;
    for (uid, used) in bench.node.uses.lock().iter_mut() {
        used.containers[0].logs = Room { bytes: if uid == "small" { 1024 } else { 1025 }, inodes: 1 };
    }
    watch(bench.evictor, 5).await;
    assert_eq!(bench.node.measured.load(Ordering::Relaxed), 3, "both, and then the one that stayed; no critical pod");
    let did: Vec<String> = bench.node.did.lock().drain(..).collect();
    let text = "large Evicted 1s: Pod ephemeral local storage usage exceeds the total limit of containers 1Ki. ";
    assert_eq!(did, [text], "critical pods stay, and so do those within their limits");
    assert!(bench.state.pressures().is_empty());
    assert_eq!(*bench.counted.lock(), ["ephemeralpodfs.limit"]);
}

#[tokio::test(start_paused = true)]
async fn pods_are_measured_only_when_one_has_to_go() {
    let bench = bench(FileSystems::One);
    let node = bench.node.clone();
    let watching = bench.evictor.run();
    tokio::pin!(watching);
    let _ = tokio::time::timeout(Duration::from_secs(65), &mut watching).await;
    assert_eq!(node.measured.load(Ordering::Relaxed), 0);
    node.free.lock().0 = 50;
    let _ = tokio::time::timeout(Duration::from_secs(10), &mut watching).await;
    assert_eq!((node.measured.load(Ordering::Relaxed), node.did.lock().len()), (3, 1));
    assert_eq!(node.walked.load(Ordering::Relaxed), 0, "memory is short: there is no time for it");
}

#[tokio::test(start_paused = true)]
async fn critical_pods_are_never_evicted() {
    let bench = bench(FileSystems::One);
    bench.node.pods.lock().retain(|pod| pod.metadata.uid == "vital");
    bench.node.free.lock().0 = 50;
    watch(bench.evictor, 35).await;
    assert!(bench.node.did.lock().is_empty());
    let pressures: BTreeSet<String> = bench.state.pressures().into_iter().collect();
    assert_eq!(pressures, ["MemoryPressure".to_owned()].into());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_judged_before_the_disks_were_measured() {
    let bench = bench(FileSystems::One);
    bench.node.free.lock().0 = 50;
    *bench.node.layout.lock() = None;
    let (node, state) = (bench.node.clone(), bench.state.clone());
    let watching = bench.evictor.run();
    tokio::pin!(watching);
    let _ = tokio::time::timeout(Duration::from_secs(35), &mut watching).await;
    assert!(node.did.lock().is_empty() && state.pressures().is_empty(), "{:?}", node.did.lock());
    *node.layout.lock() = Some(FileSystems::Images);
    let _ = tokio::time::timeout(Duration::from_secs(15), &mut watching).await;
    assert_eq!((node.did.lock().len(), state.pressures()), (1, vec!["MemoryPressure".to_owned()]));
    // What was learned stays when a later measurement does not tell.
    *node.layout.lock() = None;
    *node.free.lock() = (500, 50);
    let _ = tokio::time::timeout(Duration::from_secs(15), &mut watching).await;
    let last = node.did.lock().back().cloned().unwrap_or_default();
    assert!(last.contains("low on resource: ephemeral-storage"), "{last}");
}
