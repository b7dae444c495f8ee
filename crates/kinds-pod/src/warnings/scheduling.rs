//! Warnings of where pods may run: labels of nodes that have gone out of use, and selectors that select nothing.

use api_machinery::field_path::Path;
use api_machinery::names;
use api_types::core_v1::{NodeAffinity, NodeSelectorTerm, PodAffinityTerm, PodSpec, WeightedPodAffinityTerm};

use super::deprecated_label;

const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// What is told of the whole; `path` is the spec's.
pub(super) fn of(path: &Path, spec: &PodSpec, texts: &mut Vec<String>) {
    for key in spec.node_selector.keys() {
        if let Some(text) = deprecated_label(key) {
            texts.push(format!("{}: {text}", path.child("nodeSelector").key(key)));
        }
    }
    let affinity = path.child("affinity");
    if let Some(nodes) = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref()) {
        of_nodes(&affinity.child("nodeAffinity"), nodes, texts);
    }
    for (index, constraint) in spec.topology_spread_constraints.iter().enumerate() {
        let at = path.child("topologySpreadConstraints").index(index);
        let key = &constraint.topology_key;
        if let Some(text) = deprecated_label(key) {
            texts.push(format!("{}: {key} is {text}", at.child("topologyKey")));
        }
        if constraint.label_selector.is_none() {
            texts.push(format!("{}: {NULL_SELECTOR}", at.child("labelSelector")));
        }
    }
    let Some(all) = &spec.affinity else { return };
    if let Some(pods) = &all.pod_affinity {
        let required = &pods.required_during_scheduling_ignored_during_execution;
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        of_pods(&affinity.child("podAffinity"), required, preferred, texts);
    }
    if let Some(pods) = &all.pod_anti_affinity {
        let required = &pods.required_during_scheduling_ignored_during_execution;
        let preferred = &pods.preferred_during_scheduling_ignored_during_execution;
        of_pods(&affinity.child("podAntiAffinity"), required, preferred, texts);
    }
}

fn of_nodes(path: &Path, affinity: &NodeAffinity, texts: &mut Vec<String>) {
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref();
    let at = path.child(REQUIRED).child("nodeSelectorTerms");
    for (index, term) in required.iter().flat_map(|selector| &selector.node_selector_terms).enumerate() {
        of_term(&at.index(index), term, texts);
    }
    for (index, preferred) in affinity.preferred_during_scheduling_ignored_during_execution.iter().enumerate() {
        let at = path.child(PREFERRED).index(index).child("preference");
        of_term(&at, &preferred.preference, texts);
        for (index, requirement) in preferred.preference.match_expressions.iter().enumerate() {
            let at = at.child("matchExpressions").index(index).child("values");
            for (index, value) in requirement.values.iter().enumerate() {
                let problems = names::label_value(value).into_iter();
                texts.extend(problems.map(|problem| format!("{}: {value} is invalid, {problem}", at.index(index))));
            }
        }
    }
}

/// What is told of the keys of a term's expressions.
pub fn of_term(path: &Path, term: &NodeSelectorTerm, texts: &mut Vec<String>) {
    for (index, requirement) in term.match_expressions.iter().enumerate() {
        let key = &requirement.key;
        if let Some(text) = deprecated_label(key) {
            let at = path.child("matchExpressions").index(index).child("key");
            texts.push(format!("{at}: {key} is {text}"));
        }
    }
}

fn of_pods(path: &Path, required: &[PodAffinityTerm], preferred: &[WeightedPodAffinityTerm], texts: &mut Vec<String>) {
    let mut look = |path: Path, term: &PodAffinityTerm| {
        if term.label_selector.is_none() {
            texts.push(format!("{}: {NULL_SELECTOR}", path.child("labelSelector")));
        }
    };
    for (index, term) in required.iter().enumerate() {
        look(path.child(REQUIRED).index(index), term);
    }
    for (index, weighted) in preferred.iter().enumerate() {
        look(path.child(PREFERRED).index(index).child("podAffinityTerm"), &weighted.pod_affinity_term);
    }
}
