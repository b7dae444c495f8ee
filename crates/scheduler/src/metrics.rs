//! The scheduler's metrics; names, labels and buckets are upstream's.

use std::time::Duration;

use component_base::metrics::{Counter, Counters, Desc, Gauge, Gauges, Histograms, Metrics, Stability, exponential};

use crate::cache::CacheSize;

const ATTEMPT_SECONDS: &[f64] = &exponential::<15>(0.001, 2.0);
const SLI_SECONDS: &[f64] = &exponential::<20>(0.01, 2.0);
const POINT_SECONDS: &[f64] = &exponential::<12>(0.0001, 2.0);
const PLUGIN_SECONDS: &[f64] = &exponential::<20>(0.000_01, 1.5);
const BATCH_SECONDS: &[f64] = &exponential::<12>(0.000_01, 2.0);
const CONDITIONS_SECONDS: &[f64] = &exponential::<14>(0.1, 2.0);
const ATTEMPTS: &[f64] = &exponential::<5>(1.0, 2.0);
const VICTIMS: &[f64] = &exponential::<7>(1.0, 2.0);

const SCHEDULE_ATTEMPTS: Desc =
    Desc::new("scheduler_schedule_attempts_total", "Attempts to schedule pods, by result.", Stability::Stable)
        .labels(&["result", "profile"]);
const ATTEMPT_DURATION: Desc = Desc::new(
    "scheduler_scheduling_attempt_duration_seconds",
    "How long an attempt took, binding included.",
    Stability::Stable,
)
.labels(&["result", "profile"])
.buckets(ATTEMPT_SECONDS);
const ALGORITHM_DURATION: Desc =
    Desc::new("scheduler_scheduling_algorithm_duration_seconds", "How long the decision took.", Stability::Alpha)
        .buckets(ATTEMPT_SECONDS);
const SLI_DURATION: Desc = Desc::new(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "From the first entry into the queue until the pod was bound.",
    Stability::Beta,
)
.labels(&["attempts"])
.buckets(SLI_SECONDS);
const POD_ATTEMPTS: Desc =
    Desc::new("scheduler_pod_scheduling_attempts", "How many attempts a bound pod took.", Stability::Stable)
        .buckets(ATTEMPTS);
const AFTER_FLUSH: Desc = Desc::new(
    "scheduler_pod_scheduled_after_flush_total",
    "Pods bound after they had waited too long for an event.",
    Stability::Alpha,
);
const PENDING: Desc =
    Desc::new("scheduler_pending_pods", "Pods that wait, by queue.", Stability::Stable).labels(&["queue"]);
const INCOMING: Desc = Desc::new(
    "scheduler_queue_incoming_pods_total",
    "Pods that entered a queue, by queue and event.",
    Stability::Stable,
)
.labels(&["queue", "event"]);
const PREEMPTION_ATTEMPTS: Desc =
    Desc::new("scheduler_preemption_attempts_total", "Searches for pods to evict.", Stability::Stable);
const PREEMPTION_VICTIMS: Desc =
    Desc::new("scheduler_preemption_victims", "How many pods a preemption evicts.", Stability::Stable).buckets(VICTIMS);
const POINT_DURATION: Desc = Desc::new(
    "scheduler_framework_extension_point_duration_seconds",
    "How long all plugins of an extension point took.",
    Stability::Stable,
)
.labels(&["extension_point", "status", "profile"])
.buckets(POINT_SECONDS);
const UNSCHEDULABLE: Desc = Desc::new(
    "scheduler_unschedulable_pods",
    "Pods in the queue that a plugin rejected, by plugin; one that several rejected counts for each.",
    Stability::Beta,
)
.labels(&["plugin", "profile"]);
const PERMIT_WAIT: Desc = Desc::new(
    "scheduler_permit_wait_duration_seconds",
    "How long pods waited for the word of `Permit` plugins, by how that ended.",
    Stability::Beta,
)
.labels(&["result"])
.buckets(ATTEMPT_SECONDS);
const CACHE_SIZE: Desc =
    Desc::new("scheduler_cache_size", "How much the cache holds, by type.", Stability::Alpha).labels(&["type"]);

const EVENT_HANDLING: Desc = Desc::new(
    "scheduler_event_handling_duration_seconds",
    "How long it took to tell the pods that wait of an event.",
    Stability::Alpha,
)
.labels(&["event"])
.buckets(POINT_SECONDS);
const IN_FLIGHT: Desc = Desc::new(
    "scheduler_inflight_events",
    "Events that are kept while pods are being tried, and these pods as PodPopped.",
    Stability::Alpha,
)
.labels(&["event"]);
const PREEMPTION_DURATION: Desc = Desc::new(
    "scheduler_preemption_goroutines_duration_seconds",
    "How long evictions for one preemptor took, by how they ended.",
    Stability::Alpha,
)
.labels(&["result"])
.buckets(SLI_SECONDS);
const PREEMPTIONS: Desc = Desc::new(
    "scheduler_preemption_goroutines_execution_total",
    "Preemptors that others were evicted for, by how that ended.",
    Stability::Alpha,
)
.labels(&["result"]);

const VOLUME_ERRORS: Desc = Desc::new(
    "scheduler_volume_scheduling_stage_error_total",
    "Errors with the volumes of pods, by what was being done.",
    Stability::Alpha,
)
.labels(&["operation"]);

const CLAIM_CREATES: Desc = Desc::new(
    "scheduler_resourceclaim_creates_total",
    "Claims that were made for extended resources, by how that ended.",
    Stability::Alpha,
)
.labels(&["status"]);

const GROUP_ATTEMPTS: Desc = Desc::new(
    "scheduler_podgroup_schedule_attempts_total",
    "Attempts to schedule groups of pods, by result.",
    Stability::Alpha,
)
.labels(&["profile", "result"]);
const GROUP_ATTEMPT_DURATION: Desc = Desc::new(
    "scheduler_podgroup_scheduling_attempt_duration_seconds",
    "How long an attempt to schedule a group of pods took.",
    Stability::Alpha,
)
.labels(&["profile", "result"])
.buckets(ATTEMPT_SECONDS);
const GROUP_ALGORITHM_DURATION: Desc = Desc::new(
    "scheduler_podgroup_scheduling_algorithm_duration_seconds",
    "How long the decision about a group of pods took.",
    Stability::Alpha,
)
.buckets(ATTEMPT_SECONDS);
const CALLS: Desc = Desc::new(
    "scheduler_async_api_call_execution_total",
    "Calls that were made, by kind and how they ended.",
    Stability::Alpha,
)
.labels(&["call_type", "result"]);
const CALL_DURATION: Desc = Desc::new(
    "scheduler_async_api_call_execution_duration_seconds",
    "How long calls took, by kind and how they ended.",
    Stability::Alpha,
)
.labels(&["call_type", "result"])
.buckets(ATTEMPT_SECONDS);
const CALLS_WAITING: Desc =
    Desc::new("scheduler_pending_async_api_calls", "Calls that wait, by kind.", Stability::Alpha)
        .labels(&["call_type"]);
const BATCH_ATTEMPTS: Desc = Desc::new(
    "scheduler_batch_attempts_total",
    "Decisions by whether a pod before had left a node to try first.",
    Stability::Alpha,
)
.labels(&["profile", "result"]);
const BATCH_FLUSHED: Desc =
    Desc::new("scheduler_batch_cache_flushed_total", "Rankings of nodes that were dropped, by why.", Stability::Alpha)
        .labels(&["profile", "reason"]);

const GOROUTINES: Desc = Desc::new(
    "scheduler_goroutines",
    "Tasks and threads at work beside the scheduling loop, by what they do.",
    Stability::Beta,
)
.labels(&["operation"]);
const EVALUATIONS: Desc = Desc::new(
    "scheduler_plugin_evaluation_total",
    "How often plugins were asked, by extension point: PreFilter, Filter, PreScore and Score only.",
    Stability::Beta,
)
.labels(&["plugin", "extension_point", "profile"]);
const PLUGIN_DURATION: Desc = Desc::new(
    "scheduler_plugin_execution_duration_seconds",
    "How long one plugin took at one extension point.",
    Stability::Alpha,
)
.labels(&["plugin", "extension_point", "status"])
.buckets(PLUGIN_SECONDS);
const HINT_DURATION: Desc = Desc::new(
    "scheduler_queueing_hint_execution_duration_seconds",
    "How long a plugin took to say whether an event is worth another attempt of a pod.",
    Stability::Alpha,
)
.labels(&["plugin", "event", "hint"])
.buckets(PLUGIN_SECONDS);
const NODE_HINT_DURATION: Desc = Desc::new(
    "scheduler_get_node_hint_duration_seconds",
    "How long it took to look for a node that a pod before had left to try first.",
    Stability::Alpha,
)
.labels(&["hinted", "profile"])
.buckets(BATCH_SECONDS);
const STORE_DURATION: Desc = Desc::new(
    "scheduler_store_schedule_results_duration_seconds",
    "How long it took to keep a ranking of nodes for the next pod.",
    Stability::Alpha,
)
.labels(&["profile"])
.buckets(BATCH_SECONDS);
const CONDITIONS_ALLOCATIONS: Desc = Desc::new(
    "scheduler_dra_bindingconditions_allocations_total",
    "Attempts to bind pods to devices that wait for conditions, by driver and how they ended.",
    Stability::Alpha,
)
.labels(&["profile", "driver", "status"]);
const CONDITIONS_WAIT: Desc = Desc::new(
    "scheduler_dra_bindingconditions_wait_duration_seconds",
    "How long pods waited for the conditions of devices, by driver and how that ended.",
    Stability::Alpha,
)
.labels(&["profile", "driver", "status"])
.buckets(CONDITIONS_SECONDS);

/// What is done with the volumes of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VolumeStage {
    /// A node is looked at.
    Predicate,
    /// A choice is taken in.
    Assume,
    /// It is written.
    Bind,
}

impl VolumeStage {
    const fn name(self) -> &'static str {
        match self {
            Self::Predicate => "predicate",
            Self::Assume => "assume",
            Self::Bind => "bind",
        }
    }
}

/// The metrics of a scheduler.
pub struct SchedulerMetrics {
    attempts: Counters,
    attempt_duration: Histograms,
    algorithm_duration: Histograms,
    sli_duration: Histograms,
    pod_attempts: Histograms,
    after_flush: Counters,
    pending: Gauges,
    incoming: Counters,
    preemption_attempts: Counters,
    preemption_victims: Histograms,
    preemptions: Counters,
    preemption_duration: Histograms,
    event_handling: Histograms,
    in_flight: Gauges,
    cache_size: Gauges,
    points: Histograms,
    unschedulable: Gauges,
    permit_wait: Histograms,
    volume_errors: Counters,
    claim_creates: Counters,
    batch_attempts: Counters,
    batch_flushed: Counters,
    group_attempts: Counters,
    group_attempt_duration: Histograms,
    group_algorithm_duration: Histograms,
    calls: Counters,
    call_duration: Histograms,
    calls_waiting: Gauges,
    goroutines: Gauges,
    evaluations: Counters,
    plugin_duration: Histograms,
    hint_duration: Histograms,
    node_hint_duration: Histograms,
    store_duration: Histograms,
    conditions_allocations: Counters,
    conditions_wait: Histograms,
}

/// Somebody who is at work, as long as this is held.
pub(crate) struct AtWork(Gauge);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResult {
    /// The pod is bound.
    Scheduled,
    /// No node can run it.
    Unschedulable,
    /// Something went wrong.
    Error,
}

impl AttemptResult {
    const fn name(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Unschedulable => "unschedulable",
            Self::Error => "error",
        }
    }
}

impl SchedulerMetrics {
    /// Declares the families.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            attempts: metrics.counters(&SCHEDULE_ATTEMPTS),
            attempt_duration: metrics.histograms(&ATTEMPT_DURATION),
            algorithm_duration: metrics.histograms(&ALGORITHM_DURATION),
            sli_duration: metrics.histograms(&SLI_DURATION),
            pod_attempts: metrics.histograms(&POD_ATTEMPTS),
            after_flush: metrics.counters(&AFTER_FLUSH),
            pending: metrics.gauges(&PENDING),
            incoming: metrics.counters(&INCOMING),
            preemption_attempts: metrics.counters(&PREEMPTION_ATTEMPTS),
            preemption_victims: metrics.histograms(&PREEMPTION_VICTIMS),
            preemptions: metrics.counters(&PREEMPTIONS),
            preemption_duration: metrics.histograms(&PREEMPTION_DURATION),
            event_handling: metrics.histograms(&EVENT_HANDLING),
            in_flight: metrics.gauges(&IN_FLIGHT),
            cache_size: metrics.gauges(&CACHE_SIZE),
            points: metrics.histograms(&POINT_DURATION),
            unschedulable: metrics.gauges(&UNSCHEDULABLE),
            permit_wait: metrics.histograms(&PERMIT_WAIT),
            volume_errors: metrics.counters(&VOLUME_ERRORS),
            claim_creates: metrics.counters(&CLAIM_CREATES),
            batch_attempts: metrics.counters(&BATCH_ATTEMPTS),
            batch_flushed: metrics.counters(&BATCH_FLUSHED),
            group_attempts: metrics.counters(&GROUP_ATTEMPTS),
            group_attempt_duration: metrics.histograms(&GROUP_ATTEMPT_DURATION),
            group_algorithm_duration: metrics.histograms(&GROUP_ALGORITHM_DURATION),
            calls: metrics.counters(&CALLS),
            call_duration: metrics.histograms(&CALL_DURATION),
            calls_waiting: metrics.gauges(&CALLS_WAITING),
            goroutines: metrics.gauges(&GOROUTINES),
            evaluations: metrics.counters(&EVALUATIONS),
            plugin_duration: metrics.histograms(&PLUGIN_DURATION),
            hint_duration: metrics.histograms(&HINT_DURATION),
            node_hint_duration: metrics.histograms(&NODE_HINT_DURATION),
            store_duration: metrics.histograms(&STORE_DURATION),
            conditions_allocations: metrics.counters(&CONDITIONS_ALLOCATIONS),
            conditions_wait: metrics.histograms(&CONDITIONS_WAIT),
        }
    }

    /// An attempt ended.
    pub fn attempt(&self, result: AttemptResult, profile: &str, took: Duration) {
        self.attempts.with(&[result.name(), profile]).inc();
        self.attempt_duration.with(&[result.name(), profile]).observe(took.as_secs_f64());
    }

    /// The plugins of an extension point have run; `status` is how they ended.
    pub(crate) fn point(&self, point: &str, profile: &str, status: &str, took: Duration) {
        self.points.with(&[point, status, profile]).observe(took.as_secs_f64());
    }

    /// Counts how often a plugin of a profile is asked at a point.
    pub(crate) fn evaluations(&self, plugin: &str, point: &str, profile: &str) -> Counter {
        self.evaluations.with(&[plugin, point, profile])
    }

    /// A plugin has run at a point; `status` is what it said.
    pub(crate) fn plugin_ran(&self, plugin: &str, point: &str, status: &str, took: Duration) {
        self.plugin_duration.with(&[plugin, point, status]).observe(took.as_secs_f64());
    }

    /// A plugin has said whether an event is worth another attempt.
    pub(crate) fn hinted(&self, plugin: &str, event: &str, is_worth_it: bool, took: Duration) {
        let hint = if is_worth_it { "Queue" } else { "QueueSkip" };
        self.hint_duration.with(&[plugin, event, hint]).observe(took.as_secs_f64());
    }

    /// A node to try first was looked for.
    pub(crate) fn hint_looked_for(&self, profile: &str, is_found: bool, took: Duration) {
        let hinted = if is_found { "hint" } else { "no_hint" };
        self.node_hint_duration.with(&[hinted, profile]).observe(took.as_secs_f64());
    }

    /// A ranking of nodes was kept, or there was none to keep.
    pub(crate) fn results_stored(&self, profile: &str, took: Duration) {
        self.store_duration.with(&[profile]).observe(took.as_secs_f64());
    }

    /// A pod has waited for a driver's devices; `status` is how that ended.
    pub(crate) fn conditions_awaited(&self, profile: &str, driver: &str, status: &str, took: Duration) {
        self.conditions_allocations.with(&[profile, driver, status]).inc();
        self.conditions_wait.with(&[profile, driver, status]).observe(took.as_secs_f64());
    }

    /// Somebody is at work beside the loop, until this is dropped.
    pub(crate) fn at_work(&self, operation: &str) -> AtWork {
        let gauge = self.goroutines.with(&[operation]);
        gauge.inc();
        AtWork(gauge)
    }

    /// A pod has waited for `Permit` plugins; `status` is how that ended.
    pub(crate) fn permit_waited(&self, status: &str, took: Duration) {
        self.permit_wait.with(&[status]).observe(took.as_secs_f64());
    }

    /// Something went wrong with the volumes of a pod.
    pub(crate) fn volume_error(&self, stage: VolumeStage) {
        self.volume_errors.with(&[stage.name()]).inc();
    }

    /// A claim was made for extended resources, or could not be.
    pub(crate) fn claim_made(&self, is_made: bool) {
        self.claim_creates.with(&[if is_made { "success" } else { "failure" }]).inc();
    }

    /// An attempt to schedule a group of pods ended.
    pub(crate) fn group_attempt(&self, result: AttemptResult, profile: &str, took: Duration) {
        self.group_attempts.with(&[profile, result.name()]).inc();
        self.group_attempt_duration.with(&[profile, result.name()]).observe(took.as_secs_f64());
    }

    /// A decision about a group of pods was made.
    pub(crate) fn group_decided(&self, took: Duration) {
        self.group_algorithm_duration.with(&[]).observe(took.as_secs_f64());
    }

    /// A node was chosen, with the help of a hint or without.
    pub(crate) fn batch_attempt(&self, profile: &str, result: &str) {
        self.batch_attempts.with(&[profile, result]).inc();
    }

    /// A ranking of nodes was dropped.
    pub(crate) fn batch_flushed(&self, profile: &str, reason: &str) {
        self.batch_flushed.with(&[profile, reason]).inc();
    }

    /// A call that the dispatcher is to make begins to wait (1), or ends to (-1).
    pub(crate) fn call_waits(&self, kind: &str, step: f64) {
        self.calls_waiting.with(&[kind]).add(step);
    }

    /// The dispatcher has made a call.
    pub(crate) fn called(&self, kind: &str, fine: bool, took: Duration) {
        let labels = [kind, if fine { "success" } else { "error" }];
        self.calls.with(&labels).inc();
        self.call_duration.with(&labels).observe(took.as_secs_f64());
    }

    /// A decision was made.
    pub fn decided(&self, took: Duration) {
        self.algorithm_duration.with(&[]).observe(took.as_secs_f64());
    }

    /// A pod was bound after so many attempts, so long after it first entered the queue.
    pub fn bound(&self, attempts: u32, since_first: Duration, flushed: bool) {
        /// More share one label.
        const MOST: u32 = 15;
        let label = if attempts >= MOST { "15+".to_owned() } else { attempts.to_string() };
        self.sli_duration.with(&[&label]).observe(since_first.as_secs_f64());
        self.pod_attempts.with(&[]).observe(f64::from(attempts));
        if flushed {
            self.after_flush.with(&[]).inc();
        }
    }

    /// A pod entered a queue.
    pub fn incoming(&self, queue: &str, event: &str) {
        self.incoming.with(&[queue, event]).inc();
    }

    /// How many pods wait.
    #[expect(clippy::cast_precision_loss, reason = "numbers of pods are small")]
    pub(crate) fn pending(&self, by_queue: [(&str, usize); 4]) {
        for (queue, pods) in by_queue {
            self.pending.with(&[queue]).set(pods as f64);
        }
    }

    /// A pod that a plugin rejected entered the queue (1), or left it (-1).
    pub(crate) fn rejected(&self, plugin: &str, profile: &str, step: f64) {
        self.unschedulable.with(&[plugin, profile]).add(step);
    }

    /// A search for pods to evict.
    pub fn preemption(&self) {
        self.preemption_attempts.with(&[]).inc();
    }

    /// Pods will be evicted.
    #[expect(clippy::cast_precision_loss, reason = "numbers of pods are small")]
    pub fn victims(&self, count: usize) {
        self.preemption_victims.with(&[]).observe(count as f64);
    }

    /// What a preemptor asked for was carried out, or could not be.
    pub(crate) fn preempted(&self, is_done: bool, took: Duration) {
        let result = if is_done { "success" } else { "error" };
        self.preemptions.with(&[result]).inc();
        self.preemption_duration.with(&[result]).observe(took.as_secs_f64());
    }

    /// Pods that wait were told of an event.
    pub(crate) fn event_handled(&self, event: &str, took: Duration) {
        self.event_handling.with(&[event]).observe(took.as_secs_f64());
    }

    /// An event begins to be kept for pods in flight (1), or ends to (-1).
    pub(crate) fn in_flight(&self, event: &str, step: f64) {
        self.in_flight.with(&[event]).add(step);
    }

    /// How much the cache holds.
    #[expect(clippy::cast_precision_loss, reason = "numbers of objects are small")]
    pub fn cache(&self, size: CacheSize) {
        for (kind, count) in [("nodes", size.nodes), ("pods", size.pods), ("assumed_pods", size.assumed)] {
            self.cache_size.with(&[kind]).set(count as f64);
        }
    }
}
