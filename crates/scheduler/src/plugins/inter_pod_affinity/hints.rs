//! What may help a pod that was kept away from every node by affinity rules.

use std::sync::Arc;

use api_types::core_v1::{Node, Pod};

use super::Labels;
use crate::framework::{Action, EventObject, Hint, Registration, Resource, is_placed};
use crate::pod_info::{AffinityTerm, AffinityTerms};

pub(super) fn registrations() -> Vec<Registration> {
    let pods = Action::ADD.and(Action::POD_LABEL).and(Action::DELETE);
    vec![
        Registration::hinted(Resource::Pod, pods, after_pod),
        Registration::hinted(Resource::Node, Action::ADD.and(Action::NODE_LABEL), after_node),
    ]
}

fn terms_of(pod: &Pod) -> AffinityTerms {
    AffinityTerms::parse(pod.spec.affinity.as_ref(), &pod.metadata.namespace)
}

/// Namespace labels are not known here: terms count by name, or with a selector that takes every namespace.
fn matches_all(terms: &[AffinityTerm], pod: &Pod) -> bool {
    let none = Labels::new();
    !terms.is_empty() && terms.iter().all(|term| term.matches(&pod.metadata.namespace, &pod.metadata.labels, &none))
}

fn after_pod(pod: &Pod, object: &EventObject) -> Hint {
    let EventObject::Pod { old, new } = object else { return Hint::Queue };
    let Some(target) = object.pod() else { return Hint::Queue };
    if let (Some(_), Some(new)) = (old, new)
        && new.metadata.uid == pod.metadata.uid
    {
        return Hint::Queue;
    }
    if !is_placed(target) {
        return Hint::Skip;
    }
    let terms = terms_of(pod);
    match (old, new) {
        (Some(old), Some(new)) => {
            let came = !matches_all(&terms.required, old) && matches_all(&terms.required, new);
            let went = matches_all(&terms.required_anti, old) && !matches_all(&terms.required_anti, new);
            Hint::queue_if(came || went)
        }
        (None, Some(added)) => Hint::queue_if(matches_all(&terms.required, added)),
        (Some(deleted), None) => {
            let kept_away = matches_all(&terms.required_anti, deleted);
            Hint::queue_if(kept_away || matches_all(&terms_of(deleted).required_anti, pod))
        }
        (None, None) => Hint::Queue,
    }
}

fn after_node(pod: &Pod, object: &EventObject) -> Hint {
    let EventObject::Node { old, new: Some(new) } = object else { return Hint::Queue };
    let terms = terms_of(pod);
    let value = |node: Option<&Arc<Node>>, term: &AffinityTerm| {
        node.and_then(|node| node.metadata.labels.get(&term.topology_key)).cloned()
    };
    let near = terms.required.iter().any(|term| {
        let now = value(Some(new), term);
        now.is_some() && now != value(old.as_ref(), term)
    });
    let far = match old {
        None => !terms.required_anti.is_empty(),
        Some(old) => terms.required_anti.iter().any(|term| {
            let before = value(Some(old), term);
            before.is_some() && before != value(Some(new), term)
        }),
    };
    Hint::queue_if(near || far)
}
