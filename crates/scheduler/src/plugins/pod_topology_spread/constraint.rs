//! The constraints of a pod: its own, or defaults with a selector taken from the services and controllers that select
//! it.

use std::collections::BTreeMap;

use api_machinery::labels::{Operator, Requirement, Selector};
use api_types::core_v1::{Pod, TopologySpreadConstraint};
use component_base::Gates;
use component_base::shared_gates::SPREAD_BY_LABEL_KEYS;
use component_helpers::selectors::selector_of;
use component_helpers::taints::{self, Comparing};
use component_helpers::{node_affinity, owners};

use super::counts::DomainCounts;
use super::{Groups, PodTopologySpread};
use crate::cache::Snapshot;
use crate::framework::Status;
use crate::node_info::NodeView;
use crate::pod_class::{ClassMemo, PodClass};

pub(super) const HARD: &str = "DoNotSchedule";
pub(super) const SOFT: &str = "ScheduleAnyway";

/// What constraints may say, and the pods that they are about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    comparing: Comparing,
    /// Whether `matchLabelKeys` counts (KEP-3243).
    label_keys: bool,
}

impl Reading {
    pub(super) fn by(gates: &Gates) -> Self {
        Self { comparing: Comparing::by(gates), label_keys: gates.enabled(SPREAD_BY_LABEL_KEYS) }
    }
}

/// A constraint, parsed.
#[derive(Debug, Clone)]
pub(super) struct Constraint {
    pub(super) max_skew: i64,
    pub(super) topology_key: String,
    pub(super) selector: Selector,
    pub(super) min_domains: usize,
    honor_affinity: bool,
    pub(super) honor_taints: bool,
    comparing: Comparing,
}

impl Constraint {
    fn parse(constraint: &TopologySpreadConstraint, selector: Selector, reading: Reading) -> Self {
        Self {
            max_skew: i64::from(constraint.max_skew),
            topology_key: constraint.topology_key.clone(),
            selector,
            min_domains: usize::try_from(constraint.min_domains.unwrap_or(1)).unwrap_or(1),
            honor_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            honor_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
            comparing: reading.comparing,
        }
    }

    /// Whether pods on the node count.
    pub(super) fn includes(&self, pod: &Pod, node: NodeView<'_>) -> bool {
        let affinity = !self.honor_affinity || node_affinity::accepts(pod, node.node);
        affinity && (!self.honor_taints || tolerated(pod, node, self.comparing))
    }

    /// Whether pods on every node count, whatever the node is like.
    pub(super) fn includes_all(&self, pod: &Pod) -> bool {
        let affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required =
            affinity.is_some_and(|affinity| affinity.required_during_scheduling_ignored_during_execution.is_some());
        (!self.honor_affinity || (pod.spec.node_selector.is_empty() && !required)) && !self.honor_taints
    }

    /// Adds the pods that count to domains that have a count, where pods on every node count.
    pub(super) fn add_up(&self, namespace: &str, snapshot: &Snapshot, counts: &mut DomainCounts) {
        if self.selector.is_everything() {
            return;
        }
        snapshot.spread(&self.topology_key).for_each(
            namespace,
            |class| self.selector.matches(&class.labels),
            |domain, pods| {
                if counts.get(domain).is_some() {
                    counts.add(domain, pods);
                }
            },
        );
    }

    /// The pods of a node that count: of the namespace, not being deleted, selected. An empty selector counts none.
    pub(super) fn count(&self, namespace: &str, node: NodeView<'_>, memo: &mut ClassMemo<bool>) -> i64 {
        if self.selector.is_everything() {
            return 0;
        }
        let selects = |class: &PodClass| class.namespace == namespace && self.selector.matches(&class.labels);
        let counted = node.classes.iter().filter(|count| count.live > 0 && memo.get(&count.class, selects));
        counted.map(|count| i64::from(count.live)).sum()
    }
}

fn tolerated(pod: &Pod, node: NodeView<'_>, comparing: Comparing) -> bool {
    const HARD: &[&str] = &["NoSchedule", "NoExecute"];
    taints::first_untolerated(&node.node.spec.taints, &pod.spec.tolerations, HARD, comparing).is_none()
}

impl PodTopologySpread {
    /// The constraints of a pod with one action: its own, or the defaults where it has none.
    pub(super) fn constraints(&self, pod: &Pod, action: &str) -> Result<Vec<Constraint>, Status> {
        if pod.spec.topology_spread_constraints.is_empty() {
            return Ok(self.defaults_for(pod, action));
        }
        Self::own_constraints(pod, action, self.reading)
    }

    /// What the pod itself says.
    pub(super) fn own_constraints(pod: &Pod, action: &str, reading: Reading) -> Result<Vec<Constraint>, Status> {
        let own = pod.spec.topology_spread_constraints.iter();
        own.filter(|constraint| constraint.when_unsatisfiable == action)
            .map(|constraint| {
                let mut selector = selector_of(constraint.label_selector.as_ref())
                    .map_err(|error| Status::error(error.to_string()))?;
                if reading.label_keys {
                    selector.extend(key_requirements(constraint, pod));
                }
                Ok(Constraint::parse(constraint, selector, reading))
            })
            .collect()
    }

    fn defaults_for(&self, pod: &Pod, action: &str) -> Vec<Constraint> {
        let wanted = self.defaults.iter().filter(|constraint| constraint.when_unsatisfiable == action);
        let mut wanted = wanted.peekable();
        let (Some(_), Some(groups)) = (wanted.peek(), &self.groups) else { return Vec::new() };
        let selector = default_selector(pod, groups);
        if selector.is_everything() || selector.is_nothing() {
            return Vec::new();
        }
        wanted.map(|constraint| Constraint::parse(constraint, selector.clone(), self.reading)).collect()
    }
}

/// `matchLabelKeys`: pods count when they have the same value as this one.
fn key_requirements(constraint: &TopologySpreadConstraint, pod: &Pod) -> Vec<Requirement> {
    let requirement = |key: &String| {
        let value = pod.metadata.labels.get(key)?;
        Requirement::new(key.clone(), Operator::In, vec![value.clone()]).ok()
    };
    constraint.match_label_keys.iter().filter_map(requirement).collect()
}

/// What selects the pod: its services together, and its controller.
fn default_selector(pod: &Pod, groups: &Groups) -> Selector {
    let namespace = &pod.metadata.namespace;
    let mut pairs = BTreeMap::new();
    for service in groups.services.in_namespace(namespace) {
        let selector = &service.spec.selector;
        let selects =
            !selector.is_empty() && selector.iter().all(|(key, value)| pod.metadata.labels.get(key) == Some(value));
        if selects {
            pairs.extend(selector.clone());
        }
    }
    let mut extra = Vec::new();
    if let Some(owner) = owners::controller_of(&pod.metadata) {
        let field = match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("v1", "ReplicationController") => {
                let controller = groups.replication_controllers.find(namespace, &owner.name);
                pairs.extend(controller.map(|controller| controller.spec.selector.clone()).unwrap_or_default());
                None
            }
            ("apps/v1", "ReplicaSet") => {
                groups.replica_sets.find(namespace, &owner.name).and_then(|set| set.spec.selector.clone())
            }
            ("apps/v1", "StatefulSet") => {
                groups.stateful_sets.find(namespace, &owner.name).and_then(|set| set.spec.selector.clone())
            }
            _ => None,
        };
        if let Some(selector) = field.and_then(|field| selector_of(Some(&field)).ok()) {
            extra.extend(selector.requirements().iter().cloned());
        }
    }
    let mut selector = Selector::from_set(&pairs);
    selector.extend(extra);
    selector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_pod_count_where_that_is_on() {
        let mut pod = Pod::default();
        pod.metadata.labels.insert("hash".into(), "1".into());
        pod.spec.topology_spread_constraints.push(TopologySpreadConstraint {
            when_unsatisfiable: HARD.into(),
            label_selector: Some(Default::default()),
            match_label_keys: vec!["hash".into(), "missing".into()],
            ..TopologySpreadConstraint::default()
        });
        let other = BTreeMap::from([("hash".to_owned(), "2".to_owned())]);
        for (on, expected) in [(true, false), (false, true)] {
            let reading = Reading::by(&Gates::default().with(SPREAD_BY_LABEL_KEYS, on));
            let own = PodTopologySpread::own_constraints(&pod, HARD, reading).expect("a constraint");
            assert!(own[0].selector.matches(&pod.metadata.labels));
            assert_eq!(own[0].selector.matches(&other), expected, "{on}");
        }
    }
}
