//! The scheduler itself: one pod at a time gets a node, and is bound beside.
//!
//! [`Scheduler::schedule_one`] makes a decision and needs neither a client nor a runtime; what is to be written comes
//! back as [`Work`], which the loop runs as a task.

mod algorithm;
mod binding;
mod failure;
mod handlers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use base::{CancellationToken, SharedClock, SharedRng, TaskGroup};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use binding::BindingCycle;
pub use failure::StatusWrite;

use crate::cache::{Cache, Snapshot};
use crate::framework::{Code, CycleCx, Diagnosis, Nomination, PostFilterCx, Profile, Status};
use crate::known_answers::KnownAnswers;
use crate::listers::Listers;
use crate::metrics::SchedulerMetrics;
use crate::pod_info::PodInfo;
use crate::pod_shape::PodShape;
use crate::preemption::PreemptionGate;
use crate::preemption::execute::Execution;
use crate::queue::{QueueOptions, QueuedPod, SchedulingQueue};
use crate::writer::{ClusterWriter, EventSink, PodEvent, Severity};
use algorithm::{Decision, NoFit};
use failure::Failure;

/// Bindings and status writes under way at once; the loop waits when there are more.
const MAX_WRITES: usize = 1000;
/// How often the size of the cache is published.
const CACHE_SIZE_PERIOD: Duration = Duration::from_secs(1);

/// What a scheduler is made of.
pub struct Parts {
    /// One for each scheduler name; at least one.
    pub profiles: Vec<Arc<Profile>>,
    /// Share of nodes to find feasible, for profiles that do not say; 0 adapts.
    pub percentage_of_nodes_to_score: i32,
    /// Delays of the queue.
    pub queue: QueueOptions,
    /// Other objects.
    pub listers: Arc<dyn Listers>,
    /// Where bindings and statuses go.
    pub writer: Arc<dyn ClusterWriter>,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
    /// Metrics.
    pub metrics: Arc<SchedulerMetrics>,
    /// Preemptions under way; the same that the plugins were built with.
    pub gate: Arc<PreemptionGate>,
    /// Time.
    pub clock: SharedClock,
    /// Randomness.
    pub rng: SharedRng,
}

/// Decides where pods run.
pub struct Scheduler {
    profiles: BTreeMap<String, Arc<Profile>>,
    percentage: i32,
    cache: Cache,
    queue: Arc<SchedulingQueue>,
    listers: Arc<dyn Listers>,
    writer: Arc<dyn ClusterWriter>,
    events: Arc<dyn EventSink>,
    metrics: Arc<SchedulerMetrics>,
    gate: Arc<PreemptionGate>,
    clock: SharedClock,
    rng: SharedRng,
    pass: Mutex<Pass>,
}

/// What one cycle leaves to the next.
#[derive(Default)]
struct Pass {
    snapshot: Snapshot,
    /// Where the next look at the nodes begins.
    start: usize,
    known: KnownAnswers,
}

/// What a decision leaves to be written.
pub enum Work {
    /// Bind the pod.
    Bind(Box<BindingCycle>),
    /// Tell why the pod could not be scheduled.
    Status(Box<StatusWrite>),
}

impl Work {
    /// Writes.
    pub async fn run(self) {
        match self {
            Self::Bind(cycle) => cycle.run().await,
            Self::Status(write) => write.run().await,
        }
    }
}

/// What a decision came to.
#[derive(Default)]
pub struct Outcome {
    /// The node that was chosen.
    pub node: Option<Arc<str>>,
    /// What is to be written for the pod; none when it was skipped.
    pub work: Option<Work>,
    /// Evictions to carry out.
    pub(crate) preemption: Option<Execution>,
}

impl Scheduler {
    /// A scheduler; none without a profile.
    #[must_use]
    pub fn new(parts: Parts) -> Option<Arc<Self>> {
        let metrics = Arc::clone(&parts.metrics);
        let queue = SchedulingQueue::new(&parts.profiles, parts.queue, Arc::clone(&parts.clock), metrics)?;
        Some(Arc::new(Self {
            profiles: parts.profiles.into_iter().map(|profile| (profile.name.clone(), profile)).collect(),
            percentage: parts.percentage_of_nodes_to_score,
            cache: Cache::new(),
            queue: Arc::new(queue),
            listers: parts.listers,
            writer: parts.writer,
            events: parts.events,
            metrics: parts.metrics,
            gate: parts.gate,
            clock: parts.clock,
            rng: parts.rng,
            pass: Mutex::default(),
        }))
    }

    /// What the scheduler believes of the cluster.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The pods that wait.
    #[must_use]
    pub fn queue(&self) -> &Arc<SchedulingQueue> {
        &self.queue
    }

    /// Whether a profile serves pods of this scheduler name.
    #[must_use]
    pub fn serves(&self, scheduler_name: &str) -> bool {
        self.profiles.contains_key(scheduler_name)
    }

    /// Schedules pods until `stop` is cancelled. Bindings under way go on in `tasks`.
    pub async fn run(self: Arc<Self>, tasks: TaskGroup, stop: CancellationToken) {
        let (queue, until) = (Arc::clone(&self.queue), stop.clone());
        tasks.spawn("scheduling-queue", async move { queue.run(until).await });
        let (sizes, until) = (Arc::clone(&self), stop.clone());
        tasks.spawn("scheduler-cache-size", async move { sizes.publish_sizes(until).await });
        let writes = Arc::new(Semaphore::new(MAX_WRITES));
        while let Some(pod) = self.queue.pop(&stop).await {
            let Ok(permit) = Arc::clone(&writes).acquire_owned().await else { return };
            let outcome = self.schedule_one(pod);
            tasks.spawn_cancellable("binding", async move {
                outcome.finish().await;
                drop(permit);
            });
        }
    }

    async fn publish_sizes(&self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(CACHE_SIZE_PERIOD);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = ticks.tick() => self.metrics.cache(self.cache.size()),
            }
        }
    }

    /// Decides for one pod that was taken from the queue. The choice is in the cache when this returns.
    pub fn schedule_one(self: &Arc<Self>, pod: QueuedPod) -> Outcome {
        let started = self.clock.monotonic();
        let Some(profile) = self.profiles.get(&pod.info.pod.spec.scheduler_name).map(Arc::clone) else {
            self.queue.done(pod.info.uid());
            return Outcome::default();
        };
        if self.is_to_skip(&profile, &pod.info) {
            self.queue.done(pod.info.uid());
            return Outcome::default();
        }
        let mut pass = self.pass.lock();
        let pass = &mut *pass;
        self.cache.update_snapshot(&mut pass.snapshot);
        let cx = CycleCx { snapshot: &pass.snapshot, listers: &*self.listers };
        let nominated = self.queue.nominator().pods();
        let percentage = profile.percentage_of_nodes_to_score.unwrap_or(self.percentage);
        let mut known = pass.known.take(&profile.name, PodShape::of(&pod.info), pass.snapshot.len());
        let (rng, metrics) = (&*self.rng, &*self.metrics);
        let found = algorithm::Search { profile: &profile, cx, nominated: &nominated, percentage, rng, metrics }.find(
            &pod.info,
            &mut pass.start,
            &mut known,
        );
        pass.known.put(known);
        let outcome = match found {
            Ok(decision) => self.assume(pod, &profile, decision, started),
            Err(NoFit::Nowhere { state, diagnosis }) => {
                self.post_filter(pod, &profile, cx, &state, *diagnosis, &nominated, started)
            }
            Err(NoFit::Failed(status)) => {
                Outcome::of(self.failed(pod, &profile, Failure::of(&status), Nomination::Clear, started))
            }
        };
        self.metrics.decided(self.clock.monotonic().saturating_duration_since(started));
        outcome
    }

    /// Pods that are being deleted, or have a node already, are not scheduled.
    fn is_to_skip(&self, profile: &Profile, info: &PodInfo) -> bool {
        if info.is_terminating() {
            self.events.event(&PodEvent {
                scheduler: &profile.name,
                about: &info.pod,
                related: None,
                severity: Severity::Warning,
                reason: "FailedScheduling",
                action: "Scheduling",
                note: format!("skip schedule deleting pod: {}", info.full_name()),
            });
            return true;
        }
        self.cache.is_assumed(info.uid())
    }

    /// Takes the choice into the cache, so that the next decision counts with it.
    fn assume(
        self: &Arc<Self>,
        pod: QueuedPod,
        profile: &Arc<Profile>,
        decision: Decision,
        started: Instant,
    ) -> Outcome {
        let Decision { node, mut state } = decision;
        if let Err(error) = self.cache.assume(&pod.info, &node) {
            let failure = Failure::of(&Status::error(error.to_string()));
            return Outcome::of(self.failed(pod, profile, failure, Nomination::Clear, started));
        }
        self.queue.nominator().remove(pod.info.uid());
        let reserve = || profile.run_reserve(&mut state, &pod.info, &node);
        if let Err(status) = self.metrics.timed("Reserve", &profile.name, reserve) {
            profile.run_unreserve(&state, &pod.info, &node);
            self.forget(&pod.info);
            let failure = Failure::of_chosen(&status);
            return Outcome::of(self.failed(pod, profile, failure, Nomination::Clear, started));
        }
        let cycle = BindingCycle::new(Arc::clone(self), Arc::clone(profile), pod, Arc::clone(&node), state, started);
        Outcome { node: Some(node), work: Some(Work::Bind(Box::new(cycle))), preemption: None }
    }

    fn forget(&self, info: &PodInfo) {
        if let Err(error) = self.cache.forget(info.uid()) {
            tracing::error!(%error, pod = %info.full_name(), "Scheduler cache forget pod failed");
        }
    }

    /// No node fits: the post-filters look for a way out.
    #[expect(clippy::too_many_arguments, reason = "the parts of one cycle, used here only")]
    fn post_filter(
        self: &Arc<Self>,
        pod: QueuedPod,
        profile: &Arc<Profile>,
        cycle: CycleCx<'_>,
        state: &crate::framework::CycleState,
        mut diagnosis: Diagnosis,
        nominated: &crate::queue::NominatedPods,
        started: Instant,
    ) -> Outcome {
        if profile.post_filter.is_empty() {
            let failure = Failure::no_fit(diagnosis);
            return Outcome::of(self.failed(pod, profile, failure, Nomination::Clear, started));
        }
        let now = Time::from(self.clock.wall());
        let cx = PostFilterCx { cycle, profile, diagnosis: &diagnosis, nominated, rng: &self.rng, now };
        let began = self.clock.monotonic();
        let found = profile.run_post_filters(cx, state, &pod.info);
        let took = self.clock.monotonic().saturating_duration_since(began);
        let code = found.status.as_ref().map(|status| status.code);
        self.metrics.point("PostFilter", &profile.name, code, took);
        if let Some(status) = &found.status {
            diagnosis.post_filter_message = status.message();
            if status.code == Code::Error {
                tracing::error!(error = %status, pod = %pod.info.full_name(), "Status after running PostFilter plugins for pod");
            }
        }
        let info = Arc::clone(&pod.info);
        let mut outcome = Outcome::of(self.failed(pod, profile, Failure::no_fit(diagnosis), found.nomination, started));
        outcome.preemption = found.preemption.and_then(|candidate| self.preempt(info, candidate));
        outcome
    }

    fn preempt(&self, preemptor: Arc<PodInfo>, candidate: crate::preemption::Candidate) -> Option<Execution> {
        self.metrics.victims(candidate.victims.len());
        let mut execution = Execution {
            writer: Arc::clone(&self.writer),
            events: Arc::clone(&self.events),
            queue: Arc::clone(&self.queue),
            gate: Arc::clone(&self.gate),
            clock: Arc::clone(&self.clock),
            preemptor,
            candidate,
        };
        execution.prepare().then_some(execution)
    }
}

impl Outcome {
    fn of(write: StatusWrite) -> Self {
        Self { node: None, work: Some(Work::Status(Box::new(write))), preemption: None }
    }

    /// Writes what is to be written: evictions beside the pod's own status.
    pub async fn finish(self) {
        let work = async {
            if let Some(work) = self.work {
                work.run().await;
            }
        };
        let preemption = async {
            if let Some(execution) = self.preemption {
                execution.run().await;
            }
        };
        tokio::join!(work, preemption);
    }
}
