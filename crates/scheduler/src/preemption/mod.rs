//! `DefaultPreemption`: when no node has room, looks for pods of lower priority that can go.
//!
//! The choice is pure; carrying it out is [`execute`]'s work.

mod candidate;
pub(crate) mod execute;
mod gate;
#[cfg(test)]
mod tests;
mod victims;

use std::collections::HashMap;
use std::sync::Arc;

pub use candidate::Candidate;
pub use gate::PreemptionGate;

use crate::config::PluginArgs;
use crate::framework::{
    Action, Code, CycleState, Diagnosis, Hint, Nomination, Plugin, PostFilter, PostFilterCx, PostFiltered, PreEnqueue,
    Registration, Resource, Status, Verdict,
};
use crate::metrics::SchedulerMetrics;
use crate::plugins::BuildCx;
use crate::pod_info::PodInfo;

pub(crate) const NAME: &str = "DefaultPreemption";
const PREFIX: &str = "preemption: ";
const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";

struct DefaultPreemption {
    percentage: usize,
    absolute: usize,
    gate: Arc<PreemptionGate>,
    metrics: Arc<SchedulerMetrics>,
}

pub(crate) fn build(cx: &BuildCx, args: &PluginArgs) -> Result<Plugin, String> {
    let PluginArgs::DefaultPreemption(args) = args else { return Err("arguments are missing".into()) };
    let number = |value: Option<i32>, default: i32| usize::try_from(value.unwrap_or(default)).unwrap_or(0);
    let plugin = Arc::new(DefaultPreemption {
        percentage: number(args.min_candidate_nodes_percentage, 10),
        absolute: number(args.min_candidate_nodes_absolute, 100),
        gate: Arc::clone(&cx.gate),
        metrics: Arc::clone(&cx.metrics),
    });
    // Never by itself: it lets the event through to the plugins that rejected the pod.
    let events = vec![Registration::hinted(Resource::Pod, Action::DELETE, |_, _| Hint::Skip)];
    Ok(Plugin::new(NAME).pre_enqueue(plugin.clone()).post_filter(plugin).wakes_on(events))
}

impl PreEnqueue for DefaultPreemption {
    fn pre_enqueue(&self, pod: &PodInfo) -> Verdict {
        if self.gate.is_closed(pod.uid()) {
            return Err(Status::unresolvable("waiting for the preemption for this pod to be finished"));
        }
        Ok(())
    }
}

impl PostFilter for DefaultPreemption {
    fn post_filter(&self, cx: PostFilterCx<'_>, state: &CycleState, pod: &PodInfo) -> PostFiltered {
        self.metrics.preemption();
        let rejected = |code, text: String, nomination| PostFiltered {
            nomination,
            preemption: None,
            status: Some(Status::new(code, format!("{PREFIX}{text}"))),
        };
        if let Some(reason) = ineligible(cx, pod) {
            return rejected(Code::Unschedulable, reason.into(), Nomination::Keep);
        }
        match self.search(cx, state, pod) {
            Ok(candidate) => PostFiltered {
                nomination: Nomination::Set(candidate.node.to_string()),
                preemption: Some(candidate),
                status: None,
            },
            Err(status) if status.code == Code::Error => rejected(Code::Error, status.message(), Nomination::Keep),
            Err(status) => rejected(Code::Unschedulable, status.message(), Nomination::Clear),
        }
    }
}

/// Why the pod may not evict others; none when it may.
fn ineligible(cx: PostFilterCx<'_>, pod: &PodInfo) -> Option<&'static str> {
    if pod.pod.spec.preemption_policy.as_deref() == Some("Never") {
        return Some("not eligible due to preemptionPolicy=Never.");
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
    /// The best node to evict pods from, or why there is none.
    fn search(&self, cx: PostFilterCx<'_>, state: &CycleState, pod: &PodInfo) -> Result<Candidate, Status> {
        let nodes = cx.cycle.snapshot.len();
        let potential: Vec<usize> =
            (0..nodes).filter(|index| cx.diagnosis.code_of(*index) == Code::Unschedulable).collect();
        if potential.is_empty() {
            return Err(Status::unschedulable(fit_text(nodes, HashMap::new())));
        }
        let budgets = victims::Budgets::parse(&cx.cycle.listers.disruption_budgets());
        let wanted = (potential.len() * self.percentage / 100).max(self.absolute).min(potential.len());
        let offset = usize::try_from(cx.rng.below(potential.len() as u64)).unwrap_or(0);
        let (mut keeping, mut violating) = (Vec::new(), Vec::new());
        let mut statuses = HashMap::new();
        let mut failure = None;
        for index in potential.iter().cycle().skip(offset).take(potential.len()) {
            let Some(node) = cx.cycle.snapshot.view(*index) else { continue };
            match victims::select(cx, state, pod, node, &budgets) {
                Ok(candidate) if candidate.violations == 0 => keeping.push(candidate),
                Ok(candidate) => violating.push(candidate),
                Err(status) if status.code == Code::Error => failure = Some(status),
                Err(status) => drop(statuses.insert(*index, status)),
            }
            if !keeping.is_empty() && keeping.len() + violating.len() >= wanted {
                break;
            }
        }
        keeping.truncate(wanted);
        violating.truncate(wanted);
        keeping.append(&mut violating);
        match candidate::best(keeping, cx.now) {
            Some(best) => Ok(best),
            None => Err(failure.unwrap_or_else(|| Status::unschedulable(fit_text(nodes, statuses)))),
        }
    }
}

/// Why no node was right; those that were not tried cannot be helped.
fn fit_text(nodes: usize, statuses: HashMap<usize, Status>) -> String {
    let absent = Some(Status::unresolvable(NOT_HELPFUL));
    Diagnosis { nodes, statuses, absent, ..Diagnosis::default() }.message()
}
