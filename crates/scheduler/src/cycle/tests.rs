//! Whole cycles without a client: decisions, bindings, failures, preemption.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::{Pod, PodStatus};
use api_types::scheduler_config_v1::KubeSchedulerConfiguration;
use async_trait::async_trait;
use base::{Rng, TokioClock};
use component_base::metrics::{Metrics, MetricsOptions};
use parking_lot::Mutex;

use super::*;
use crate::config::{build_profiles, default_configuration};
use crate::metrics::SchedulerMetrics;
use crate::plugins::{ALL, build_cx};
use crate::queue::QueueSize;
use crate::test_objects::{PodBuilder, node, pod};
use crate::writer::WriteError;

/// Notes what is written; binds only while told so.
#[derive(Default)]
struct Notes {
    lines: Mutex<Vec<String>>,
    refuse: Mutex<Option<String>>,
    /// Whether pods cannot be deleted.
    keep: AtomicBool,
}

#[async_trait]
impl ClusterWriter for Notes {
    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), WriteError> {
        if let Some(refusal) = self.refuse.lock().clone() {
            return Err(WriteError::Failed(refusal));
        }
        self.lines.lock().push(format!("bind {} {node}", pod.metadata.name));
        Ok(())
    }
    async fn patch_status(&self, pod: &Pod, status: &PodStatus) -> Result<(), WriteError> {
        let last = status.conditions.last().map(|condition| format!("{} {}", condition.type_, condition.reason));
        let line =
            format!("patch {} {:?} [{}]", pod.metadata.name, last.unwrap_or_default(), status.nominated_node_name);
        self.lines.lock().push(line);
        Ok(())
    }
    async fn delete(&self, pod: &Pod) -> Result<(), WriteError> {
        self.lines.lock().push(format!("delete {}", pod.metadata.name));
        if self.keep.load(Ordering::Relaxed) { Err(WriteError::Failed("no".into())) } else { Ok(()) }
    }
}

impl EventSink for Notes {
    fn event(&self, event: &PodEvent<'_>) {
        self.lines.lock().push(format!("{} {}: {}", event.reason, event.about.metadata.name, event.note));
    }
}

pub(super) struct Fixture {
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) pods: Lister<Pod>,
    pub(super) waiting: Arc<WaitingPods>,
    notes: Arc<Notes>,
    pub(super) shown: Arc<Metrics>,
}

impl Fixture {
    fn new() -> Self {
        Self::with(Parallelism::default(), |_| {})
    }

    /// A scheduler with so many threads and a changed profile.
    pub(super) fn with(parallelism: Parallelism, change: impl FnOnce(&mut Profile)) -> Self {
        Self::of(&default_configuration(), parallelism, change)
    }

    /// The same from a configuration.
    pub(super) fn of(
        configuration: &KubeSchedulerConfiguration,
        parallelism: Parallelism,
        change: impl FnOnce(&mut Profile),
    ) -> Self {
        Self::of_cx(configuration, BuildCx { parallelism, ..build_cx() }, change)
    }

    /// The same where plugins are built with something else.
    pub(super) fn of_cx(
        configuration: &KubeSchedulerConfiguration,
        cx: BuildCx,
        change: impl FnOnce(&mut Profile),
    ) -> Self {
        let notes = Arc::new(Notes::default());
        let shown = Metrics::new(MetricsOptions::default());
        let metrics = Arc::new(SchedulerMetrics::new(&shown));
        let cx = BuildCx { writer: notes.clone(), metrics, ..cx };
        let mut profiles = build_profiles(configuration, ALL, &cx).unwrap();
        change(Arc::get_mut(&mut profiles[0]).unwrap());
        let (pods, waiting) = (cx.listers.of(), Arc::clone(&cx.waiting));
        let parts = SchedulerOptions {
            profiles,
            percentage_of_nodes_to_score: 0,
            queue: QueueOptions::default(),
            cx,
            events: notes.clone(),
            clock: TokioClock::shared(),
            rng: Rng::seeded(1),
        };
        Self { scheduler: Scheduler::new(parts).unwrap(), pods, waiting, notes, shown }
    }

    pub(super) fn pod(&self, pod: PodBuilder) -> Arc<Pod> {
        let pod = pod.build();
        self.pods.put(Arc::clone(&pod));
        self.scheduler.pod_added(&pod);
        pod
    }

    /// Tries the next pod and writes what comes of it.
    pub(super) async fn step(&self) -> Option<String> {
        let pod = self.scheduler.queue().try_pop()?;
        let outcome = self.scheduler.schedule_one(pod);
        let node = outcome.node.as_ref().map(ToString::to_string);
        outcome.finish().await;
        node
    }

    pub(super) fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lines.lock())
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_and_counts() {
    let fixture = Fixture::new();
    fixture.scheduler.node_added(&node("a").build());
    fixture.pod(pod("p").request("cpu", "3"));
    fixture.pod(pod("q").request("cpu", "3"));
    assert_eq!(fixture.step().await.as_deref(), Some("a"));
    assert_eq!(fixture.lines(), ["bind p a", "Scheduled p: Successfully assigned default/p to a"]);
    assert_eq!(fixture.step().await, None);
    let text = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: \
                1 No preemption victims found for incoming pod.";
    let expected = [format!("FailedScheduling q: {text}"), "patch q \"PodScheduled Unschedulable\" []".to_owned()];
    assert_eq!(fixture.lines(), expected);
    let text = fixture.shown.text();
    for (point, status, count) in [
        ("PreFilter", "Success", 2),
        ("Filter", "Success", 2),
        ("PostFilter", "Unschedulable", 1),
        ("Reserve", "Success", 1),
        ("PreBind", "Success", 1),
        ("Bind", "Success", 1),
    ] {
        let line = format!(
            "scheduler_framework_extension_point_duration_seconds_count{{extension_point=\"{point}\",\
             profile=\"default-scheduler\",status=\"{status}\"}} {count}\n"
        );
        assert!(text.contains(&line), "{line}\nin\n{text}");
    }
    let rejected = |count: u32| {
        let line = format!(
            "scheduler_unschedulable_pods{{plugin=\"NodeResourcesFit\",profile=\"default-scheduler\"}} {count}\n"
        );
        assert!(fixture.shown.text().contains(&line), "{line}");
    };
    rejected(1);
    // The room comes back with the first pod's end.
    let gone = pod("p").request("cpu", "3").on("a").build();
    fixture.scheduler.pod_added(&gone);
    fixture.scheduler.pod_deleted(&gone);
    rejected(1);
    assert_eq!(fixture.step().await.as_deref(), Some("a"));
    rejected(0);
}

#[tokio::test(start_paused = true)]
async fn without_nodes_pods_are_tried_again() {
    let fixture = Fixture::new();
    fixture.pod(pod("p"));
    assert_eq!(fixture.step().await, None);
    let lines = fixture.lines();
    assert_eq!(lines[0], "FailedScheduling p: no nodes available to schedule pods");
    assert_eq!(lines[1], "patch p \"PodScheduled Unschedulable\" []");
    assert_eq!(fixture.scheduler.queue().size().backoff, 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_binding_gives_the_room_back() {
    let fixture = Fixture::new();
    fixture.scheduler.node_added(&node("a").build());
    *fixture.notes.refuse.lock() = Some("no".into());
    fixture.pod(pod("p"));
    fixture.step().await;
    let expected =
        ["FailedScheduling p: running Bind plugin \"DefaultBinder\": no", "patch p \"PodScheduled SchedulerError\" []"];
    assert_eq!(fixture.lines(), expected);
    assert_eq!(fixture.scheduler.cache().size().pods, 0);
    *fixture.notes.refuse.lock() = None;
    tokio::time::advance(Duration::from_secs(3)).await;
    fixture.scheduler.queue().flush_backoff();
    assert_eq!(fixture.step().await.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_binding_whose_answer_was_lost_stands_once_the_watch_shows_it() {
    let fixture = Fixture::new();
    fixture.scheduler.node_added(&node("a").build());
    let waiting = fixture.pod(pod("p"));
    let taken = fixture.scheduler.queue().try_pop().unwrap();
    let outcome = fixture.scheduler.schedule_one(taken);
    let bound = pod("p").on("a").build();
    fixture.pods.put(Arc::clone(&bound));
    fixture.scheduler.pod_updated(&waiting, &bound);
    *fixture.notes.refuse.lock() = Some("no answer".into());
    outcome.finish().await;
    let size = fixture.scheduler.cache().size();
    assert_eq!((size.pods, size.assumed), (1, 0));
    assert_eq!(fixture.scheduler.queue().size(), QueueSize::default());
    assert_eq!(fixture.lines(), Vec::<String>::new(), "its status is the kubelet's now");
}

#[tokio::test(start_paused = true)]
async fn preemption_makes_room() {
    let fixture = Fixture::new();
    fixture.scheduler.node_added(&node("a").build());
    let low = fixture.pod(pod("low").request("cpu", "4").on("a"));
    fixture.pod(pod("high").request("cpu", "4").priority(10));
    assert_eq!(fixture.step().await, None);
    let mut lines = fixture.lines();
    lines.sort();
    assert_eq!(
        lines,
        [
            "FailedScheduling high: 0/1 nodes are available: 1 Insufficient cpu.",
            "Preempted low: Preempted by pod uid-high on node a",
            "delete low",
            "patch high \"PodScheduled Unschedulable\" [a]",
            "patch low \"DisruptionTarget PreemptionByScheduler\" []",
        ]
    );
    fixture.scheduler.pod_deleted(&low);
    assert_eq!(fixture.step().await.as_deref(), Some("a"));
    let text = fixture.shown.text();
    for line in ["execution_total{result=\"success\"} 1\n", "duration_seconds_count{result=\"success\"} 1\n"] {
        assert!(text.contains(&format!("scheduler_preemption_goroutines_{line}")), "{line}\nin\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn others_may_be_evicted_before_the_preemptor_waits_again() {
    let cx = || BuildCx { gates: build_cx().gates.with(ASYNC_PREEMPTION, false), ..build_cx() };
    let fixture = Fixture::of_cx(&default_configuration(), cx(), |_| {});
    fixture.scheduler.node_added(&node("a").build());
    let low = fixture.pod(pod("low").request("cpu", "4").on("a"));
    fixture.pod(pod("high").request("cpu", "4").priority(10));
    assert_eq!(fixture.step().await, None);
    let expected = [
        "patch low \"DisruptionTarget PreemptionByScheduler\" []",
        "delete low",
        "Preempted low: Preempted by pod uid-high on node a",
        "FailedScheduling high: 0/1 nodes are available: 1 Insufficient cpu.",
        "patch high \"PodScheduled Unschedulable\" [a]",
    ];
    assert_eq!(fixture.lines(), expected);
    fixture.scheduler.pod_deleted(&low);
    assert_eq!(fixture.step().await.as_deref(), Some("a"));

    let fixture = Fixture::of_cx(&default_configuration(), cx(), |_| {});
    fixture.scheduler.node_added(&node("a").build());
    fixture.pod(pod("low").request("cpu", "4").on("a"));
    fixture.pod(pod("high").request("cpu", "4").priority(10));
    fixture.notes.keep.store(true, Ordering::Relaxed);
    fixture.step().await;
    let failed = [
        "patch low \"DisruptionTarget PreemptionByScheduler\" []",
        "delete low",
        "FailedScheduling high: 0/1 nodes are available: 1 Insufficient cpu. preemption: no",
        "patch high \"PodScheduled Unschedulable\" []",
    ];
    assert_eq!(fixture.lines(), failed);
    assert!(fixture.scheduler.queue().nominator().pods().is_empty(), "the room is nobody's");
}

/// Two nodes with a pod on each that is less important than `high`, which waits.
fn full_nodes() -> (Fixture, [Arc<Pod>; 2]) {
    let fixture = Fixture::new();
    fixture.scheduler.node_added(&node("a").build());
    fixture.scheduler.node_added(&node("b").build());
    // The one on b is more important, so that a is the better choice.
    let low = fixture.pod(pod("low").request("cpu", "4").on("a"));
    let mid = fixture.pod(pod("mid").request("cpu", "4").priority(5).on("b"));
    fixture.pod(pod("high").request("cpu", "4").priority(10));
    (fixture, [low, mid])
}

fn deletions(fixture: &Fixture) -> Vec<String> {
    fixture.lines().into_iter().filter(|line| line.starts_with("delete")).collect()
}

#[tokio::test(start_paused = true)]
async fn others_are_scheduled_while_a_way_out_is_searched_for() {
    let (fixture, _) = full_nodes();
    let searching = fixture.scheduler.schedule_one(fixture.scheduler.queue().try_pop().unwrap());
    fixture.pod(pod("small"));
    assert!(fixture.step().await.is_some());
    let lines = fixture.lines();
    assert!(lines.iter().all(|line| line.contains("small")), "{lines:?}");
    searching.finish().await;
    assert_eq!(deletions(&fixture), ["delete low"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_search_found_must_hold_when_it_ends() {
    // Somebody more important took the better node: the other one it is.
    let (fixture, _) = full_nodes();
    let searching = fixture.scheduler.schedule_one(fixture.scheduler.queue().try_pop().unwrap());
    fixture.scheduler.pod_added(&pod("boss").request("cpu", "4").priority(20).on("a").build());
    searching.finish().await;
    assert_eq!(deletions(&fixture), ["delete mid"]);
    // There is room by now: nobody has to go, and the pod is tried again soon.
    let (fixture, [low, _]) = full_nodes();
    let searching = fixture.scheduler.schedule_one(fixture.scheduler.queue().try_pop().unwrap());
    fixture.scheduler.pod_deleted(&low);
    searching.finish().await;
    assert_eq!(deletions(&fixture), [""; 0]);
    tokio::time::advance(Duration::from_secs(3)).await;
    fixture.scheduler.queue().flush_backoff();
    assert_eq!(fixture.step().await.as_deref(), Some("a"));
    // The pod itself is gone: nobody goes for its sake.
    let (fixture, _) = full_nodes();
    let searching = fixture.scheduler.schedule_one(fixture.scheduler.queue().try_pop().unwrap());
    fixture.pods.remove("default", "high");
    searching.finish().await;
    assert_eq!(deletions(&fixture), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn two_searches_do_not_find_the_same_room() {
    let (fixture, _) = full_nodes();
    fixture.pod(pod("next").request("cpu", "4").priority(10));
    let first = fixture.scheduler.schedule_one(fixture.scheduler.queue().try_pop().unwrap());
    let second = fixture.scheduler.schedule_one(fixture.scheduler.queue().try_pop().unwrap());
    first.finish().await;
    second.finish().await;
    assert_eq!(deletions(&fixture), ["delete low", "delete mid"]);
}

#[tokio::test(start_paused = true)]
async fn decisions_are_the_same_with_any_number_of_threads() {
    let choices = async |threads| {
        let fixture = Fixture::with(Parallelism::threads(threads), |_| {});
        for number in 0..600 {
            let cpu = ["1", "2", "4"][number % 3];
            let made = node(&format!("n{number}")).capacity("cpu", cpu).label("zone", &(number % 5).to_string());
            fixture.scheduler.node_added(&if number % 7 == 0 { made.cordoned() } else { made }.build());
        }
        let mut chosen = Vec::new();
        for number in 0..60 {
            let made = pod(&format!("p{number}")).request("cpu", ["1", "2"][number % 2]);
            fixture.pod(made.label("app", "a").spread("a", "zone", 1, "DoNotSchedule"));
            chosen.push(fixture.step().await.unwrap());
        }
        chosen
    };
    let alone = choices(1).await;
    assert_eq!(choices(4).await, alone);
}

/// Waits before it lets pods be bound, as for their volumes.
struct Volumes(Arc<tokio::sync::Notify>);

#[async_trait]
impl crate::framework::PreBind for Volumes {
    fn has_work(
        &self,
        _: &crate::framework::CycleState,
        pod: &PodInfo,
        _: &str,
    ) -> Result<bool, crate::framework::Status> {
        Ok(pod.pod.metadata.name.starts_with("volume"))
    }
    async fn pre_bind(
        &self,
        _: &crate::framework::CycleState,
        _: &PodInfo,
        _: &str,
        _: &CancellationToken,
    ) -> crate::framework::StatusResult {
        self.0.notified().await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn pods_that_wait_before_they_are_bound_hold_nobody_up() {
    let there = Arc::new(tokio::sync::Notify::new());
    let plugin = Arc::new(Volumes(Arc::clone(&there)));
    let fixture = Fixture::with(Parallelism::default(), |profile| {
        profile.pre_bind.push(crate::framework::At { place: 40, name: "Volumes", weight: 1, plugin });
    });
    for number in 0..12 {
        fixture.scheduler.node_added(&node(&format!("n{number}")).build());
    }
    let tasks = TaskGroup::new("test");
    tasks.spawn("scheduler", Arc::clone(&fixture.scheduler).run(tasks.clone(), tasks.token()));
    for number in 0..MAX_WRITES {
        fixture.pod(pod(&format!("volume-{number}")));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.pod(pod("plain"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let bound = |fixture: &Fixture| fixture.lines().iter().filter(|line| line.starts_with("bind")).count();
    assert_eq!(bound(&fixture), 1);
    there.notify_waiters();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bound(&fixture), MAX_WRITES);
    tasks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(start_paused = true)]
async fn room_is_kept_for_a_preemptor() {
    let fixture = Fixture::new();
    fixture.scheduler.node_added(&node("a").build());
    let low = fixture.pod(pod("low").request("cpu", "4").on("a"));
    fixture.pod(pod("high").request("cpu", "4").priority(10));
    fixture.step().await;
    fixture.scheduler.pod_deleted(&low);
    fixture.scheduler.queue().delete(&low);
    // A pod that is less important comes first but must not take the room.
    let high = fixture.scheduler.queue().try_pop().unwrap();
    fixture.pod(pod("late").request("cpu", "4").priority(5));
    assert_eq!(fixture.step().await, None);
    assert_eq!(fixture.scheduler.schedule_one(high).node.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn pods_of_others_and_pods_that_end_are_left_alone() {
    let fixture = Fixture::new();
    fixture.scheduler.node_added(&node("a").build());
    let mut foreign = pod("foreign");
    foreign.0.spec.scheduler_name = "other".into();
    fixture.pod(foreign);
    let mut ending = pod("ending");
    ending.0.metadata.deletion_timestamp = Some(Time::from_unix_seconds(1));
    fixture.pod(ending);
    assert_eq!(fixture.step().await, None);
    assert_eq!(fixture.lines(), ["FailedScheduling ending: skip schedule deleting pod: default/ending"]);
    assert!(fixture.scheduler.queue().try_pop().is_none());
}

#[tokio::test(start_paused = true)]
async fn equal_nodes_share_the_pods() {
    let fixture = Fixture::new();
    for number in 0..10 {
        fixture.scheduler.node_added(&node(&format!("n{number}")).build());
    }
    let mut used = std::collections::BTreeSet::new();
    for number in 0..10 {
        fixture.pod(pod(&format!("p{number}")).request("cpu", "1").request("memory", "1Gi"));
        used.extend(fixture.step().await);
    }
    assert_eq!(used.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn the_loop_runs_until_it_is_stopped() {
    let fixture = Fixture::new();
    let tasks = TaskGroup::new("test");
    let stop = tasks.token();
    tasks.spawn("scheduler", Arc::clone(&fixture.scheduler).run(tasks.clone(), stop));
    fixture.scheduler.node_added(&node("a").build());
    fixture.pod(pod("p"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fixture.lines()[0], "bind p a");
    assert_eq!(tasks.shutdown(Duration::from_secs(5)).await, base::Drained::All);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_ends_while_it_is_bound_gives_its_room_to_others() {
    let fixture = Fixture::new();
    fixture.scheduler.node_added(&node("a").build());
    let first = fixture.pod(pod("p").request("cpu", "3"));
    let taken = fixture.scheduler.queue().try_pop().unwrap();
    let outcome = fixture.scheduler.schedule_one(taken);
    assert_eq!(outcome.node.as_deref(), Some("a"));
    fixture.pod(pod("q").request("cpu", "3"));
    assert_eq!(fixture.step().await, None);
    fixture.scheduler.pod_deleted(&first);
    assert_eq!(fixture.scheduler.cache().size().pods, 0);
    assert_eq!(fixture.step().await.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_new_node_wakes_those_that_it_can_take() {
    let fixture = Fixture::new();
    fixture.scheduler.node_added(&node("small").capacity("cpu", "1").build());
    fixture.pod(pod("p").request("cpu", "3"));
    assert_eq!(fixture.step().await, None);
    fixture.scheduler.node_added(&node("tiny").capacity("cpu", "1").build());
    assert_eq!(fixture.scheduler.queue().size().unschedulable, 1);
    fixture.scheduler.node_added(&node("large").build());
    assert_eq!(fixture.step().await.as_deref(), Some("large"));
}

#[tokio::test(start_paused = true)]
async fn full_nodes_are_passed_over_and_explained_when_nothing_else_is_left() {
    let fixture = Fixture::new();
    fixture.scheduler.node_added(&node("full").capacity("cpu", "1").build());
    fixture.scheduler.node_added(&node("gone").capacity("cpu", "1").cordoned().build());
    fixture.pod(pod("p").request("cpu", "2"));
    assert_eq!(fixture.step().await, None);
    let note = &fixture.lines()[0];
    assert!(note.contains("1 Insufficient cpu, 1 node(s) were unschedulable."), "{note}");
    fixture.scheduler.node_added(&node("free").build());
    assert_eq!(fixture.step().await.as_deref(), Some("free"));
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_a_node_is_forgotten_when_the_node_changes() {
    let fixture = Fixture::new();
    let (open, other) = (node("a").build(), node("b").label("disk", "ssd").build());
    fixture.scheduler.node_added(&open);
    fixture.scheduler.node_added(&other);
    let preferring = |name: &str| {
        let mut pod = pod(name);
        pod.0.spec.node_selector.insert("disk".into(), "ssd".into());
        pod
    };
    fixture.pod(preferring("p"));
    assert_eq!(fixture.step().await.as_deref(), Some("b"));
    let cordoned = node("b").label("disk", "ssd").cordoned().build();
    fixture.scheduler.node_updated(&other, &cordoned);
    fixture.scheduler.node_updated(&open, &node("a").label("disk", "ssd").build());
    fixture.pod(preferring("q"));
    assert_eq!(fixture.step().await.as_deref(), Some("a"));
    fixture.scheduler.node_updated(&cordoned, &other);
    fixture.scheduler.node_updated(&open, &node("a").label("disk", "ssd").cordoned().build());
    fixture.pod(preferring("r"));
    assert_eq!(fixture.step().await.as_deref(), Some("b"));
}
