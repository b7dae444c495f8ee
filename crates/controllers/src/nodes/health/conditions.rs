//! The conditions of a node, as the health monitor sees and writes them.

use api_machinery::time::Time;
use api_types::core_v1::{Node, NodeCondition};
use component_helpers::conditions;

pub(super) const READY: &str = "Ready";
pub(super) const UNKNOWN: &str = "Unknown";
/// What a silent kubelet no longer tells.
const SILENCED: &[&str] = &[READY, "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The node's own word on whether it is ready.
pub(super) fn ready(node: &Node) -> Option<&NodeCondition> {
    conditions::find(&node.status.conditions, READY)
}

/// Says of a silent node that nothing is known of it. Says whether its readiness changed by that.
pub(super) fn silence(node: &mut Node, now: Time) -> bool {
    let before = ready(node).map(|ready| ready.status.clone());
    let created = node.metadata.creation_timestamp;
    for kind in SILENCED {
        let conditions = &mut node.status.conditions;
        match conditions.iter_mut().find(|condition| condition.type_ == *kind) {
            Some(condition) if condition.status == UNKNOWN => {}
            Some(condition) => {
                UNKNOWN.clone_into(&mut condition.status);
                "NodeStatusUnknown".clone_into(&mut condition.reason);
                "Kubelet stopped posting node status.".clone_into(&mut condition.message);
                condition.last_transition_time = now;
            }
            None => conditions.push(NodeCondition {
                type_: (*kind).to_owned(),
                status: UNKNOWN.to_owned(),
                reason: "NodeStatusNeverUpdated".to_owned(),
                message: "Kubelet never posted node status.".to_owned(),
                last_heartbeat_time: created,
                last_transition_time: now,
            }),
        }
    }
    ready(node).map(|ready| ready.status.clone()) != before
}
