//! What may help a pod that no node could take without breaking a hard constraint.

use api_types::core_v1::{Node, Pod};

use super::PodTopologySpread;
use super::constraint::{Constraint, HARD, Reading};
use crate::framework::{Action, EventObject, Hint, Registration, Resource, is_placed};

pub(super) fn registrations(reading: Reading) -> Vec<Registration> {
    let pods = Action::ADD.and(Action::DELETE).and(Action::POD_LABEL).and(Action::POD_TOLERATION);
    let nodes = Action::ADD.and(Action::DELETE).and(Action::NODE_LABEL).and(Action::NODE_TAINT);
    vec![
        Registration::hinted(Resource::Pod, pods, move |pod: &Pod, object| {
            hard(pod, reading).map_or(Hint::Queue, |hard| after_pod(&hard, pod, object))
        }),
        Registration::hinted(Resource::Node, nodes, move |pod: &Pod, object| {
            hard(pod, reading).map_or(Hint::Queue, |hard| after_node(&hard, object))
        }),
    ]
}

/// The pod's own hard constraints. With default ones, or ones that cannot be read, every event counts.
fn hard(pod: &Pod, reading: Reading) -> Option<Vec<Constraint>> {
    let own = PodTopologySpread::own_constraints(pod, HARD, reading).ok()?;
    (!own.is_empty()).then_some(own)
}

fn after_pod(hard: &[Constraint], pod: &Pod, object: &EventObject) -> Hint {
    let EventObject::Pod { old, new } = object else { return Hint::Queue };
    let Some(target) = object.pod() else { return Hint::Queue };
    let same = target.metadata.uid == pod.metadata.uid;
    let beside = is_placed(target) && target.metadata.namespace == pod.metadata.namespace;
    if !same && !beside {
        return Hint::Skip;
    }
    let (Some(old), Some(new)) = (old, new) else {
        return Hint::queue_if(hard.iter().any(|one| one.selector.matches(&target.metadata.labels)));
    };
    let tolerations = same
        && old.spec.tolerations.len() != new.spec.tolerations.len()
        && hard.iter().any(|constraint| constraint.honor_taints);
    let matches = |constraint: &Constraint, pod: &Pod| constraint.selector.matches(&pod.metadata.labels);
    Hint::queue_if(tolerations || hard.iter().any(|one| matches(one, old) != matches(one, new)))
}

fn after_node(hard: &[Constraint], object: &EventObject) -> Hint {
    let EventObject::Node { old, new } = object else { return Hint::Queue };
    let value = |node: &Node, constraint: &Constraint| node.metadata.labels.get(&constraint.topology_key).cloned();
    let has_all = |node: &Node| hard.iter().all(|constraint| value(node, constraint).is_some());
    match (old, new) {
        (Some(old), Some(new)) => {
            let changed = hard.iter().any(|constraint| value(old, constraint) != value(new, constraint));
            let differs = changed || old.spec.taints != new.spec.taints;
            Hint::queue_if(has_all(old) != has_all(new) || (has_all(new) && differs))
        }
        (Some(node), None) | (None, Some(node)) => Hint::queue_if(has_all(node)),
        (None, None) => Hint::Queue,
    }
}
