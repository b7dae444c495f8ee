//! The scheduler itself: one pod at a time gets a node, and is bound beside.
//!
//! [`Scheduler::schedule_one`] makes a decision and needs neither a client nor a runtime; what is to be written comes
//! back as [`Work`], which the loop runs as a task. So does the search for pods to evict, which may take a while.

mod algorithm;
mod batching;
#[cfg(test)]
mod batching_tests;
mod binding;
#[cfg(test)]
mod extender_tests;
mod failure;
mod group;
mod group_placement;
#[cfg(test)]
mod group_placement_tests;
mod group_preemption;
#[cfg(test)]
mod group_tests;
mod handlers;
mod inquiry;
#[cfg(test)]
mod metrics_tests;
#[cfg(test)]
mod permit_tests;
#[cfg(test)]
mod pre_bind_tests;
mod search;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use api_types::policy_v1::PodDisruptionBudget;
use api_types::scheduling_v1alpha2::PodGroup;
use base::{CancellationToken, SharedClock, SharedRng, TaskGroup};
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

pub use binding::BindingCycle;
pub(crate) use binding::NODE_EXPECTATION;
pub use failure::StatusWrite;
pub use group::GroupWrite;

use crate::cache::{Cache, Snapshot};
use crate::framework::{
    BuildCx, Candidate, CycleState, GANG_SCHEDULING, GENERIC_WORKLOAD, GROUP_PREEMPTION, GroupKey, Nomination,
    OtherKind, Parked, PodGroups, PreemptionGate, Profile, Resource, Status, TOPOLOGY_AWARE_GROUPS, WaitingPods,
};
use crate::known_answers::{KnownAnswers, ShapeAnswers};
use crate::listers::Lister;
use crate::metrics::SchedulerMetrics;
use crate::parallel::Parallelism;
use crate::plugins;
use crate::pod_info::{NominatedPods, PodInfo};
use crate::pod_shape::PodShape;
use crate::preemption::execute::{ASYNC_PREEMPTION, Execution, Preemptor};
use crate::queue::{QueueOptions, SchedulingQueue};
use crate::queued_pod::QueuedPod;
use crate::writer::{ClusterWriter, EventSink, ObjectWriter, PodEvent, Severity};
use algorithm::{Decision, Look, NoFit};
use batching::Batch;
use failure::Failure;
use inquiry::Inquiry;
use search::{MAX_SEARCHES, Search, Searching};

/// Bindings and status writes under way at once; the loop waits when there are more. A pod that waits for something else
/// before it is bound, such as a volume, does not count: it holds its room on the node, and nobody up.
const MAX_WRITES: usize = 1000;
/// How often the size of the cache is published.
const CACHE_SIZE_PERIOD: Duration = Duration::from_secs(1);

/// What a scheduler is made of.
pub struct SchedulerOptions {
    /// One for each scheduler name; at least one.
    pub profiles: Vec<Arc<Profile>>,
    /// Share of nodes to find feasible, for profiles that do not say; 0 adapts.
    pub percentage_of_nodes_to_score: i32,
    /// Delays of the queue.
    pub queue: QueueOptions,
    /// What the plugins were built with.
    pub cx: BuildCx,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
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
    pods: Lister<Pod>,
    writer: Arc<dyn ClusterWriter>,
    events: Arc<dyn EventSink>,
    metrics: Arc<SchedulerMetrics>,
    gate: Arc<PreemptionGate>,
    waiting: Arc<WaitingPods>,
    objects: Arc<dyn ObjectWriter>,
    groups: Arc<PodGroups>,
    /// Where groups of pods are decided about at once.
    pod_groups: Option<Lister<PodGroup>>,
    /// Whether pods of a gang wait until there are enough of them.
    has_gangs: bool,
    /// Whether a group may be tried in several placements.
    has_placements: bool,
    /// Whether others are told of the node that a pod is about to get.
    tells_expectation: bool,
    /// Whether pods wait in the queue while others are evicted for them, and not before they are back there.
    evicts_beside: bool,
    /// Whom groups had better not evict; none where they evict nobody as one.
    budgets: Option<Lister<PodDisruptionBudget>>,
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
    batch: Batch,
}

impl Pass {
    /// What is known of nodes for pods of this shape; to be given back.
    fn known_for(&mut self, case: &Case) -> ShapeAnswers {
        if !case.profile.is_local_for(&case.pod.info) {
            return ShapeAnswers::default();
        }
        self.known.take(&case.profile.name, PodShape::of(&case.pod.info), case.snapshot.len())
    }
}

/// A pod that is being decided about, and all that the decision goes by.
struct Case {
    pod: QueuedPod,
    profile: Arc<Profile>,
    snapshot: Arc<Snapshot>,
    nominated: Arc<NominatedPods>,
    started: Instant,
}

/// What a decision leaves to be written.
pub enum Work {
    /// Bind the pod.
    Bind(Box<BindingCycle>),
    /// Tell why the pod could not be scheduled.
    Status(Box<StatusWrite>),
    /// Tell what became of a group of pods.
    Group(Box<GroupWrite>),
}

impl Work {
    /// Writes. `turn` is one of the places of those who write.
    async fn run(self, turn: Option<OwnedSemaphorePermit>) {
        match self {
            Self::Bind(cycle) => cycle.run(turn).await,
            Self::Status(write) => write.run().await,
            Self::Group(write) => write.run().await,
        }
    }
}

/// What a decision came to.
#[derive(Default)]
pub struct ScheduleResult {
    /// The node that was chosen.
    pub node: Option<Arc<str>>,
    /// What is to be written for the pod; none when it was skipped.
    pub work: Option<Work>,
    /// Where remote plugins have a say, the decision that waits for them; nothing else is there before it is made.
    pub(crate) inquiry: Option<Box<Inquiry>>,
    /// Where no node fits, the search for pods to evict; nothing is written before it has ended.
    pub(crate) search: Option<Searching>,
    /// Evictions to carry out.
    pub(crate) preemption: Option<Execution>,
}

impl Scheduler {
    /// A scheduler; none without a profile.
    #[must_use]
    pub fn new(parts: SchedulerOptions) -> Option<Arc<Self>> {
        let BuildCx { listers, gates, writer, objects, gate, waiting, groups, metrics, parallelism, .. } = parts.cx;
        let (clock, metrics_of_queue) = (Arc::clone(&parts.clock), Arc::clone(&metrics));
        let queue = SchedulingQueue::new(&parts.profiles, parts.queue, &gates, clock, metrics_of_queue)?;
        Some(Arc::new(Self {
            profiles: parts.profiles.into_iter().map(|profile| (profile.name.clone(), profile)).collect(),
            percentage: parts.percentage_of_nodes_to_score,
            parallelism,
            cache: Cache::obeying(&gates),
            queue: Arc::new(queue),
            pods: listers.of(),
            writer,
            events: parts.events,
            metrics,
            gate,
            waiting,
            objects,
            groups,
            pod_groups: gates.enabled(GENERIC_WORKLOAD).then(|| listers.of()),
            has_gangs: gates.enabled(GANG_SCHEDULING),
            has_placements: gates.enabled(TOPOLOGY_AWARE_GROUPS),
            tells_expectation: gates.enabled(NODE_EXPECTATION),
            evicts_beside: gates.enabled(ASYNC_PREEMPTION),
            budgets: gates.enabled(GROUP_PREEMPTION).then(|| listers.of()),
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

    /// The kinds of objects besides pods and nodes that its plugins want to hear of.
    #[must_use]
    pub(crate) fn other_kinds(&self) -> HashSet<OtherKind> {
        let registrations = self.profiles.values().flat_map(|profile| &profile.registrations);
        let other = registrations.filter_map(|(_, registration)| match registration.resource {
            Resource::Other(kind) => Some(kind),
            _ => None,
        });
        other.collect()
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
            let mut turn = Some(turn);
            for mut outcome in self.schedule_next(pod) {
                if let Some(inquiry) = outcome.inquiry.take() {
                    outcome = tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        outcome = inquiry.run() => outcome,
                    };
                }
                if self.hand_over(outcome, turn.take(), &tasks).await.is_none() {
                    return;
                }
            }
        }
    }

    /// Waits until nothing is being written. Pods that wait for something else than the API server are not waited for.
    pub async fn writes_end(&self) {
        let all = u32::try_from(MAX_WRITES).unwrap_or(u32::MAX);
        // It is never closed; and where it were, nobody would write.
        let _ = self.writes.acquire_many(all).await;
    }

    /// Lets others write what is to be written, or search first; none when the scheduler ends. `turn` is one of the places of
    /// those who write, where there is one already.
    async fn hand_over(
        &self,
        mut outcome: ScheduleResult,
        turn: Option<OwnedSemaphorePermit>,
        tasks: &TaskGroup,
    ) -> Option<()> {
        let Some(search) = outcome.search.take() else {
            let turn = match turn {
                Some(turn) => turn,
                None => Arc::clone(&self.writes).acquire_owned().await.ok()?,
            };
            tasks.spawn_cancellable("binding", async move { outcome.write(Some(turn)).await });
            return Some(());
        };
        drop(turn);
        let place = Arc::clone(&self.searches).acquire_owned().await.ok()?;
        let writes = Arc::clone(&self.writes);
        tasks.spawn_cancellable("post-filter", async move {
            let outcomes = search.run().await;
            drop(place);
            // As many as there are pods in a group, and each has its turn.
            join_all(outcomes.into_iter().map(|outcome| {
                let turn = Arc::clone(&writes).acquire_owned();
                async { outcome.write(turn.await.ok()).await }
            }))
            .await;
        });
        Some(())
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
    pub fn schedule_one(self: &Arc<Self>, pod: QueuedPod) -> ScheduleResult {
        let started = self.clock.monotonic();
        let Some(profile) = self.profiles.get(&pod.info.pod.spec.scheduler_name).map(Arc::clone) else {
            self.queue.done(pod.info.uid());
            return ScheduleResult::default();
        };
        if self.is_to_skip(&profile, &pod.info) {
            self.queue.done(pod.info.uid());
            return ScheduleResult::default();
        }
        let mut pass = self.pass.lock();
        let pass = &mut *pass;
        if profile.asks_remotely(&pod.info) {
            let case = self.case(pass, pod, profile, started);
            let mut known = pass.known_for(&case);
            let (search, info) = (self.search_of(&case), &case.pod.info);
            let found = search.feasible(info, Look::NominatedFirst, &mut pass.start, &mut known, &mut |_| None);
            pass.known.put(known, &self.rng);
            let feasible = match found {
                Ok(feasible) => feasible.into(),
                Err(no_fit) => return self.conclude(case, Err(no_fit)),
            };
            let inquiry = Inquiry::new(Arc::clone(self), case, feasible);
            return ScheduleResult { inquiry: Some(Box::new(inquiry)), ..ScheduleResult::default() };
        }
        let (case, found) = self.look_for(pass, pod, profile, started);
        self.conclude(case, found)
    }

    /// What a decision goes by: the cluster as it is now.
    fn case(&self, pass: &mut Pass, pod: QueuedPod, profile: Arc<Profile>, started: Instant) -> Case {
        pass.batch.begin();
        self.refresh(pass);
        let (snapshot, nominated) = (Arc::clone(&pass.snapshot), self.queue.nominator().pods());
        Case { pod, profile, snapshot, nominated, started }
    }

    /// Finds the node for a pod that nobody is asked about remotely.
    fn look_for(
        &self,
        pass: &mut Pass,
        pod: QueuedPod,
        profile: Arc<Profile>,
        started: Instant,
    ) -> (Case, Result<Decision, NoFit>) {
        let case = self.case(pass, pod, profile, started);
        let mut known = pass.known_for(&case);
        let found = self.search_of(&case).find(&case.pod.info, &mut pass.start, &mut known, &mut pass.batch, started);
        pass.known.put(known, &self.rng);
        (case, found)
    }

    /// Takes the choice, or says why there is none.
    fn conclude(self: &Arc<Self>, case: Case, found: Result<Decision, NoFit>) -> ScheduleResult {
        let Case { pod, profile, snapshot, nominated, started } = case;
        let outcome = match found {
            Ok(decision) => self.assume(pod, &profile, decision, started),
            Err(NoFit::Nowhere { diagnosis, .. }) if profile.post_filter.is_empty() => {
                ScheduleResult::of(self.failed(pod, &profile, Failure::no_fit(*diagnosis), Nomination::Clear, started))
            }
            Err(NoFit::Nowhere { state, diagnosis }) => {
                let (scheduler, diagnosis) = (Arc::clone(self), *diagnosis);
                let search = Search { scheduler, profile, pod, snapshot, nominated, state, diagnosis, started };
                ScheduleResult { search: Some(Searching::Pod(Box::new(search))), ..ScheduleResult::default() }
            }
            Err(NoFit::Failed(status)) => {
                ScheduleResult::of(self.failed(pod, &profile, Failure::of(&status), Nomination::Clear, started))
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

    /// Takes the choice, or says why it does not hold.
    fn assume(
        self: &Arc<Self>,
        pod: QueuedPod,
        profile: &Arc<Profile>,
        decision: Decision,
        started: Instant,
    ) -> ScheduleResult {
        match self.take(pod, profile, decision, started) {
            Ok(cycle) => {
                if let Some(key) =
                    GroupKey::of(&cycle.pod.info.pod).filter(|_| self.has_gangs && cycle.parked.is_some())
                {
                    self.groups.waiting(&key).iter().for_each(|other| self.queue.activate(other));
                }
                ScheduleResult::bound(cycle)
            }
            Err(refused) => {
                let (pod, failure) = *refused;
                ScheduleResult::of(self.failed(pod, profile, failure, Nomination::Clear, started))
            }
        }
    }

    /// Takes the choice into the cache, so that the next decision counts with it.
    fn take(
        self: &Arc<Self>,
        pod: QueuedPod,
        profile: &Arc<Profile>,
        decision: Decision,
        started: Instant,
    ) -> Result<BindingCycle, Box<(QueuedPod, Failure)>> {
        let Decision { node, mut state } = decision;
        if let Err(error) = self.cache.assume(&self.with_claimed(&pod.info, &state, &node), &node) {
            let failure = Failure::of(&Status::error(error.to_string()));
            return Err(Box::new((pod, failure)));
        }
        self.groups.place(&pod.info.pod, true);
        self.queue.nominator().remove(pod.info.uid());
        let reserve = || profile.run_reserve(&mut state, &pod.info, &node);
        let reserved = profile.timed(&self.metrics, "Reserve", reserve);
        let parked = match reserved.and_then(|()| self.permit(profile, &pod.info, &node, &state)) {
            Ok(parked) => parked,
            Err(status) => {
                profile.run_unreserve(&state, &pod.info, &node);
                self.forget(&pod.info);
                let failure = Failure::of_chosen(&status);
                return Err(Box::new((pod, failure)));
            }
        };
        let (scheduler, profile) = (Arc::clone(self), Arc::clone(profile));
        Ok(BindingCycle { scheduler, profile, pod, node, state, parked, started })
    }

    /// A pod as it counts on the node that was chosen for it: with what claims give it there (KEP-5517).
    fn with_claimed(&self, info: &Arc<PodInfo>, state: &CycleState, node: &str) -> Arc<PodInfo> {
        let claimed = plugins::claimed_on(state, node);
        if claimed == info.pod.status.node_allocatable_resource_claim_statuses {
            return Arc::clone(info);
        }
        let mut pod = (*info.pod).clone();
        pod.status.node_allocatable_resource_claim_statuses = claimed;
        self.cache.pod_info(Arc::new(pod))
    }

    /// Asks whether the pod may be bound; where it has to wait first, it begins to.
    fn permit(
        &self,
        profile: &Profile,
        info: &Arc<PodInfo>,
        node: &Arc<str>,
        state: &CycleState,
    ) -> Result<Option<Parked>, Status> {
        let asked = self.clock.monotonic();
        let permitted = profile.run_permit(state, info, node);
        let label = match &permitted {
            Ok(waits) if !waits.is_empty() => "Wait",
            permitted => Status::label(permitted),
        };
        let now = self.clock.monotonic();
        self.metrics.point("Permit", &profile.name, label, now.saturating_duration_since(asked));
        let waits = permitted?;
        Ok((!waits.is_empty()).then(|| self.waiting.park(info, node, &waits, now)))
    }

    fn forget(&self, info: &PodInfo) {
        self.groups.place(&info.pod, false);
        if let Err(error) = self.cache.forget(info.uid()) {
            tracing::error!(%error, pod = %info.full_name(), "Scheduler cache forget pod failed");
        }
    }

    /// What is to be carried out beside, while the preemptor waits in the queue.
    fn preempt(&self, preemptor: Preemptor, candidate: Candidate) -> Option<Execution> {
        self.metrics.victims(candidate.victims.len());
        let mut execution = self.execution(preemptor, candidate);
        execution.prepare().then_some(execution)
    }

    /// Evicts before the preemptor is back in the queue, where preemption is not carried out beside.
    async fn preempt_now(&self, preemptor: Preemptor, candidate: Candidate) -> Result<(), Status> {
        let victims = candidate.victims.len();
        self.execution(preemptor, candidate).run_at_once().await.map_err(|error| Status::error(error.to_string()))?;
        self.metrics.victims(victims);
        Ok(())
    }

    fn execution(&self, preemptor: Preemptor, candidate: Candidate) -> Execution {
        Execution {
            writer: Arc::clone(&self.writer),
            events: Arc::clone(&self.events),
            queue: Arc::clone(&self.queue),
            gate: Arc::clone(&self.gate),
            waiting: Arc::clone(&self.waiting),
            clock: Arc::clone(&self.clock),
            metrics: Arc::clone(&self.metrics),
            preemptor,
            candidate,
        }
    }
}

impl ScheduleResult {
    fn bound(cycle: BindingCycle) -> Self {
        Self { node: Some(Arc::clone(&cycle.node)), work: Some(Work::Bind(Box::new(cycle))), ..Self::default() }
    }

    fn of(write: StatusWrite) -> Self {
        Self { work: Some(Work::Status(Box::new(write))), ..Self::default() }
    }

    /// Waits for those who have a say, searches for a way out, where no node fits, and writes what is to be written.
    pub async fn finish(self) {
        let decided = match self.inquiry {
            Some(inquiry) => inquiry.run().await,
            None => self,
        };
        let outcomes = match decided.search {
            Some(search) => search.run().await,
            None => vec![decided],
        };
        join_all(outcomes.into_iter().map(|outcome| outcome.write(None))).await;
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
