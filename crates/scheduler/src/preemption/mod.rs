//! `DefaultPreemption`: when no node has room, looks for pods of lower priority that can go.
//!
//! The choice is pure; carrying it out is [`execute`]'s work.

mod candidate;
pub(crate) mod execute;
#[cfg(test)]
mod tests;
pub(crate) mod units;
pub(crate) mod victims;

use std::collections::HashMap;
use std::sync::Arc;

use api_types::policy_v1::PodDisruptionBudget;
use api_types::scheduling_v1alpha2::PodGroup;
use async_trait::async_trait;

use crate::framework::{
    Action, BuildCx, Candidate, Code, CycleState, Diagnosis, GROUP_PREEMPTION, GroupKey, Hint, Nomination, Plugin,
    PluginError, PostFilter, PostFilterCx, PostFiltered, PreEnqueue, PreemptionGate, PreemptorKey, Registration,
    Resource, Status, StatusResult, TOPOLOGY_AWARE_GROUPS,
};
use crate::listers::Lister;
use crate::metrics::SchedulerMetrics;
use crate::parallel::Parallelism;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(crate) const NAME: &str = "DefaultPreemption";
pub(crate) const PREFIX: &str = "preemption: ";
const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";

/// Nodes that each thread looks at before others may run.
const NODES_AT_A_TIME: usize = 16;

struct DefaultPreemption {
    percentage: usize,
    absolute: usize,
    parallelism: Parallelism,
    gate: Arc<PreemptionGate>,
    metrics: Arc<SchedulerMetrics>,
    budgets: Lister<PodDisruptionBudget>,
    /// Whether groups of pods evict others as one.
    by_groups: bool,
    /// Where groups may be bound to a domain.
    constrained: Option<Lister<PodGroup>>,
}

pub(crate) fn build(cx: &BuildCx, args: &PluginArgs) -> Result<Plugin, PluginError> {
    let PluginArgs::DefaultPreemption(args) = args else { return Err(PluginError::NoArguments) };
    let number = |value: Option<i32>, default: i32| usize::try_from(value.unwrap_or(default)).unwrap_or(0);
    let plugin = Arc::new(DefaultPreemption {
        percentage: number(args.min_candidate_nodes_percentage, 10),
        absolute: number(args.min_candidate_nodes_absolute, 100),
        parallelism: cx.parallelism,
        gate: Arc::clone(&cx.gate),
        metrics: Arc::clone(&cx.metrics),
        budgets: cx.listers.of(),
        by_groups: cx.gates.enabled(GROUP_PREEMPTION),
        constrained: cx.gates.enabled(TOPOLOGY_AWARE_GROUPS).then(|| cx.listers.of()),
    });
    // Never by itself: it lets the event through to the plugins that rejected the pod.
    let events = vec![Registration::hinted(Resource::Pod, Action::DELETE, |_, _| Hint::Skip)];
    Ok(Plugin::new(NAME).pre_enqueue(plugin.clone()).post_filter(plugin).wakes_on(events))
}

impl PreEnqueue for DefaultPreemption {
    fn pre_enqueue(&self, pod: &PodInfo) -> StatusResult {
        if self.gate.is_closed(&PreemptorKey::Pod(pod.uid().to_owned())) {
            return Err(Status::unresolvable("waiting for the preemption for this pod to be finished"));
        }
        let group = GroupKey::of(&pod.pod).filter(|_| self.by_groups).map(PreemptorKey::Group);
        if group.is_some_and(|group| self.gate.is_closed(&group)) {
            return Err(Status::unresolvable("waiting for the preemption for this pod group to be finished"));
        }
        Ok(())
    }
}

impl DefaultPreemption {
    /// Why a pod of a group may not evict others for itself.
    fn ineligible_in_group(&self, pod: &PodInfo) -> Option<&'static str> {
        let key = GroupKey::of(&pod.pod)?;
        if let Some(groups) = &self.constrained {
            match groups.find(&key.namespace, &key.name) {
                None => return Some("pod group for pod not found"),
                Some(group) if group.spec.scheduling_constraints.is_some() => {
                    return Some("not eligible due to placement-based pod group scheduling limitation");
                }
                Some(_) => {}
            }
        }
        self.by_groups.then_some("not eligible due to workload aware preemption enabled")
    }
}

#[async_trait]
impl PostFilter for DefaultPreemption {
    async fn post_filter(&self, cx: PostFilterCx<'_>, state: &CycleState, pod: &PodInfo) -> PostFiltered {
        self.metrics.preemption();
        let rejected = |code, text: String, nomination| PostFiltered {
            nomination,
            candidates: Vec::new(),
            status: Some(Status::new(code, format!("{PREFIX}{text}"))),
        };
        if let Some(reason) = self.ineligible_in_group(pod).or_else(|| ineligible(cx, pod)) {
            return rejected(Code::Unschedulable, reason.into(), Nomination::Keep);
        }
        match self.search(cx, state, pod).await {
            Ok(candidates) => PostFiltered {
                nomination: candidates.first().map_or(Nomination::Clear, |best| Nomination::Set(best.node.to_string())),
                candidates,
                status: None,
            },
            Err(status) if status.code == Code::Error => rejected(Code::Error, status.message(), Nomination::Keep),
            Err(status) => rejected(Code::Unschedulable, status.message(), Nomination::Clear),
        }
    }

    fn second_look(
        &self,
        cx: PostFilterCx<'_>,
        state: &CycleState,
        pod: &PodInfo,
        candidate: &Candidate,
    ) -> Option<Candidate> {
        let node = cx.cycle.snapshot.by_name(&candidate.node)?;
        if cx.profile.reviews_remotely(pod) {
            // Others chose the victims; they are not asked again.
            let stays = |victim: &Arc<PodInfo>| node.pods.iter().any(|other| other.uid() == victim.uid());
            return candidate.victims.iter().all(stays).then(|| candidate.clone());
        }
        let budgets = victims::Budgets::parse(&self.budgets.list());
        victims::select(cx, state, pod, node, &budgets).ok()
    }
}

/// Why a pod evicts nobody that does not want to.
pub(crate) const NEVER: &str = "not eligible due to preemptionPolicy=Never.";

/// Whether a pod does not want others to be evicted.
pub(crate) fn never_preempts(pod: &PodInfo) -> bool {
    pod.pod.spec.preemption_policy.as_deref() == Some("Never")
}

/// Why the pod may not evict others; none when it may.
fn ineligible(cx: PostFilterCx<'_>, pod: &PodInfo) -> Option<&'static str> {
    if never_preempts(pod) {
        return Some(NEVER);
    }
    let nominated = pod.pod.status.nominated_node_name.as_str();
    let index = cx.cycle.snapshot.index_of(nominated)?;
    if cx.diagnosis.statuses.get(&index).is_some_and(|status| status.code == Code::UnschedulableAndUnresolvable) {
        return None;
    }
    let node = cx.cycle.snapshot.view(index)?;
    let leaving = |other: &Arc<PodInfo>| {
        other.priority < pod.priority && other.is_terminating() && was_preempted_by_scheduler(other)
    };
    node.pods.iter().any(leaving).then_some("not eligible due to a terminating pod on the nominated node.")
}

fn was_preempted_by_scheduler(pod: &PodInfo) -> bool {
    let conditions = &pod.pod.status.conditions;
    conditions
        .iter()
        .find(|condition| condition.type_ == "DisruptionTarget")
        .is_some_and(|condition| condition.status == "True" && condition.reason == "PreemptionByScheduler")
}

impl DefaultPreemption {
    /// The nodes to evict pods from, the best first, or why there is none.
    async fn search(&self, cx: PostFilterCx<'_>, state: &CycleState, pod: &PodInfo) -> Result<Vec<Candidate>, Status> {
        let nodes = cx.cycle.snapshot.len();
        let potential: Vec<usize> =
            (0..nodes).filter(|index| cx.diagnosis.code_of(*index) == Code::Unschedulable).collect();
        if potential.is_empty() {
            return Err(Status::unschedulable(fit_text(nodes, HashMap::new())));
        }
        let budgets = victims::Budgets::parse(&self.budgets.list());
        let wanted = (potential.len() * self.percentage / 100).max(self.absolute).min(potential.len());
        let offset = usize::try_from(cx.rng.below(potential.len() as u64)).unwrap_or(0);
        let (mut keeping, mut violating) = (Vec::new(), Vec::new());
        let mut statuses = HashMap::new();
        let mut failure = None;
        let mut order = potential;
        order.rotate_left(offset);
        let select =
            |index: &usize| cx.cycle.snapshot.view(*index).map(|node| victims::select(cx, state, pod, node, &budgets));
        'nodes: for some in order.chunks(NODES_AT_A_TIME * self.parallelism.count()) {
            for (index, selected) in some.iter().zip(self.parallelism.map(some, select)) {
                match selected {
                    None => {}
                    Some(Ok(candidate)) if candidate.violations == 0 => keeping.push(candidate),
                    Some(Ok(candidate)) => violating.push(candidate),
                    Some(Err(status)) if status.code == Code::Error => failure = Some(status),
                    Some(Err(status)) => drop(statuses.insert(*index, status)),
                }
                if !keeping.is_empty() && keeping.len() + violating.len() >= wanted {
                    break 'nodes;
                }
            }
            tokio::task::yield_now().await;
        }
        keeping.truncate(wanted);
        violating.truncate(wanted);
        keeping.append(&mut violating);
        if keeping.is_empty() {
            return Err(failure.unwrap_or_else(|| Status::unschedulable(fit_text(nodes, statuses))));
        }
        let candidates = cx.profile.run_remote_preempt(cx.cycle, pod, keeping).await?;
        if candidates.is_empty() {
            return Err(Status::unschedulable("no candidate node for preemption"));
        }
        Ok(candidate::best_first(candidates, cx.now))
    }
}

/// Why no node was right; those that were not tried cannot be helped.
fn fit_text(nodes: usize, statuses: HashMap<usize, Status>) -> String {
    let absent = Some(Status::unresolvable(NOT_HELPFUL));
    Diagnosis { nodes, statuses, absent, ..Diagnosis::default() }.message()
}
