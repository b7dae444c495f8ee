//! The node's conditions.

use std::collections::BTreeSet;

use api_machinery::time::Time;
use api_types::core_v1::NodeCondition;

/// Reasons, messages and event reasons of one condition.
struct Words {
    type_: &'static str,
    /// When there is pressure: reason, message, event.
    yes: [&'static str; 3],
    /// When there is none.
    no: [&'static str; 3],
}

const PRESSURES: [Words; 3] = [
    Words {
        type_: "MemoryPressure",
        yes: ["KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "NodeHasInsufficientMemory"],
        no: ["KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"],
    },
    Words {
        type_: "DiskPressure",
        yes: ["KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"],
        no: ["KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"],
    },
    Words {
        type_: "PIDPressure",
        yes: ["KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"],
        no: ["KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"],
    },
];

/// What the conditions are made from.
#[derive(Debug, Clone, Default)]
pub(super) struct Health {
    /// Pressures that are on.
    pub(super) pressures: BTreeSet<String>,
    /// Why the node is not ready.
    pub(super) errors: Vec<String>,
    /// Whether processor limits cannot be enforced.
    pub(super) lacks_quota: bool,
}

/// Brings the conditions up to date in place; others' are left alone. Returns the reasons of the events to send.
pub(super) fn update(conditions: &mut Vec<NodeCondition>, health: &Health, now: Time) -> Vec<&'static str> {
    let mut events = Vec::new();
    for words in &PRESSURES {
        let on = health.pressures.contains(words.type_);
        let [reason, message, event] = if on { words.yes } else { words.no };
        if set(conditions, words.type_, on, reason, message.to_owned(), now) {
            events.push(event);
        }
    }
    let ready = health.errors.is_empty();
    let (reason, message, event) = match health.errors.as_slice() {
        [] => {
            let mut text = "kubelet is posting ready status".to_owned();
            if health.lacks_quota {
                text.push_str(". WARNING: CPU hardcapping unsupported");
            }
            ("KubeletReady", text, "NodeReady")
        }
        [one] => ("KubeletNotReady", one.clone(), "NodeNotReady"),
        many => ("KubeletNotReady", format!("[{}]", many.join(", ")), "NodeNotReady"),
    };
    if set(conditions, "Ready", ready, reason, message, now) {
        events.push(event);
    }
    events
}

/// Sets one condition; whether its status is another than before.
fn set(conditions: &mut Vec<NodeCondition>, type_: &str, on: bool, reason: &str, message: String, now: Time) -> bool {
    let status = if on { "True" } else { "False" };
    let index = conditions.iter().position(|condition| condition.type_ == type_);
    let index = index.unwrap_or_else(|| {
        conditions.push(NodeCondition { type_: type_.to_owned(), ..NodeCondition::default() });
        conditions.len() - 1
    });
    let Some(condition) = conditions.get_mut(index) else { return false };
    let changed = condition.status != status;
    if changed {
        condition.last_transition_time = now;
        status.clone_into(&mut condition.status);
    }
    condition.last_heartbeat_time = now;
    reason.clone_into(&mut condition.reason);
    condition.message = message;
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_follow_health() {
        let at = Time::from_unix_seconds;
        let foreign =
            NodeCondition { type_: "NetworkUnavailable".into(), status: "False".into(), ..Default::default() };
        let mut conditions = vec![foreign];
        let starting = Health { errors: vec!["a".into(), "b".into()], ..Health::default() };
        let events = update(&mut conditions, &starting, at(1));
        assert_eq!(
            events,
            ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeNotReady"]
        );
        let types: Vec<&str> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]);
        assert_eq!(conditions[4].message, "[a, b]");

        let well = Health { pressures: ["DiskPressure".to_owned()].into(), ..Health::default() };
        assert_eq!(update(&mut conditions, &well, at(2)), ["NodeHasDiskPressure", "NodeReady"]);
        let ready = &conditions[4];
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "KubeletReady"));
        assert_eq!((ready.last_transition_time, ready.last_heartbeat_time), (at(2), at(2)));
        assert!(update(&mut conditions, &well, at(3)).is_empty());
        assert_eq!((conditions[4].last_transition_time, conditions[4].last_heartbeat_time), (at(2), at(3)));
    }
}
