//! Preferred terms, in both directions.

use std::sync::Arc;

use super::counts::DomainSums;
use super::{InterPodAffinity, incoming_matches};
use crate::framework::{CycleCx, CycleState, MAX_SCORE, PreScore, PreScored, Score, Status};
use crate::node_info::NodeView;
use crate::pod_class::PodClass;
use crate::pod_info::{AffinityTerm, PodInfo};

/// Weights by domain, for each topology.
#[derive(Clone, Default)]
struct Preferences(Vec<DomainSums>);

/// What each pod of a class adds: topologies by key, with weights.
type Shares = Arc<[(String, i64)]>;

/// The preferred terms of the incoming pod, resolved, with their weights; negative ones keep away.
type Incoming = Vec<(i64, AffinityTerm)>;

impl InterPodAffinity {
    /// What a pod of a class adds to its domains.
    fn shares(&self, pod: &PodInfo, incoming: &Incoming, class: &PodClass) -> Shares {
        let mut shares = Vec::new();
        let mut add = |term: &AffinityTerm, weight: i64| shares.push((term.topology_key.clone(), weight));
        for (weight, term) in incoming.iter().filter(|(_, term)| incoming_matches(term, class)) {
            add(term, *weight);
        }
        if class.terms.any {
            let labels = self.namespace_labels(&pod.pod.metadata.namespace);
            let wants =
                |term: &AffinityTerm| term.matches(&pod.pod.metadata.namespace, &pod.pod.metadata.labels, &labels);
            let existing = &class.terms;
            if self.hard_weight > 0 {
                existing.required.iter().filter(|term| wants(term)).for_each(|term| add(term, self.hard_weight));
            }
            if self.counts_existing {
                existing.preferred.iter().filter(|(_, term)| wants(term)).for_each(|(weight, term)| add(term, *weight));
                let anti = existing.preferred_anti.iter().filter(|(_, term)| wants(term));
                anti.for_each(|(weight, term)| add(term, -weight));
            }
        }
        shares.into()
    }
}

impl Preferences {
    fn add(&mut self, cx: CycleCx<'_>, node: NodeView<'_>, shares: &Shares, pods: i64) {
        for (key, weight) in shares.iter() {
            let known = self.0.iter().position(|sums| sums.topology.key == *key);
            let place = known.unwrap_or_else(|| {
                self.0.push(DomainSums::new(cx.snapshot.topology(key)));
                self.0.len() - 1
            });
            if let Some(sums) = self.0.get_mut(place) {
                sums.add(node.index, weight * pods);
            }
        }
    }
}

impl PreScore for InterPodAffinity {
    fn pre_score(
        &self,
        cx: CycleCx<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        _: &[NodeView<'_>],
    ) -> Result<PreScored, Status> {
        let has_preferred = pod.class.terms.has_preferred();
        if !has_preferred && !self.counts_existing {
            return Ok(PreScored::Skip);
        }
        let own = &pod.class.terms;
        let near = own.preferred.iter().map(|(weight, term)| (*weight, self.resolve(term)));
        let far = own.preferred_anti.iter().map(|(weight, term)| (-weight, self.resolve(term)));
        let incoming: Incoming = near.chain(far).collect();
        let mut preferences = Preferences::default();
        let mut memo: Vec<Option<Shares>> = Vec::new();
        let mut visit = |node: NodeView<'_>| {
            for count in node.classes.iter().filter(|count| has_preferred || count.class.terms.any) {
                let place = count.class.id as usize;
                if memo.len() <= place {
                    memo.resize(place + 1, None);
                }
                let Some(slot) = memo.get_mut(place) else { continue };
                let shares = slot.get_or_insert_with(|| self.shares(pod, &incoming, &count.class));
                preferences.add(cx, node, shares, count.total());
            }
        };
        if has_preferred {
            cx.snapshot.views().for_each(&mut visit);
        } else {
            cx.snapshot.with_affinity().for_each(&mut visit);
        }
        if preferences.0.is_empty() {
            return Ok(PreScored::Skip);
        }
        state.put(preferences);
        Ok(PreScored::Ready)
    }
}

impl Score for InterPodAffinity {
    fn score(&self, state: &CycleState, _: &PodInfo, node: NodeView<'_>) -> Result<i64, Status> {
        let preferences = state.get::<Preferences>().map(|preferences| preferences.0.as_slice()).unwrap_or_default();
        Ok(preferences.iter().filter_map(|sums| sums.at(node.index)).sum())
    }

    fn normalize(&self, _: &CycleState, _: &PodInfo, _: &[NodeView<'_>], scores: &mut [i64]) {
        let lowest = scores.iter().copied().min().unwrap_or(0);
        let range = scores.iter().copied().max().unwrap_or(0) - lowest;
        for score in scores {
            *score = if range > 0 { MAX_SCORE * (*score - lowest) / range } else { 0 };
        }
    }
}
