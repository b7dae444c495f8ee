//! Hard constraints: no domain may have too many more pods than the emptiest one.

use super::PodTopologySpread;
use super::constraint::{Constraint, HARD};
use super::counts::DomainCounts;
use crate::framework::{CycleCx, CycleState, Filter, PreFilter, PreFiltered, Status, Verdict};
use crate::node_info::NodeView;
use crate::pod_class::ClassMemo;
use crate::pod_info::PodInfo;

const REASON: &str = "node(s) didn't match pod topology spread constraints";
const REASON_LABEL: &str = "node(s) didn't match pod topology spread constraints (missing required label)";

/// The hard constraints with the pods by domain.
#[derive(Clone)]
struct HardState(Vec<(Constraint, DomainCounts)>);

impl HardState {
    /// Whether pods on the node count for any constraint: it must have all labels.
    fn has_all_keys(&self, node: NodeView<'_>) -> bool {
        self.0.iter().all(|(_, counts)| counts.topology.domain(node.index).is_some())
    }

    fn change(&mut self, pod: &PodInfo, other: &PodInfo, node: NodeView<'_>, step: i64) {
        if pod.pod.metadata.namespace != other.pod.metadata.namespace || !self.has_all_keys(node) {
            return;
        }
        for (constraint, counts) in &mut self.0 {
            if constraint.selector.matches(&other.pod.metadata.labels)
                && constraint.includes(&pod.pod, node)
                && let Some(domain) = counts.topology.domain(node.index)
            {
                counts.add(domain, step);
            }
        }
    }
}

impl PreFilter for PodTopologySpread {
    fn pre_filter(&self, cx: CycleCx<'_>, state: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        let constraints = self.constraints(&pod.pod, Some(cx.listers), HARD)?;
        if constraints.is_empty() {
            return Ok(PreFiltered::Skip);
        }
        let with_counts = |constraint: Constraint| {
            let counts = DomainCounts::new(cx.snapshot.topology(&constraint.topology_key));
            (constraint, counts)
        };
        let mut hard = HardState(constraints.into_iter().map(with_counts).collect());
        let mut memos: Vec<ClassMemo<bool>> = hard.0.iter().map(|_| ClassMemo::new()).collect();
        for node in cx.snapshot.views() {
            if !hard.has_all_keys(node) {
                continue;
            }
            for ((constraint, counts), memo) in hard.0.iter_mut().zip(&mut memos) {
                if constraint.includes(&pod.pod, node)
                    && let Some(domain) = counts.topology.domain(node.index)
                {
                    counts.add(domain, constraint.count(&pod.pod.metadata.namespace, node, memo));
                }
            }
        }
        state.put(hard);
        Ok(PreFiltered::All)
    }

    fn add_pod(&self, state: &mut CycleState, pod: &PodInfo, added: &PodInfo, node: NodeView<'_>) -> Verdict {
        if let Some(hard) = state.get_mut::<HardState>() {
            hard.change(pod, added, node, 1);
        }
        Ok(())
    }

    fn remove_pod(&self, state: &mut CycleState, pod: &PodInfo, removed: &PodInfo, node: NodeView<'_>) -> Verdict {
        if let Some(hard) = state.get_mut::<HardState>() {
            hard.change(pod, removed, node, -1);
        }
        Ok(())
    }
}

impl Filter for PodTopologySpread {
    fn filter(&self, state: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> Verdict {
        let Some(hard) = state.get::<HardState>() else { return Ok(()) };
        for (constraint, counts) in &hard.0 {
            let Some(domain) = counts.topology.domain(node.index) else {
                return Err(Status::unresolvable(REASON_LABEL));
            };
            let own = i64::from(constraint.selector.matches(&pod.pod.metadata.labels));
            let skew = counts.get(domain).unwrap_or(0) + own - counts.minimum(constraint.min_domains);
            if skew > constraint.max_skew {
                return Err(Status::unschedulable(REASON));
            }
        }
        Ok(())
    }
}
