//! Required terms: of the incoming pod, and anti-affinity of existing pods against it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::counts::DomainSums;
use super::{InterPodAffinity, Labels, incoming_matches};
use crate::cache::Snapshot;
use crate::framework::{CycleCx, CycleState, Filter, PreFilter, PreFiltered, Status, StatusResult};
use crate::node_info::NodeView;
use crate::pod_class::{ClassMemo, PodClass};
use crate::pod_info::{AffinityTerm, PodInfo};

const REASON_AFFINITY: &str = "node(s) didn't match pod affinity rules";
const REASON_ANTI: &str = "node(s) didn't match pod anti-affinity rules";
const REASON_EXISTING: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// Pods by domain, for each rule.
#[derive(Clone)]
struct RequiredState {
    /// For each required affinity term: pods that match all of them.
    affinity: Vec<DomainSums>,
    /// For each required anti-affinity term: pods that match it.
    anti: Vec<DomainSums>,
    /// By topology: terms of existing pods that keep this pod away.
    existing: Vec<DomainSums>,
    /// The same for label values of topologies that no pod had such a term for, until one was added on trial.
    added: BTreeMap<(String, String), i64>,
    /// Whether the pod matches all its own affinity terms.
    matches_itself: bool,
    namespace_labels: Labels,
    /// The incoming pod's terms.
    terms: Arc<Terms>,
}

/// Terms of the incoming pod, resolved.
struct Terms {
    affinity: Vec<AffinityTerm>,
    anti: Vec<AffinityTerm>,
}

impl RequiredState {
    fn existing_in(&mut self, snapshot: &Snapshot, key: &str) -> usize {
        let known = self.existing.iter().position(|sums| sums.topology.key == key);
        known.unwrap_or_else(|| {
            self.existing.push(DomainSums::new(snapshot.topology(key)));
            self.existing.len() - 1
        })
    }

    /// Counts the terms of existing pods that keep the incoming pod away.
    fn count_existing(&mut self, snapshot: &Snapshot, pod: &PodInfo) {
        for node in snapshot.with_required_anti() {
            for count in &node.classes {
                for term in &count.class.terms.required_anti {
                    if keeps_away(term, pod, &self.namespace_labels) {
                        let place = self.existing_in(snapshot, &term.topology_key);
                        if let Some(sums) = self.existing.get_mut(place) {
                            sums.add(node.index, count.total());
                        }
                    }
                }
            }
        }
    }

    /// Counts the pods that the incoming pod's terms are about.
    fn count_incoming(&mut self, snapshot: &Snapshot) {
        let terms = Arc::clone(&self.terms);
        if terms.affinity.is_empty() && terms.anti.is_empty() {
            return;
        }
        let mut all = ClassMemo::new();
        let mut each: Vec<ClassMemo<bool>> = terms.anti.iter().map(|_| ClassMemo::new()).collect();
        for node in snapshot.views() {
            for count in &node.classes {
                if all.get(&count.class, |class| matches_all(&terms.affinity, class)) {
                    for sums in &mut self.affinity {
                        sums.add(node.index, count.total());
                    }
                }
                for ((term, sums), memo) in terms.anti.iter().zip(&mut self.anti).zip(&mut each) {
                    if memo.get(&count.class, |class| incoming_matches(term, class)) {
                        sums.add(node.index, count.total());
                    }
                }
            }
        }
    }

    /// One pod more or less on a node.
    fn change(&mut self, pod: &PodInfo, other: &PodInfo, node: NodeView<'_>, step: i64) {
        let (terms, class) = (Arc::clone(&self.terms), &other.class);
        for term in class.terms.required_anti.iter().filter(|term| keeps_away(term, pod, &self.namespace_labels)) {
            let key = &term.topology_key;
            if let Some(sums) = self.existing.iter_mut().find(|sums| sums.topology.key == *key) {
                sums.add(node.index, step);
            } else if let Some(value) = node.node.metadata.labels.get(key) {
                *self.added.entry((key.clone(), value.clone())).or_default() += step;
            }
        }
        if matches_all(&terms.affinity, class) {
            for sums in &mut self.affinity {
                sums.add(node.index, step);
            }
        }
        for (term, sums) in terms.anti.iter().zip(&mut self.anti) {
            if incoming_matches(term, class) {
                sums.add(node.index, step);
            }
        }
    }
}

fn keeps_away(term: &AffinityTerm, pod: &PodInfo, namespace_labels: &Labels) -> bool {
    term.matches(&pod.pod.metadata.namespace, &pod.pod.metadata.labels, namespace_labels)
}

fn matches_all(terms: &[AffinityTerm], class: &PodClass) -> bool {
    !terms.is_empty() && terms.iter().all(|term| incoming_matches(term, class))
}

impl PreFilter for InterPodAffinity {
    fn pre_filter(&self, cx: CycleCx<'_>, state: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        let own = &pod.class.terms;
        if !own.error.is_empty() {
            return Err(Status::unresolvable(format!("parsing pod: {}", own.error)));
        }
        let resolved = |terms: &[AffinityTerm]| terms.iter().map(|term| self.resolve(term)).collect();
        let terms = Terms { affinity: resolved(&own.required), anti: resolved(&own.required_anti) };
        let sums = |terms: &[AffinityTerm]| {
            terms.iter().map(|term| DomainSums::new(cx.snapshot.topology(&term.topology_key))).collect()
        };
        let mut required = RequiredState {
            affinity: sums(&terms.affinity),
            anti: sums(&terms.anti),
            existing: Vec::new(),
            added: BTreeMap::new(),
            matches_itself: matches_all(&terms.affinity, &pod.class),
            namespace_labels: self.namespace_labels(&pod.pod.metadata.namespace),
            terms: Arc::new(terms),
        };
        required.count_existing(cx.snapshot, pod);
        if required.existing.iter().all(DomainSums::is_zero) && required.affinity.is_empty() && required.anti.is_empty()
        {
            return Ok(PreFiltered::Skip);
        }
        required.count_incoming(cx.snapshot);
        state.put(required);
        Ok(PreFiltered::All)
    }

    fn add_pod(&self, state: &mut CycleState, pod: &PodInfo, added: &PodInfo, node: NodeView<'_>) -> StatusResult {
        if let Some(required) = state.get_mut::<RequiredState>() {
            required.change(pod, added, node, 1);
        }
        Ok(())
    }

    fn remove_pod(&self, state: &mut CycleState, pod: &PodInfo, removed: &PodInfo, node: NodeView<'_>) -> StatusResult {
        if let Some(required) = state.get_mut::<RequiredState>() {
            required.change(pod, removed, node, -1);
        }
        Ok(())
    }
}

impl Filter for InterPodAffinity {
    fn filter(&self, state: &CycleState, _: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let Some(required) = state.get::<RequiredState>() else { return Ok(()) };
        let near = required.affinity.iter().all(|sums| sums.at(node.index).is_some_and(|pods| pods > 0));
        // The first pod of a group has nobody to be near to but itself.
        let first = || {
            required.matches_itself
                && required.affinity.iter().all(DomainSums::is_zero)
                && required.affinity.iter().all(|sums| sums.at(node.index).is_some())
        };
        if !near && !first() {
            return Err(Status::unresolvable(REASON_AFFINITY));
        }
        let any = |sums: &[DomainSums]| sums.iter().any(|sums| sums.at(node.index).is_some_and(|pods| pods > 0));
        if any(&required.anti) {
            return Err(Status::unschedulable(REASON_ANTI));
        }
        let labels = &node.node.metadata.labels;
        let on_trial = |((key, value), pods): (&(String, String), &i64)| *pods > 0 && labels.get(key) == Some(value);
        if any(&required.existing) || required.added.iter().any(on_trial) {
            return Err(Status::unschedulable(REASON_EXISTING));
        }
        Ok(())
    }
}
