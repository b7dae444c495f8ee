//! A group of pods is decided about at once (KEP-4671): each of its pods that waits gets a node as if the others had theirs,
//! and either enough of them do, or all places are given back, before anybody else is decided about.

use std::cmp::Reverse;
use std::sync::Arc;

use api_machinery::meta::Condition;
use api_machinery::time::Time;
use api_types::scheduling_v1alpha2::PodGroup;
use component_helpers::conditions;
use tokio::time::Instant;

use super::algorithm::{Decision, NoFit};
use super::binding::BindingCycle;
use super::failure::Failure;
use super::{Case, Pass, ScheduleResult, Scheduler, Work};
use crate::framework::{Code, GroupKey, Nomination, Profile, Status};
use crate::metrics::AttemptResult;
use crate::plugins::gang_min_count;
use crate::pod_info::PodInfo;
use crate::preemption::execute::Execution;
use crate::queued_pod::QueuedPod;
use crate::writer::{ObjectWriter, WriteError};

const SCHEDULED: &str = "PodGroupScheduled";
const UNSCHEDULABLE: &str = "pod group is unschedulable";
const WAITING: &str = "pod group is waiting for preemption to complete";
const FOR_OTHERS: &str = "waiting for minCount pods from a gang to be scheduled";

/// How far a group has come.
#[derive(Default)]
struct Trial {
    /// Pods that have a place.
    placed: Vec<BindingCycle>,
    /// Pods that have none, and why.
    unplaced: Vec<(Case, NoFit)>,
    /// Pods whose place was refused.
    refused: Vec<(QueuedPod, Failure)>,
    /// Whether a pod may be bound that has a place, so that all may.
    is_complete: bool,
    /// What went wrong with one of them.
    error: Option<String>,
}

/// A group that has too few places, and its pods, which have none any more and are in no queue yet.
pub(super) struct GivenUp {
    pub(super) key: GroupKey,
    pub(super) profile: Arc<Profile>,
    pub(super) started: Instant,
    /// Pods that had a place.
    back: Vec<QueuedPod>,
    unplaced: Vec<(Case, NoFit)>,
    refused: Vec<(QueuedPod, Failure)>,
    /// Whether places for those that had none would be enough.
    preempts: bool,
    /// How many placements came into question; 0 where none were made up.
    placements: usize,
}

impl GivenUp {
    /// That it cannot be scheduled, as people are told.
    fn message(&self) -> String {
        match self.placements {
            0 => UNSCHEDULABLE.to_owned(),
            count => format!("0/{count} placements are available, first placement status: {UNSCHEDULABLE}"),
        }
    }

    /// All of its pods.
    pub(super) fn members(&self) -> Vec<Arc<PodInfo>> {
        let (back, unplaced) = (self.back.iter(), self.unplaced.iter().map(|(case, _)| &case.pod));
        let all = back.chain(unplaced).chain(self.refused.iter().map(|own| &own.0));
        all.map(|pod| Arc::clone(&pod.info)).collect()
    }
}

/// What an attempt came to, as the group's status tells.
pub(super) struct PodGroupResult {
    pub(super) result: AttemptResult,
    pub(super) message: String,
}

/// The status of a group that is to be written.
pub struct GroupWrite {
    objects: Arc<dyn ObjectWriter>,
    group: Arc<PodGroup>,
    condition: Condition,
}

impl GroupWrite {
    /// Writes it.
    pub(super) async fn run(self) {
        match self.objects.patch_group_status(&self.group, &self.condition).await {
            Ok(()) | Err(WriteError::NotFound(_)) => {}
            Err(error) => {
                let meta = &self.group.metadata;
                tracing::error!(%error, namespace = %meta.namespace, name = %meta.name, "Error updating pod group");
            }
        }
    }
}

impl Scheduler {
    /// Decides for a pod that was taken from the queue, and for those of its group that wait, too. All choices are in the cache
    /// when this returns.
    pub fn schedule_next(self: &Arc<Self>, pod: QueuedPod) -> Vec<ScheduleResult> {
        let key = if self.pod_groups.is_some() { GroupKey::of(&pod.info.pod) } else { None };
        let profile = self.profiles.get(&pod.info.pod.spec.scheduler_name).map(Arc::clone);
        match (key, profile) {
            // Who asks remotely is decided about pod by pod; those of a gang wait for each other.
            (Some(key), Some(profile)) if !profile.asks_remotely(&pod.info) => self.schedule_group(pod, &key, &profile),
            _ => vec![self.schedule_one(pod)],
        }
    }

    fn schedule_group(
        self: &Arc<Self>,
        first: QueuedPod,
        key: &GroupKey,
        profile: &Arc<Profile>,
    ) -> Vec<ScheduleResult> {
        let started = self.clock.monotonic();
        let members = self.members(first, key, profile);
        if members.is_empty() {
            return Vec::new();
        }
        if let Some(other) = differing(&members, profile) {
            let text = format!(
                "all pods in a single pod group should have the same .spec.schedulerName set, got: {:?} and {other:?}",
                profile.name
            );
            return self.all_failed(members, key, profile, &text, started);
        }
        let placed_before = self.groups.size(key).placed;
        // Held to the end: nobody is to count with places that are given back.
        let mut pass = self.pass.lock();
        let chosen = match self.choose_placement(&mut pass, &members, key, profile) {
            Ok(chosen) => chosen,
            Err(status) if status.code == Code::Error => {
                return self.all_failed(members, key, profile, &status.message(), started);
            }
            Err(status) => return self.nowhere_to_go(members, key, profile, &status, started),
        };
        let trial = self.try_all(&mut pass, members, profile, chosen.nodes.as_deref());
        self.metrics.group_decided(self.clock.monotonic().saturating_duration_since(started));
        let (mut results, result) = match &trial.error {
            Some(error) => {
                let error = error.clone();
                (
                    self.failed_with(trial, profile, &error, started),
                    PodGroupResult { result: AttemptResult::Error, message: error },
                )
            }
            None if trial.is_complete => {
                let result = PodGroupResult { result: AttemptResult::Scheduled, message: String::new() };
                (self.taken(trial, profile, started), result)
            }
            None => {
                let group = self.group(key);
                let mut given_up = given_up(trial, key, group.as_deref(), placed_before, profile, started);
                given_up.placements = chosen.placements;
                return self.make_room(&mut pass, given_up, group, placed_before);
            }
        };
        results.extend(self.told(key, profile, &result, started));
        results
    }

    /// The pods of the group that are to be decided about now, the most important first.
    fn members(&self, first: QueuedPod, key: &GroupKey, profile: &Profile) -> Vec<QueuedPod> {
        let mut members = self.queue.take_all(&self.groups.waiting(key));
        members.push(first);
        members.retain(|member| {
            let skip = self.is_to_skip(profile, &member.info);
            if skip {
                self.queue.done(member.info.uid());
            }
            !skip
        });
        members.sort_by_key(|member| (Reverse(member.info.priority), member.first_attempt));
        members
    }

    /// Gives each of the pods a node of these, or of all.
    fn try_all(
        self: &Arc<Self>,
        pass: &mut Pass,
        members: Vec<QueuedPod>,
        profile: &Arc<Profile>,
        nodes: Option<&[Arc<str>]>,
    ) -> Trial {
        let mut trial = Trial::default();
        for member in members {
            if trial.error.is_some() {
                let failure = Failure::of(&Status::error(UNSCHEDULABLE));
                trial.refused.push((member, failure));
                continue;
            }
            let started = self.clock.monotonic();
            let (case, found) = match nodes {
                None => self.look_for(pass, member, Arc::clone(profile), started),
                Some(nodes) => self.look_among(pass, member, Arc::clone(profile), nodes, started),
            };
            match found {
                Ok(decision) => match self.take(case.pod, profile, decision, started) {
                    Ok(cycle) => {
                        trial.is_complete |= cycle.parked.is_none();
                        trial.placed.push(cycle);
                    }
                    Err(refused) => trial.refused.push(*refused),
                },
                Err(no_fit) => {
                    if let NoFit::Failed(status) = &no_fit
                        && status.code == Code::Error
                    {
                        trial.error = Some(status.message());
                    }
                    trial.unplaced.push((case, no_fit));
                }
            }
        }
        trial
    }

    /// Finds the node for a pod among these.
    fn look_among(
        &self,
        pass: &mut Pass,
        pod: QueuedPod,
        profile: Arc<Profile>,
        nodes: &[Arc<str>],
        started: Instant,
    ) -> (Case, Result<Decision, NoFit>) {
        let mut case = self.case(pass, pod, profile, started);
        case.snapshot = Arc::new(case.snapshot.only(nodes));
        let found = self.place(&case.profile, &case.pod.info, &case.snapshot, &case.nominated, &mut 0);
        (case, found)
    }

    /// Enough pods have a place: these are bound, and the others looked at as pods on their own are.
    fn taken(self: &Arc<Self>, trial: Trial, profile: &Profile, started: Instant) -> Vec<ScheduleResult> {
        let mut results: Vec<_> = trial.placed.into_iter().map(ScheduleResult::bound).collect();
        results.extend(trial.unplaced.into_iter().map(|(case, no_fit)| self.conclude(case, Err(no_fit))));
        results.extend(self.refused(trial.refused, profile, started));
        results
    }

    /// Puts the pods of a group back that has too few places; it may wait for others that are evicted for it.
    pub(super) fn put_all_back(
        self: &Arc<Self>,
        given_up: GivenUp,
        evicting: Option<Result<Option<Execution>, Status>>,
    ) -> Vec<ScheduleResult> {
        let mut message = given_up.message();
        let GivenUp { key, profile, started, back, unplaced, refused, preempts, .. } = given_up;
        let mut results = Vec::new();
        match evicting {
            None => {}
            Some(Ok(execution)) => {
                WAITING.clone_into(&mut message);
                results.push(ScheduleResult { preemption: execution, ..ScheduleResult::default() });
            }
            Some(Err(status)) => message = format!("{message}, {status}"),
        }
        let status = Status::unschedulable(format!("{message}, {FOR_OTHERS}"));
        results.extend(self.given_back(back, &profile, &status, started));
        for (case, no_fit) in unplaced {
            results.push(match no_fit {
                NoFit::Nowhere { diagnosis, .. } if !preempts => {
                    let failure = Failure::no_fit(*diagnosis);
                    ScheduleResult::of(self.failed(case.pod, &profile, failure, Nomination::Clear, started))
                }
                no_fit => self.conclude(case, Err(no_fit)),
            });
        }
        results.extend(self.refused(refused, &profile, started));
        let result = PodGroupResult { result: AttemptResult::Unschedulable, message };
        results.extend(self.told(&key, &profile, &result, started));
        results
    }

    /// Something went wrong with one of them: all fail.
    fn failed_with(
        self: &Arc<Self>,
        trial: Trial,
        profile: &Profile,
        error: &str,
        started: Instant,
    ) -> Vec<ScheduleResult> {
        let status = Status::error(format!("failed to schedule other pod from a pod group: {error}"));
        let mut results = self.given_back(taken_back(trial.placed), profile, &status, started);
        for (case, no_fit) in trial.unplaced {
            results.push(match no_fit {
                no_fit @ NoFit::Failed(_) => self.conclude(case, Err(no_fit)),
                NoFit::Nowhere { .. } => {
                    let failure = Failure::of(&status);
                    ScheduleResult::of(self.failed(case.pod, profile, failure, Nomination::Clear, started))
                }
            });
        }
        let others = trial.refused.into_iter().map(|(pod, _)| (pod, Failure::of(&status))).collect();
        results.extend(self.refused(others, profile, started));
        results
    }

    /// Those that had a place wait again.
    fn given_back(
        &self,
        pods: Vec<QueuedPod>,
        profile: &Profile,
        status: &Status,
        started: Instant,
    ) -> Vec<ScheduleResult> {
        let back = pods.into_iter().map(|pod| {
            let failure = Failure::rejected_by(crate::plugins::GANG, status);
            ScheduleResult::of(self.failed(pod, profile, failure, Nomination::Keep, started))
        });
        back.collect()
    }

    fn refused(&self, refused: Vec<(QueuedPod, Failure)>, profile: &Profile, started: Instant) -> Vec<ScheduleResult> {
        let one = |(pod, failure)| ScheduleResult::of(self.failed(pod, profile, failure, Nomination::Clear, started));
        refused.into_iter().map(one).collect()
    }

    /// There is no placement that the group could be tried in.
    fn nowhere_to_go(
        &self,
        members: Vec<QueuedPod>,
        key: &GroupKey,
        profile: &Profile,
        status: &Status,
        started: Instant,
    ) -> Vec<ScheduleResult> {
        let failure = |member| (member, Failure::rejected_by(status.plugin, status));
        let mut results = self.refused(members.into_iter().map(failure).collect(), profile, started);
        let result = PodGroupResult { result: AttemptResult::Unschedulable, message: status.message() };
        results.extend(self.told(key, profile, &result, started));
        results
    }

    fn all_failed(
        &self,
        members: Vec<QueuedPod>,
        key: &GroupKey,
        profile: &Profile,
        text: &str,
        started: Instant,
    ) -> Vec<ScheduleResult> {
        let status = Status::error(text.to_owned());
        let all = members.into_iter().map(|member| (member, Failure::of(&status))).collect();
        let mut results = self.refused(all, profile, started);
        let result = PodGroupResult { result: AttemptResult::Error, message: text.to_owned() };
        results.extend(self.told(key, profile, &result, started));
        results
    }

    pub(super) fn group(&self, key: &GroupKey) -> Option<Arc<PodGroup>> {
        self.pod_groups.as_ref()?.find(&key.namespace, &key.name)
    }

    /// Counts the attempt, and gives what is to be written of it.
    fn told(
        &self,
        key: &GroupKey,
        profile: &Profile,
        result: &PodGroupResult,
        started: Instant,
    ) -> Option<ScheduleResult> {
        let took = self.clock.monotonic().saturating_duration_since(started);
        self.metrics.group_attempt(result.result, &profile.name, took);
        let group = self.group(key)?;
        let condition = condition(&group, result, Time::from(self.clock.wall()))?;
        let write = GroupWrite { objects: Arc::clone(&self.objects), group, condition };
        Some(ScheduleResult { work: Some(Work::Group(Box::new(write))), ..ScheduleResult::default() })
    }
}

/// Too few have a place: nobody keeps his.
fn given_up(
    trial: Trial,
    key: &GroupKey,
    group: Option<&PodGroup>,
    placed_before: usize,
    profile: &Arc<Profile>,
    started: Instant,
) -> GivenUp {
    let Trial { placed, unplaced, refused, .. } = trial;
    let wanted = group.and_then(gang_min_count).unwrap_or(0);
    let can_be_helped = unplaced.iter().filter(|(_, no_fit)| no_fit.can_be_helped()).count();
    let preempts = can_be_helped > 0 && placed_before + placed.len() + can_be_helped >= wanted;
    let (key, profile, back) = (key.clone(), Arc::clone(profile), taken_back(placed));
    GivenUp { key, profile, started, back, unplaced, refused, preempts, placements: 0 }
}

/// Takes all places back, the last first.
fn taken_back(placed: Vec<BindingCycle>) -> Vec<QueuedPod> {
    placed.into_iter().rev().map(|cycle| cycle.take_back().0).collect()
}

/// The name of another scheduler that one of the pods wants.
fn differing(members: &[QueuedPod], profile: &Profile) -> Option<String> {
    let names = members.iter().map(|member| &member.info.pod.spec.scheduler_name);
    names.into_iter().find(|name| **name != profile.name).cloned()
}

/// The condition that a group should have; none where it has it. A group that was scheduled once stays so.
pub(super) fn condition(group: &PodGroup, attempt: &PodGroupResult, now: Time) -> Option<Condition> {
    let (status, reason) = match attempt.result {
        AttemptResult::Scheduled => ("True", "Scheduled"),
        AttemptResult::Unschedulable => ("False", "Unschedulable"),
        AttemptResult::Error => ("False", "SchedulerError"),
    };
    let known = conditions::find(&group.status.conditions, SCHEDULED);
    let is_settled = known.is_some_and(|known| {
        known.status == "True" || (known.status == status && known.reason == reason && known.message == attempt.message)
    });
    if is_settled {
        return None;
    }
    Some(Condition {
        type_: SCHEDULED.to_owned(),
        status: status.to_owned(),
        observed_generation: group.metadata.generation,
        last_transition_time: known
            .filter(|known| known.status == status)
            .map_or(now, |known| known.last_transition_time),
        reason: reason.to_owned(),
        message: attempt.message.clone(),
    })
}
