//! The scheduler itself: one pod at a time gets a node, and is bound beside.
//!
//! [`Scheduler::schedule_one`] makes a decision and needs neither a client nor a runtime; what is to be written comes
//! back as [`Work`], which the loop runs as a task. So does the search for pods to evict, which may take a while.

mod algorithm;
mod binding;
mod failure;
mod handlers;
mod search;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{CancellationToken, SharedClock, SharedRng, TaskGroup};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

pub use binding::BindingCycle;
pub use failure::StatusWrite;

use crate::cache::{Cache, Snapshot};
use crate::framework::{CycleCx, Nomination, Profile, Status};
use crate::known_answers::KnownAnswers;
use crate::listers::Listers;
use crate::metrics::SchedulerMetrics;
use crate::parallel::Parallelism;
use crate::pod_info::PodInfo;
use crate::pod_shape::PodShape;
use crate::preemption::PreemptionGate;
use crate::preemption::execute::Execution;
use crate::queue::{QueueOptions, QueuedPod, SchedulingQueue};
use crate::writer::{ClusterWriter, EventSink, PodEvent, Severity};
use algorithm::{Decision, NoFit};
use failure::Failure;
use search::{MAX_SEARCHES, Search};

/// Bindings and status writes under way at once; the loop waits when there are more. A pod that waits for something else
/// before it is bound, such as a volume, does not count: it holds its room on the node, and nobody up.
const MAX_WRITES: usize = 1000;
/// How often the size of the cache is published.
const CACHE_SIZE_PERIOD: Duration = Duration::from_secs(1);

/// What a scheduler is made of.
pub struct Parts {
    /// One for each scheduler name; at least one.
    pub profiles: Vec<Arc<Profile>>,
    /// Share of nodes to find feasible, for profiles that do not say; 0 adapts.
    pub percentage_of_nodes_to_score: i32,
    /// The threads that one decision may use.
    pub parallelism: Parallelism,
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
    parallelism: Parallelism,
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
    writes: Arc<Semaphore>,
    searches: Arc<Semaphore>,
}

/// What one cycle leaves to the next.
#[derive(Default)]
struct Pass {
    snapshot: Arc<Snapshot>,
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
    /// Writes. `turn` is one of the places of those who write.
    async fn run(self, turn: Option<OwnedSemaphorePermit>) {
        match self {
            Self::Bind(cycle) => cycle.run(turn).await,
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
    /// Where no node fits, the search for pods to evict; nothing is written before it has ended.
    pub(crate) search: Option<Box<Search>>,
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
            parallelism: parts.parallelism,
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
            writes: Arc::new(Semaphore::new(MAX_WRITES)),
            searches: Arc::new(Semaphore::new(MAX_SEARCHES)),
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
        while let Some(pod) = self.queue.pop(&stop).await {
            let Ok(turn) = Arc::clone(&self.writes).acquire_owned().await else { return };
            let mut outcome = self.schedule_one(pod);
            let Some(search) = outcome.search.take() else {
                tasks.spawn_cancellable("binding", async move { outcome.write(Some(turn)).await });
                continue;
            };
            drop(turn);
            let Ok(place) = Arc::clone(&self.searches).acquire_owned().await else { return };
            let writes = Arc::clone(&self.writes);
            tasks.spawn_cancellable("post-filter", async move {
                let outcome = search.run().await;
                drop(place);
                outcome.write(writes.acquire_owned().await.ok()).await;
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
        self.refresh(pass);
        let cx = CycleCx { snapshot: &pass.snapshot, listers: &*self.listers };
        let nominated = self.queue.nominator().pods();
        let percentage = profile.percentage_of_nodes_to_score.unwrap_or(self.percentage);
        let mut known = pass.known.take(&profile.name, PodShape::of(&pod.info), pass.snapshot.len());
        let (rng, metrics, parallelism) = (&*self.rng, &*self.metrics, self.parallelism);
        let search =
            algorithm::Search { profile: &profile, cx, nominated: &nominated, percentage, parallelism, rng, metrics };
        let found = search.find(&pod.info, &mut pass.start, &mut known);
        pass.known.put(known, rng);
        let outcome = match found {
            Ok(decision) => self.assume(pod, &profile, decision, started),
            Err(NoFit::Nowhere { diagnosis, .. }) if profile.post_filter.is_empty() => {
                Outcome::of(self.failed(pod, &profile, Failure::no_fit(*diagnosis), Nomination::Clear, started))
            }
            Err(NoFit::Nowhere { state, diagnosis }) => {
                let (scheduler, snapshot, diagnosis) = (Arc::clone(self), Arc::clone(&pass.snapshot), *diagnosis);
                let search = Search { scheduler, profile, pod, snapshot, nominated, state, diagnosis, started };
                Outcome { search: Some(Box::new(search)), ..Outcome::default() }
            }
            Err(NoFit::Failed(status)) => {
                Outcome::of(self.failed(pod, &profile, Failure::of(&status), Nomination::Clear, started))
            }
        };
        self.metrics.decided(self.clock.monotonic().saturating_duration_since(started));
        outcome
    }

    /// Brings the snapshot up to date; one that a search still looks at stays as it is.
    fn refresh(&self, pass: &mut Pass) {
        if self.cache.has_news() {
            self.cache.update_snapshot(Arc::make_mut(&mut pass.snapshot));
        }
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
        Outcome { node: Some(node), work: Some(Work::Bind(Box::new(cycle))), ..Outcome::default() }
    }

    fn forget(&self, info: &PodInfo) {
        if let Err(error) = self.cache.forget(info.uid()) {
            tracing::error!(%error, pod = %info.full_name(), "Scheduler cache forget pod failed");
        }
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
        Self { work: Some(Work::Status(Box::new(write))), ..Self::default() }
    }

    /// Searches for a way out, where no node fits, and writes what is to be written.
    pub async fn finish(self) {
        let outcome = match self.search {
            Some(search) => search.run().await,
            None => self,
        };
        outcome.write(None).await;
    }

    /// Writes what is to be written: evictions beside the pod's own status.
    async fn write(self, turn: Option<OwnedSemaphorePermit>) {
        let work = async {
            if let Some(work) = self.work {
                work.run(turn).await;
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
