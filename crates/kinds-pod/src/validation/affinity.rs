//! Rules of affinity to nodes and to other pods.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::meta::LabelSelector;
use api_machinery::names;
use api_types::core_v1::{
    NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, PodSpec,
    WeightedPodAffinityTerm,
};
use kinds_frame::field_rules as rules;
use kinds_frame::label_selector::{self, Values};

use super::Around;

/// Whether values of node labels must be label values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeValues {
    /// They must.
    Checked,
    /// Preferred terms, and objects that already hold a bad one.
    Free,
}

pub(super) fn validate(around: &Around<'_>, path: &Path, errors: &mut ErrorList) {
    let Some(affinity) = &around.spec.affinity else { return };
    let path = path.child("affinity");
    if let Some(nodes) = &affinity.node_affinity {
        let values = if around.stored(has_bad_node_value) { NodeValues::Free } else { NodeValues::Checked };
        validate_nodes(nodes, values, &path.child("nodeAffinity"), errors);
    }
    let values = if around.stored(has_bad_selector) { Values::AsStored } else { Values::Checked };
    if let Some(pods) = &affinity.pod_affinity {
        let required = &pods.required_during_scheduling_ignored_during_execution;
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        validate_pods(required, preferred, values, &path.child("podAffinity"), errors);
    }
    if let Some(pods) = &affinity.pod_anti_affinity {
        let required = &pods.required_during_scheduling_ignored_during_execution;
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        validate_pods(required, preferred, values, &path.child("podAntiAffinity"), errors);
    }
}

fn has_bad_node_value(spec: &PodSpec) -> bool {
    let terms = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = terms.and_then(|terms| terms.required_during_scheduling_ignored_during_execution.as_ref());
    let bad = |requirement: &NodeSelectorRequirement| {
        requirement.values.iter().any(|value| !names::label_value(value).is_empty())
    };
    required
        .is_some_and(|required| required.node_selector_terms.iter().any(|term| term.match_expressions.iter().any(bad)))
}

/// Every term of affinity and anti-affinity, required and preferred.
pub(crate) fn pod_terms(spec: &PodSpec) -> Vec<&PodAffinityTerm> {
    let Some(affinity) = &spec.affinity else { return Vec::new() };
    let mut terms: Vec<&PodAffinityTerm> = Vec::new();
    if let Some(pods) = &affinity.pod_affinity {
        terms.extend(&pods.required_during_scheduling_ignored_during_execution);
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        terms.extend(preferred.iter().map(|weighted| &weighted.pod_affinity_term));
    }
    if let Some(pods) = &affinity.pod_anti_affinity {
        terms.extend(&pods.required_during_scheduling_ignored_during_execution);
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        terms.extend(preferred.iter().map(|weighted| &weighted.pod_affinity_term));
    }
    terms
}

fn has_bad_selector(spec: &PodSpec) -> bool {
    let bad = |selector: &Option<LabelSelector>| selector.as_ref().is_some_and(label_selector::is_bad);
    pod_terms(spec).into_iter().any(|term| bad(&term.label_selector) || bad(&term.namespace_selector))
}

fn validate_nodes(affinity: &NodeAffinity, values: NodeValues, path: &Path, errors: &mut ErrorList) {
    if let Some(selector) = &affinity.required_during_scheduling_ignored_during_execution {
        node_selector(&path.child("requiredDuringSchedulingIgnoredDuringExecution"), selector, values, errors);
    }
    let path = path.child("preferredDuringSchedulingIgnoredDuringExecution");
    for (index, preferred) in affinity.preferred_during_scheduling_ignored_during_execution.iter().enumerate() {
        let path = path.index(index);
        validate_weight(preferred.weight, &path, errors);
        validate_node_term(&preferred.preference, NodeValues::Free, &path.child("preference"), errors);
    }
}

fn validate_weight(weight: i32, path: &Path, errors: &mut ErrorList) {
    if !(1..=100).contains(&weight) {
        errors.push(path.child("weight").invalid(weight, "must be in the range 1-100"));
    }
}

/// Checks a selector of nodes, as pods and persistent volumes have them.
pub fn node_selector(path: &Path, selector: &NodeSelector, values: NodeValues, errors: &mut ErrorList) {
    let path = path.child("nodeSelectorTerms");
    if selector.node_selector_terms.is_empty() {
        errors.push(path.required("must have at least one node selector term"));
    }
    for (index, term) in selector.node_selector_terms.iter().enumerate() {
        validate_node_term(term, values, &path.index(index), errors);
    }
}

fn validate_node_term(term: &NodeSelectorTerm, values: NodeValues, path: &Path, errors: &mut ErrorList) {
    for (index, requirement) in term.match_expressions.iter().enumerate() {
        validate_expression(requirement, values, &path.child("matchExpressions").index(index), errors);
    }
    for (index, requirement) in term.match_fields.iter().enumerate() {
        validate_field(requirement, &path.child("matchFields").index(index), errors);
    }
}

fn validate_expression(requirement: &NodeSelectorRequirement, values: NodeValues, path: &Path, errors: &mut ErrorList) {
    let at = path.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if requirement.values.is_empty() => {
            errors.push(at.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !requirement.values.is_empty() => {
            errors.push(at.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        "Gt" | "Lt" if requirement.values.len() != 1 => {
            errors.push(at.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => errors.push(path.child("operator").invalid(BadValue::named(other), "not a valid selector operator")),
    }
    errors.push_invalid(&path.child("key"), &requirement.key, names::qualified_name(&requirement.key));
    if values == NodeValues::Checked {
        for (index, value) in requirement.values.iter().enumerate() {
            errors.push_invalid(&at.index(index), value, names::label_value(value));
        }
    }
}

fn validate_field(requirement: &NodeSelectorRequirement, path: &Path, errors: &mut ErrorList) {
    match requirement.operator.as_str() {
        "In" | "NotIn" if requirement.values.len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(path.child("values").required(detail));
        }
        "In" | "NotIn" => {}
        other => errors.push(path.child("operator").invalid(BadValue::named(other), "not a valid selector operator")),
    }
    if requirement.key != "metadata.name" {
        errors.push(path.child("key").invalid(requirement.key.as_str(), "not a valid field selector key"));
        return;
    }
    for (index, value) in requirement.values.iter().enumerate() {
        errors.push_invalid(&path.child("values").index(index), value, names::dns1123_subdomain(value));
    }
}

fn validate_pods(
    required: &[PodAffinityTerm],
    preferred: &[WeightedPodAffinityTerm],
    values: Values,
    path: &Path,
    errors: &mut ErrorList,
) {
    let at = path.child("requiredDuringSchedulingIgnoredDuringExecution");
    for (index, term) in required.iter().enumerate() {
        validate_pod_term(term, values, &at.index(index), errors);
    }
    let at = path.child("preferredDuringSchedulingIgnoredDuringExecution");
    for (index, weighted) in preferred.iter().enumerate() {
        let at = at.index(index);
        validate_weight(weighted.weight, &at, errors);
        validate_pod_term(&weighted.pod_affinity_term, values, &at.child("podAffinityTerm"), errors);
    }
}

fn validate_pod_term(term: &PodAffinityTerm, values: Values, path: &Path, errors: &mut ErrorList) {
    for (field, selector) in [("labelSelector", &term.label_selector), ("namespaceSelector", &term.namespace_selector)]
    {
        if let Some(selector) = selector {
            label_selector::validate(&path.child(field), selector, values, errors);
        }
    }
    for namespace in &term.namespaces {
        errors.push_invalid(&path.child("namespace"), namespace, names::dns1123_label(namespace));
    }
    validate_label_keys(&term.match_label_keys, &term.mismatch_label_keys, &term.label_selector, path, errors);
    let at = path.child("topologyKey");
    if term.topology_key.is_empty() {
        errors.push(at.required("can not be empty"));
    }
    let rule: rules::NameRule = names::qualified_name;
    errors.push_invalid(&at, &term.topology_key, rule(&term.topology_key));
}

/// Keys whose values are taken from the pod's labels; the server itself appends one expression for each.
pub(super) fn validate_label_keys(
    keys: &[String],
    mismatch: &[String],
    selector: &Option<LabelSelector>,
    path: &Path,
    errors: &mut ErrorList,
) {
    for (field, list) in [("matchLabelKeys", keys), ("mismatchLabelKeys", mismatch)] {
        let at = path.child(field);
        if !list.is_empty() && selector.is_none() {
            errors.push(at.forbidden("must not be specified when labelSelector is not set"));
        }
        for (index, key) in list.iter().enumerate() {
            errors.push_invalid(&at.index(index), key, names::qualified_name(key));
        }
    }
    if let Some(selector) = selector {
        refuse_double_keys(keys, selector, path, errors);
    }
    for (index, key) in keys.iter().enumerate().filter(|(_, key)| mismatch.contains(key)) {
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.push(path.child("matchLabelKeys").index(index).invalid(key.as_str(), detail));
    }
}

fn refuse_double_keys(keys: &[String], selector: &LabelSelector, path: &Path, errors: &mut ErrorList) {
    let mut seen: BTreeSet<&str> = selector.match_labels.keys().map(String::as_str).collect();
    for requirement in &selector.match_expressions {
        let first = seen.insert(requirement.key.as_str());
        if let Some(index) = keys.iter().position(|key| *key == requirement.key)
            && !first
        {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(path.index(index).invalid(requirement.key.as_str(), detail));
        }
    }
}
