//! What a daemon pod has on top of its template: the node it is for, tolerations and revision labels.

use api_types::apps_v1::DaemonSet;
use api_types::apps_v1::constants::{
    DEFAULT_DAEMON_SET_UNIQUE_LABEL_KEY as HASH_LABEL, DEPRECATED_TEMPLATE_GENERATION as GENERATION_ANNOTATION,
};
use api_types::core_v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration};
use controller::controller_ref;

use super::super::pod_control::pod_from_template;

/// The label of pods from before there were hashes.
const GENERATION_LABEL: &str = "pod-template-generation";
/// The one field of nodes that affinity can name.
pub(super) const NODE_NAME_FIELD: &str = "metadata.name";

const TOLERATED: &[(&str, &str)] = &[
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// Tolerated by pods that bring no network of their own.
const WITHOUT_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// Adds what every daemon pod tolerates.
pub(super) fn add_tolerations(spec: &mut PodSpec) {
    let network = spec.host_network.then_some(&WITHOUT_NETWORK);
    for (key, effect) in TOLERATED.iter().chain(network) {
        let toleration = Toleration {
            key: (*key).to_owned(),
            operator: "Exists".to_owned(),
            effect: (*effect).to_owned(),
            ..Toleration::default()
        };
        let same = |other: &&mut Toleration| {
            (&other.key, &other.effect, &other.operator, &other.value)
                == (&toleration.key, &toleration.effect, &toleration.operator, &toleration.value)
        };
        match spec.tolerations.iter_mut().find(same) {
            Some(other) => *other = toleration,
            None => spec.tolerations.push(toleration),
        }
    }
}

/// The generation by which old releases marked pods, where the set still has one.
fn template_generation(set: &DaemonSet) -> Option<i64> {
    set.metadata.annotations.get(GENERATION_ANNOTATION)?.parse().ok()
}

/// Whether the pod is of the set's current template.
pub(super) fn is_updated(set: &DaemonSet, pod: &Pod, hash: &str) -> bool {
    let label = |key: &str| pod.metadata.labels.get(key);
    let by_generation = template_generation(set)
        .is_some_and(|generation| label(GENERATION_LABEL).is_some_and(|value| *value == generation.to_string()));
    by_generation || (!hash.is_empty() && label(HASH_LABEL).is_some_and(|value| value == hash))
}

/// The pod of a set for a node. The scheduler binds it.
pub(super) fn pod_for(set: &DaemonSet, node: &str, hash: &str) -> Pod {
    let mut pod = pod_from_template(&set.spec.template, &set.metadata, controller_ref::<DaemonSet>(&set.metadata));
    pod.metadata.labels.insert(HASH_LABEL.to_owned(), hash.to_owned());
    if let Some(generation) = template_generation(set) {
        pod.metadata.labels.insert(GENERATION_LABEL.to_owned(), generation.to_string());
    }
    add_tolerations(&mut pod.spec);
    let this_node = NodeSelectorRequirement {
        key: NODE_NAME_FIELD.to_owned(),
        operator: "In".to_owned(),
        values: vec![node.to_owned()],
    };
    let term = NodeSelectorTerm { match_fields: vec![this_node], ..NodeSelectorTerm::default() };
    // The template's own terms have done their work when the node was chosen.
    let affinity = pod.spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
    pod
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{meta, template};
    use super::super::placement::node_of;
    use super::*;

    #[test]
    fn pods_are_made_for_their_node() {
        let mut set = DaemonSet { metadata: meta("d"), ..DaemonSet::default() };
        set.spec.template = template("v1");
        set.spec.template.spec.tolerations.push(Toleration {
            key: "node.kubernetes.io/not-ready".into(),
            operator: "Exists".into(),
            effect: "NoExecute".into(),
            toleration_seconds: Some(5),
            ..Toleration::default()
        });
        let pod = pod_for(&set, "n", "h");
        assert_eq!(node_of(&pod), Some("n"));
        assert_eq!(pod.spec.tolerations.len(), TOLERATED.len(), "replaced, not doubled");
        assert_eq!(pod.spec.tolerations[0].toleration_seconds, None);
        assert!(is_updated(&set, &pod, "h") && !is_updated(&set, &pod, "i"));
        set.metadata.annotations.insert(GENERATION_ANNOTATION.into(), "7".into());
        assert!(is_updated(&set, &pod_for(&set, "n", "h"), "i"), "the old mark is enough");
    }
}
