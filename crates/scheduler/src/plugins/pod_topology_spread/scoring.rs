//! Soft constraints: domains with fewer pods score higher.

use super::PodTopologySpread;
use super::constraint::{Constraint, SOFT};
use super::counts::DomainCounts;
use crate::framework::{CycleCx, CycleState, MAX_SCORE, PreScore, PreScored, Score, Status};
use crate::node_info::NodeView;
use crate::pod_class::ClassMemo;
use crate::pod_info::PodInfo;

const HOSTNAME: &str = "kubernetes.io/hostname";

/// The soft constraints with what scoring needs.
#[derive(Clone)]
struct SoftState {
    constraints: Vec<Soft>,
    /// Whether a node without one of the labels scores lowest.
    all_keys: bool,
}

#[derive(Clone)]
struct Soft {
    constraint: Constraint,
    /// Pods by domain, of the domains with a feasible node; for nodes as domains the node's own pods count.
    counts: DomainCounts,
    /// Constraints with many domains count more.
    weight: f64,
    /// The pods of each feasible node, by its place, for nodes as domains.
    own: Vec<i64>,
}

impl Soft {
    fn is_by_node(&self) -> bool {
        self.constraint.topology_key == HOSTNAME
    }
}

impl SoftState {
    fn ignores(&self, node: NodeView<'_>) -> bool {
        self.all_keys && self.constraints.iter().any(|soft| soft.counts.topology.domain(node.index).is_none())
    }

    /// Finds the domains of the feasible nodes and the weights.
    fn note_domains(&mut self, nodes: &[NodeView<'_>]) {
        let kept: Vec<NodeView<'_>> = nodes.iter().filter(|node| !self.ignores(**node)).copied().collect();
        for soft in &mut self.constraints {
            let mut size = 0;
            for node in &kept {
                if let Some(domain) = soft.counts.topology.domain(node.index)
                    && soft.counts.get(domain).is_none()
                {
                    soft.counts.add(domain, 0);
                    size += 1;
                }
            }
            if soft.is_by_node() {
                size = kept.len();
            }
            #[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
            let weight = (size as f64 + 2.0).ln();
            soft.weight = weight;
        }
    }

    /// Counts pods on all nodes, feasible or not; where nodes are the domains, on the feasible ones.
    fn count(&mut self, cx: CycleCx<'_>, pod: &PodInfo, nodes: &[NodeView<'_>]) {
        let namespace = &pod.pod.metadata.namespace;
        let mut memos: Vec<ClassMemo<bool>> = self.constraints.iter().map(|_| ClassMemo::new()).collect();
        for (soft, memo) in self.constraints.iter_mut().zip(&mut memos).filter(|(soft, _)| soft.is_by_node()) {
            soft.own = vec![0; cx.snapshot.len()];
            for node in nodes {
                if let Some(slot) = soft.own.get_mut(node.index) {
                    *slot = soft.constraint.count(namespace, *node, memo);
                }
            }
        }
        if self.constraints.iter().all(Soft::is_by_node) {
            return;
        }
        if self.counts_every_node(pod) {
            for soft in self.constraints.iter_mut().filter(|soft| !soft.is_by_node()) {
                soft.constraint.add_up(namespace, cx.snapshot, &mut soft.counts);
            }
            return;
        }
        self.count_each_node(cx, pod);
    }

    /// Whether pods count wherever they are, so that the sums by domain are enough.
    fn counts_every_node(&self, pod: &PodInfo) -> bool {
        let complete = || self.constraints.iter().all(|soft| soft.counts.topology.is_complete());
        let mut by_domain = self.constraints.iter().filter(|soft| !soft.is_by_node());
        (!self.all_keys || complete()) && by_domain.all(|soft| soft.constraint.includes_all(&pod.pod))
    }

    fn count_each_node(&mut self, cx: CycleCx<'_>, pod: &PodInfo) {
        let namespace = &pod.pod.metadata.namespace;
        let mut memos: Vec<ClassMemo<bool>> = self.constraints.iter().map(|_| ClassMemo::new()).collect();
        for node in cx.snapshot.views() {
            if self.ignores(node) {
                continue;
            }
            for (soft, memo) in self.constraints.iter_mut().zip(&mut memos) {
                if soft.is_by_node() {
                    continue;
                }
                let domain = soft.counts.topology.domain(node.index);
                let Some(domain) = domain.filter(|domain| soft.counts.get(*domain).is_some()) else { continue };
                if soft.constraint.includes(&pod.pod, node) {
                    soft.counts.add(domain, soft.constraint.count(namespace, node, memo));
                }
            }
        }
    }
}

impl PreScore for PodTopologySpread {
    fn pre_score(
        &self,
        cx: CycleCx<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        nodes: &[NodeView<'_>],
    ) -> Result<PreScored, Status> {
        let constraints = self.constraints(&pod.pod, SOFT)?;
        if constraints.is_empty() {
            return Ok(PreScored::Skip);
        }
        let soft = |constraint: Constraint| {
            let counts = DomainCounts::new(cx.snapshot.topology(&constraint.topology_key));
            Soft { constraint, counts, weight: 0.0, own: Vec::new() }
        };
        let all_keys = !pod.pod.spec.topology_spread_constraints.is_empty() || !self.system_defaults;
        let mut soft = SoftState { constraints: constraints.into_iter().map(soft).collect(), all_keys };
        soft.note_domains(nodes);
        soft.count(cx, pod, nodes);
        state.put(soft);
        Ok(PreScored::Ready)
    }
}

impl Score for PodTopologySpread {
    fn score(&self, state: &CycleState, _: &PodInfo, node: NodeView<'_>) -> Result<i64, Status> {
        let Some(soft) = state.get::<SoftState>().filter(|soft| !soft.ignores(node)) else { return Ok(0) };
        let mut score = 0.0;
        for soft in &soft.constraints {
            let Some(domain) = soft.counts.topology.domain(node.index) else { continue };
            let count = if soft.is_by_node() {
                soft.own.get(node.index).copied().unwrap_or(0)
            } else {
                soft.counts.get(domain).unwrap_or(0)
            };
            #[expect(clippy::cast_precision_loss, reason = "numbers of pods are small")]
            let part = count as f64 * soft.weight + (soft.constraint.max_skew - 1) as f64;
            score += part;
        }
        #[expect(clippy::cast_possible_truncation, reason = "rounded, and far below the limit")]
        let rounded = score.round() as i64;
        Ok(rounded)
    }

    fn normalize(&self, state: &CycleState, _: &PodInfo, nodes: &[NodeView<'_>], scores: &mut [i64]) {
        let Some(soft) = state.get::<SoftState>() else { return };
        let kept =
            || nodes.iter().zip(scores.iter()).filter(|(node, _)| !soft.ignores(**node)).map(|(_, score)| *score);
        let (highest, lowest) = (kept().max().unwrap_or(0), kept().min().unwrap_or(0));
        for (node, score) in nodes.iter().zip(scores.iter_mut()) {
            *score = if soft.ignores(*node) {
                0
            } else if highest == 0 {
                MAX_SCORE
            } else {
                MAX_SCORE * (highest + lowest - *score) / highest
            };
        }
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
        let (mut by_sums, mut by_nodes) = (0, 0);
        for_each(
            || pod("probe").label("app", "a").spread("a", ZONE, 1, SOFT),
            |snapshot, cache, probe| {
                let (pod, cx) = (probe.info(cache.classes()), CycleCx { snapshot });
                let nodes: Vec<NodeView<'_>> = snapshot.views().filter(|node| node.index % 4 != 1).collect();
                let mut state = CycleState::default();
                plugin.pre_score(cx, &mut state, &pod, &nodes).unwrap();
                let counted = state.get::<SoftState>().unwrap();
                if counted.counts_every_node(&pod) {
                    by_sums += 1
                } else {
                    by_nodes += 1
                }
                let mut walked = counted.clone();
                for soft in &mut walked.constraints {
                    soft.counts = DomainCounts::new(snapshot.topology(&soft.constraint.topology_key));
                }
                walked.note_domains(&nodes);
                walked.count_each_node(cx, &pod);
                let counts = |soft: &SoftState, domain| soft.constraints.first().unwrap().counts.get(domain);
                for domain in 0..snapshot.topology(ZONE).len() {
                    assert_eq!(counts(counted, domain), counts(&walked, domain), "{domain}");
                }
            },
        );
        assert!(by_sums > 500 && by_nodes > 100, "both ways are tried: {by_sums}, {by_nodes}");
    }
}
