//! Hard constraints: no domain may have too many more pods than the emptiest one.

use super::PodTopologySpread;
use super::constraint::{Constraint, HARD};
use super::counts::DomainCounts;
use crate::framework::{CycleCx, CycleState, Filter, PreFilter, PreFiltered, Status, StatusResult};
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

    /// Whether pods count wherever they are, so that the sums by domain are enough.
    fn counts_every_node(&self, pod: &PodInfo) -> bool {
        self.0.iter().all(|(constraint, counts)| counts.topology.is_complete() && constraint.includes_all(&pod.pod))
    }

    fn add_up(&mut self, cx: CycleCx<'_>, pod: &PodInfo) {
        for (constraint, counts) in &mut self.0 {
            (0..counts.topology.len()).for_each(|domain| counts.add(domain, 0));
            constraint.add_up(&pod.pod.metadata.namespace, cx.snapshot, counts);
        }
    }

    fn count_each_node(&mut self, cx: CycleCx<'_>, pod: &PodInfo) {
        let mut memos: Vec<ClassMemo<bool>> = self.0.iter().map(|_| ClassMemo::new()).collect();
        for node in cx.snapshot.views() {
            if !self.has_all_keys(node) {
                continue;
            }
            for ((constraint, counts), memo) in self.0.iter_mut().zip(&mut memos) {
                if constraint.includes(&pod.pod, node)
                    && let Some(domain) = counts.topology.domain(node.index)
                {
                    counts.add(domain, constraint.count(&pod.pod.metadata.namespace, node, memo));
                }
            }
        }
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
        let constraints = self.constraints(&pod.pod, HARD)?;
        if constraints.is_empty() {
            return Ok(PreFiltered::Skip);
        }
        let with_counts = |constraint: Constraint| {
            let counts = DomainCounts::new(cx.snapshot.topology(&constraint.topology_key));
            (constraint, counts)
        };
        let mut hard = HardState(constraints.into_iter().map(with_counts).collect());
        if hard.counts_every_node(pod) {
            hard.add_up(cx, pod);
        } else {
            hard.count_each_node(cx, pod);
        }
        state.put(hard);
        Ok(PreFiltered::All)
    }

    fn add_pod(&self, state: &mut CycleState, pod: &PodInfo, added: &PodInfo, node: NodeView<'_>) -> StatusResult {
        if let Some(hard) = state.get_mut::<HardState>() {
            hard.change(pod, added, node, 1);
        }
        Ok(())
    }

    fn remove_pod(&self, state: &mut CycleState, pod: &PodInfo, removed: &PodInfo, node: NodeView<'_>) -> StatusResult {
        if let Some(hard) = state.get_mut::<HardState>() {
            hard.change(pod, removed, node, -1);
        }
        Ok(())
    }
}

impl Filter for PodTopologySpread {
    fn filter(&self, state: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
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

#[cfg(test)]
mod tests {
    use super::super::random_clusters::{ZONE, for_each};
    use super::*;
    use crate::test_objects::pod;

    #[test]
    fn sums_by_domain_are_those_of_the_nodes() {
        let plugin = PodTopologySpread::without_defaults(&component_base::Gates::default());
        let mut by_sums = 0;
        for_each(
            || pod("probe").label("app", "a").spread("a", ZONE, 1, HARD).spread("b", "kubernetes.io/hostname", 2, HARD),
            |snapshot, cache, probe| {
                let (pod, cx) = (probe.info(cache.classes()), CycleCx { snapshot });
                let mut state = CycleState::default();
                plugin.pre_filter(cx, &mut state, &pod).unwrap();
                let counted = state.get::<HardState>().unwrap();
                by_sums += usize::from(counted.counts_every_node(&pod));
                let fresh = |(constraint, _): &(Constraint, DomainCounts)| {
                    (constraint.clone(), DomainCounts::new(snapshot.topology(&constraint.topology_key)))
                };
                let mut walked = HardState(counted.0.iter().map(fresh).collect());
                walked.count_each_node(cx, &pod);
                for ((_, one), (constraint, other)) in counted.0.iter().zip(&walked.0) {
                    assert_eq!(one.minimum(1), other.minimum(1), "{}", constraint.topology_key);
                    for domain in 0..one.topology.len() {
                        assert_eq!(one.get(domain), other.get(domain), "{} {domain}", constraint.topology_key);
                    }
                }
            },
        );
        assert!(by_sums > 500, "{by_sums}");
    }
}
