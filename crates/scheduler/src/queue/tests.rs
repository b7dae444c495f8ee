//! The queue on paused time: order, back-off, events, gates.

use std::time::Duration;

use api_types::core_v1::PodSchedulingGate;
use base::TokioClock;
use component_base::metrics::{Metrics, MetricsOptions};

use super::*;
use crate::plugins::default_profile;
use crate::pod_class::ClassTable;
use crate::test_objects::{PodBuilder, node, pod};

struct Fixture {
    queue: SchedulingQueue,
    classes: ClassTable,
    shown: Arc<Metrics>,
}

impl Fixture {
    fn new() -> Self {
        Self::with_clock(TokioClock::shared())
    }

    fn with_clock(clock: SharedClock) -> Self {
        Self::gated(&Gates::default(), clock)
    }

    fn gated(gates: &Gates, clock: SharedClock) -> Self {
        let shown = Metrics::new(MetricsOptions::default());
        let metrics = Arc::new(SchedulerMetrics::new(&shown));
        let profiles = [default_profile()];
        let queue = SchedulingQueue::new(&profiles, QueueOptions::default(), gates, clock, metrics).unwrap();
        Self { queue, classes: ClassTable::default(), shown }
    }

    fn add(&self, pod: PodBuilder) {
        self.queue.add(pod.info(&self.classes));
    }

    fn pop(&self) -> Option<QueuedPod> {
        self.queue.try_pop()
    }

    /// Takes the next pod and brings it back as rejected by a plugin.
    fn reject(&self, plugin: &'static str) {
        let mut pod = self.pop().unwrap();
        pod.unschedulable_plugins.insert(plugin);
        self.queue.requeue(pod).unwrap();
    }

    fn fail(&self) {
        let mut pod = self.pop().unwrap();
        pod.unschedulable_plugins.clear();
        self.queue.requeue(pod).unwrap();
    }

    fn node_added(&self) {
        let object = EventObject::Node { old: None, new: Some(node("n").build()) };
        self.queue.move_all(&ClusterEvent::NODE_ADD, &object, |_| true);
    }

    /// Active, backing off, waiting, held back.
    fn sizes(&self) -> [usize; 4] {
        let size = self.queue.size();
        [size.active, size.backoff, size.unschedulable, size.gated]
    }
}

#[tokio::test(start_paused = true)]
async fn important_pods_go_first_then_older_ones() {
    let fixture = Fixture::new();
    fixture.add(pod("old"));
    tokio::time::advance(Duration::from_millis(1)).await;
    fixture.add(pod("young"));
    fixture.add(pod("important").priority(10));
    let order: Vec<_> = std::iter::from_fn(|| fixture.pop()).map(|pod| pod.info.pod.metadata.name.clone()).collect();
    assert_eq!(order, ["important", "old", "young"]);
}

#[tokio::test(start_paused = true)]
async fn rejected_pods_wait_for_an_event_of_their_plugin() {
    let fixture = Fixture::new();
    fixture.add(pod("p"));
    fixture.reject("NodeName");
    assert_eq!(fixture.sizes(), [0, 0, 1, 0]);
    let object = EventObject::Pod { old: Some(pod("x").on("n").build()), new: None };
    fixture.queue.move_all(&ClusterEvent::ASSIGNED_POD_DELETE, &object, |_| true);
    assert_eq!(fixture.sizes(), [0, 0, 1, 0], "pods that go do not help NodeName");
    fixture.node_added();
    assert_eq!(fixture.sizes(), [0, 1, 0, 0]);
    fixture.queue.flush_backoff();
    assert_eq!(fixture.sizes(), [0, 1, 0, 0]);
    tokio::time::advance(Duration::from_secs(3)).await;
    fixture.queue.flush_backoff();
    assert_eq!(fixture.sizes(), [1, 0, 0, 0]);
    assert_eq!(fixture.pop().unwrap().attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn an_idle_scheduler_takes_rejected_pods_early_but_not_failed_ones() {
    let fixture = Fixture::new();
    fixture.add(pod("p"));
    fixture.reject("NodeName");
    fixture.node_added();
    assert!(fixture.pop().is_some());
    let fixture = Fixture::new();
    fixture.add(pod("p"));
    fixture.fail();
    assert_eq!(fixture.sizes(), [0, 1, 0, 0]);
    assert!(fixture.pop().is_none());
    tokio::time::advance(Duration::from_secs(2)).await;
    fixture.queue.flush_backoff();
    assert!(fixture.pop().is_some());
}

#[tokio::test(start_paused = true)]
async fn nobody_is_taken_early_where_that_is_off() {
    let fixture = Fixture::gated(&Gates::default().with(EARLY, false), TokioClock::shared());
    tokio::time::advance(Duration::from_millis(300)).await;
    fixture.add(pod("p"));
    fixture.reject("NodeName");
    fixture.node_added();
    assert!(fixture.pop().is_none());
    assert_eq!(fixture.sizes(), [0, 1, 0, 0]);
    // A back-off ends when it ends, and not with the second.
    for (step, sizes) in [(1000, [0, 1, 0, 0]), (1, [1, 0, 0, 0])] {
        tokio::time::advance(Duration::from_millis(step)).await;
        fixture.queue.flush_backoff();
        assert_eq!(fixture.sizes(), sizes, "{step}");
    }
    assert!(fixture.pop().is_some());
}

#[tokio::test(start_paused = true)]
async fn who_may_not_be_taken_early_passes_the_gates_when_the_back_off_is_over() {
    for (early, sizes) in [(true, [0, 0, 0, 1]), (false, [0, 1, 0, 0])] {
        let fixture = Fixture::gated(&Gates::default().with(EARLY, early), TokioClock::shared());
        fixture.add(pod("p"));
        let mut gated = pod("p");
        gated.0.spec.scheduling_gates = vec![PodSchedulingGate { name: "g".into() }];
        let mut taken = fixture.pop().unwrap();
        taken.info = gated.info(&fixture.classes);
        taken.unschedulable_plugins.clear();
        fixture.queue.requeue(taken).unwrap();
        assert_eq!(fixture.sizes(), sizes, "early {early}");
        tokio::time::advance(Duration::from_secs(3)).await;
        fixture.queue.flush_backoff();
        assert_eq!(fixture.sizes(), [0, 0, 0, 1], "early {early}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_during_an_attempt_are_not_lost() {
    let fixture = Fixture::new();
    fixture.add(pod("p"));
    let mut taken = fixture.pop().unwrap();
    fixture.node_added();
    taken.unschedulable_plugins.insert("NodeName");
    fixture.queue.requeue(taken).unwrap();
    assert_eq!(fixture.sizes(), [0, 1, 0, 0]);
    assert_eq!(fixture.queue.state.lock().in_flight.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn events_are_measured_and_counted_while_pods_are_in_flight() {
    let fixture = Fixture::new();
    fixture.add(pod("p"));
    let shows = |name: &str, label: &str, expected: u32| {
        let (line, text) = (format!("scheduler_{name}{{event=\"{label}\"}} {expected}\n"), fixture.shown.text());
        assert!(text.contains(&line), "{line}\nin\n{text}");
    };
    let mut taken = fixture.pop().unwrap();
    shows("inflight_events", "PodPopped", 1);
    fixture.node_added();
    fixture.node_added();
    shows("inflight_events", "NodeAdd", 2);
    shows("event_handling_duration_seconds_count", "NodeAdd", 2);
    taken.unschedulable_plugins.insert("NodeName");
    fixture.queue.requeue(taken).unwrap();
    shows("inflight_events", "PodPopped", 0);
    shows("inflight_events", "NodeAdd", 0);
}

#[tokio::test(start_paused = true)]
async fn waiting_too_long_ends_in_another_attempt() {
    let fixture = Fixture::new();
    fixture.add(pod("p"));
    fixture.reject("NodeName");
    tokio::time::advance(Duration::from_secs(299)).await;
    fixture.queue.flush_unschedulable();
    assert_eq!(fixture.sizes(), [0, 0, 1, 0]);
    tokio::time::advance(Duration::from_secs(2)).await;
    fixture.queue.flush_unschedulable();
    assert_eq!(fixture.sizes(), [1, 0, 0, 0]);
    assert!(fixture.pop().unwrap().flushed);
}

#[tokio::test(start_paused = true)]
async fn gates_hold_pods_back() {
    let fixture = Fixture::new();
    let gated = pod("p").gate("g").build();
    fixture.queue.add(PodInfo::new(Arc::clone(&gated), &fixture.classes));
    assert_eq!(fixture.sizes(), [0, 0, 0, 1]);
    fixture.node_added();
    tokio::time::advance(Duration::from_secs(600)).await;
    fixture.queue.flush_unschedulable();
    assert_eq!(fixture.sizes(), [0, 0, 0, 1]);
    fixture.queue.update(&gated, pod("p").info(&fixture.classes));
    assert_eq!(fixture.sizes(), [1, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_comes_back_once() {
    let fixture = Fixture::new();
    fixture.add(pod("p"));
    let taken = fixture.pop().unwrap();
    fixture.add(pod("p"));
    let error = fixture.queue.requeue(taken).unwrap_err();
    assert_eq!(error.to_string(), "Pod default/p is already present in the active queue");
    let pod = pod("p").build();
    fixture.queue.delete(&pod);
    assert!(fixture.pop().is_none());
}

#[tokio::test(start_paused = true)]
async fn nominations_survive_updates_and_end_with_the_pod() {
    let fixture = Fixture::new();
    let old = pod("p").build();
    fixture.queue.add(PodInfo::new(Arc::clone(&old), &fixture.classes));
    fixture.queue.nominator().set(&PodInfo::new(Arc::clone(&old), &fixture.classes), "n");
    fixture.queue.update(&old, pod("p").label("a", "b").info(&fixture.classes));
    assert_eq!(fixture.queue.nominator().node_of("uid-p").as_deref(), Some("n"));
    fixture.queue.delete(&old);
    assert!(fixture.queue.nominator().pods().is_empty());
}

#[tokio::test(start_paused = true)]
async fn popping_waits_for_a_pod() {
    let fixture = Arc::new(Fixture::new());
    let tasks = base::TaskGroup::new("test");
    let other = Arc::clone(&fixture);
    tasks.spawn("adds", async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        other.add(pod("p"));
    });
    let stop = CancellationToken::new();
    assert!(fixture.queue.pop(&stop).await.is_some());
    stop.cancel();
    assert!(fixture.queue.pop(&stop).await.is_none());
}

/// A machine whose clock is set back some time after the start.
struct SetBack {
    start: tokio::time::Instant,
    after: Duration,
}

impl base::Clock for SetBack {
    fn wall(&self) -> std::time::SystemTime {
        let back = if self.start.elapsed() < self.after { Duration::ZERO } else { Duration::from_secs(3600) };
        std::time::UNIX_EPOCH + Duration::from_secs(1_000_000) + self.start.elapsed() - back
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_holds_nobody_up() {
    let clock = SetBack { start: tokio::time::Instant::now(), after: Duration::from_secs(1) };
    let fixture = Fixture::with_clock(Arc::new(clock));
    fixture.add(pod("failed"));
    fixture.fail();
    tokio::time::advance(Duration::from_secs(3)).await;
    fixture.queue.flush_backoff();
    assert_eq!(fixture.sizes(), [1, 0, 0, 0], "the back-off is over");
    fixture.reject("NodeName");
    tokio::time::advance(Duration::from_secs(301)).await;
    fixture.queue.flush_unschedulable();
    assert_eq!(fixture.sizes(), [1, 0, 0, 0], "it waited long enough");
}
