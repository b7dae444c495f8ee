//! The way out when no node fits: the post-filters' look at many nodes, beside the scheduling loop. It sees the cluster as
//! the decision saw it; what it finds is looked at again in the present, with no decision in between, before anything
//! follows from it.

use std::sync::Arc;

use api_machinery::time::Time;
use tokio::time::Instant;

use super::failure::Failure;
use super::group_preemption::GroupSearch;
use super::{Pass, ScheduleResult, Scheduler};
use crate::cache::Snapshot;
use crate::framework::{
    Candidate, Code, CycleCx, CycleState, Diagnosis, Nomination, PostFilterCx, PostFiltered, Profile, Status,
};
use crate::pod_info::{NominatedPods, PodInfo};
use crate::preemption::PREFIX;
use crate::preemption::execute::Preemptor;
use crate::queued_pod::QueuedPod;

/// Searches under way at once. The loop waits when there are more: each holds a copy of the cluster.
pub(super) const MAX_SEARCHES: usize = 16;
/// Candidates that are looked at again, as far as the ones before do not hold any more.
const MAX_SECOND_LOOKS: usize = 16;

/// What is looked for beside the loop.
pub(crate) enum Searching {
    /// The way out for a pod.
    Pod(Box<Search>),
    /// Others that can go for a group of pods.
    Group(Box<GroupSearch>),
}

impl Searching {
    /// Searches; all pods are back in the queue when this returns.
    pub(super) async fn run(self) -> Vec<ScheduleResult> {
        let group = match self {
            Self::Pod(search) => return vec![search.run().await],
            Self::Group(search) => search,
        };
        let mut results = Vec::new();
        for mut result in group.run().await {
            // What a pod of the group could do on its own.
            match result.search.take() {
                Some(Self::Pod(search)) => results.push(search.run().await),
                _ => results.push(result),
            }
        }
        results
    }
}

/// A pod that fits nowhere, and all that a search has to go by.
pub(crate) struct Search {
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) profile: Arc<Profile>,
    pub(super) pod: QueuedPod,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) nominated: Arc<NominatedPods>,
    pub(super) state: CycleState,
    pub(super) diagnosis: Diagnosis,
    pub(super) started: Instant,
}

impl Search {
    /// Searches; the pod is back in the queue when this returns.
    pub(super) async fn run(self) -> ScheduleResult {
        let scheduler = Arc::clone(&self.scheduler);
        let began = scheduler.clock.monotonic();
        let found = {
            let now = Time::from(scheduler.clock.wall());
            let cycle = CycleCx { snapshot: &self.snapshot };
            let (diagnosis, nominated) = (&self.diagnosis, &*self.nominated);
            let cx = PostFilterCx { cycle, profile: &self.profile, diagnosis, nominated, rng: &scheduler.rng, now };
            self.profile.run_post_filters(cx, &self.state, &self.pod.info).await
        };
        let took = scheduler.clock.monotonic().saturating_duration_since(began);
        let label = found.status.as_ref().map_or("Success", |status| status.code.name());
        scheduler.metrics.point("PostFilter", &self.profile.name, label, took);
        if scheduler.evicts_beside {
            scheduler.finish(self, found)
        } else {
            scheduler.finish_at_once(self, found).await
        }
    }
}

impl Scheduler {
    /// Puts the pod back and starts what was found, if that still holds.
    fn finish(self: &Arc<Self>, search: Search, found: PostFiltered) -> ScheduleResult {
        let mut pass = self.pass.lock();
        let confirmed = self.confirm(&mut pass, &search, &found.candidates);
        let info = Arc::clone(&search.pod.info);
        let waits = self.is_waiting(&info);
        let mut outcome = self.put_back_with(search, found, confirmed.as_ref());
        outcome.preemption =
            confirmed.filter(|_| waits).and_then(|candidate| self.preempt(Preemptor::Pod(info), candidate));
        outcome
    }

    /// Evicts those who were found, if that still holds, before the pod is put back.
    async fn finish_at_once(self: &Arc<Self>, search: Search, mut found: PostFiltered) -> ScheduleResult {
        let info = Arc::clone(&search.pod.info);
        let mut confirmed = {
            let mut pass = self.pass.lock();
            let confirmed = self.confirm(&mut pass, &search, &found.candidates);
            // Nobody else is to take the room meanwhile.
            if let Some(candidate) = &confirmed {
                self.queue.nominator().set(&info, &candidate.node);
            }
            confirmed
        };
        if let Some(candidate) = confirmed.clone().filter(|_| self.is_waiting(&info))
            && let Err(status) = self.preempt_now(Preemptor::Pod(Arc::clone(&info)), candidate).await
        {
            self.queue.nominator().remove(info.uid());
            let status = Status::error(format!("{PREFIX}{}", status.message()));
            found = PostFiltered { nomination: Nomination::Keep, candidates: Vec::new(), status: Some(status) };
            confirmed = None;
        }
        self.put_back_with(search, found, confirmed.as_ref())
    }

    /// Puts the pod back, with the node of the candidate in mind that was found and holds.
    fn put_back_with(&self, search: Search, found: PostFiltered, confirmed: Option<&Candidate>) -> ScheduleResult {
        let Search { profile, pod, mut diagnosis, started, .. } = search;
        if let Some(status) = &found.status {
            diagnosis.post_filter_message = status.message();
            if status.code == Code::Error {
                tracing::error!(error = %status, pod = %pod.info.full_name(), "Status after running PostFilter plugins for pod");
            }
        }
        let outdated = confirmed.is_none() && !found.candidates.is_empty();
        let nomination = match confirmed {
            Some(candidate) => Nomination::Set(candidate.node.to_string()),
            None if outdated => Nomination::Clear,
            None => found.nomination,
        };
        let mut failure = Failure::no_fit(diagnosis);
        if outdated {
            failure = failure.passing();
        }
        ScheduleResult::of(self.failed(pod, &profile, failure, nomination, started))
    }

    /// The best candidate that is one in the present too.
    fn confirm(&self, pass: &mut Pass, search: &Search, candidates: &[Candidate]) -> Option<Candidate> {
        let best = candidates.first()?;
        self.refresh(pass);
        let nominated = self.queue.nominator().pods();
        if Arc::ptr_eq(&pass.snapshot, &search.snapshot) && Arc::ptr_eq(&nominated, &search.nominated) {
            return Some(best.clone());
        }
        let cycle = CycleCx { snapshot: &pass.snapshot };
        let (mut state, mut diagnosis) = (CycleState::default(), Diagnosis::default());
        let (profile, pod) = (&*search.profile, &*search.pod.info);
        profile.run_pre_filter(cycle, &mut state, pod, &mut diagnosis).ok()?;
        let now = Time::from(self.clock.wall());
        let (diagnosis, nominated) = (&diagnosis, &*nominated);
        let cx = PostFilterCx { cycle, profile, diagnosis, nominated, rng: &self.rng, now };
        for candidate in candidates.iter().take(MAX_SECOND_LOOKS) {
            let Some(node) = cycle.snapshot.by_name(&candidate.node) else { continue };
            let waiting = nominated.get(&*candidate.node).map(Vec::as_slice).unwrap_or_default();
            if profile.run_filters_with_nominated(&state, pod, node, waiting).is_ok() {
                // There is room now: nobody has to go.
                return None;
            }
            if let Some(confirmed) = profile.run_second_look(cx, &state, pod, candidate) {
                return Some(confirmed);
            }
        }
        None
    }

    /// Whether the pod is still there and without a node.
    pub(super) fn is_waiting(&self, info: &PodInfo) -> bool {
        let meta = &info.pod.metadata;
        let newest = self.pods.find(&meta.namespace, &meta.name);
        newest.is_some_and(|newest| newest.metadata.uid == meta.uid && newest.spec.node_name.is_empty())
    }
}
