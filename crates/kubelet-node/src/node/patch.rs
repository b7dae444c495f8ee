//! The difference between two states of the node's object, as a strategic merge patch of its status.

use api_machinery::reflect::Reflect;
use api_machinery::value::{struct_to_map, to_value};
use api_types::core_v1::{Node, NodeStatus};
use serde_json::{Map, Value, json};

/// Lists that are replaced as a whole, whatever their merge keys say: two addresses may be of one type.
const REPLACED: [&str; 1] = ["addresses"];

/// The patch from `old` to `new`; nothing when they are equal.
pub(super) fn of(old: &Node, new: &Node) -> Option<Value> {
    let status = status(&old.status, &new.status);
    let mut meta = Map::new();
    for (name, old, new) in [
        ("labels", &old.metadata.labels, &new.metadata.labels),
        ("annotations", &old.metadata.annotations, &new.metadata.annotations),
    ] {
        let changed = map(&to_value(old), &to_value(new));
        if !changed.is_empty() {
            meta.insert(name.to_owned(), Value::Object(changed));
        }
    }
    let mut patch = Map::new();
    if !meta.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(meta));
    }
    if !status.is_empty() {
        patch.insert("status".to_owned(), Value::Object(status));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

fn status(old: &NodeStatus, new: &NodeStatus) -> Map<String, Value> {
    let (old, new) = (struct_to_map(old as &dyn Reflect), struct_to_map(new as &dyn Reflect));
    let mut patch = Map::new();
    for (name, value) in &new {
        let before = old.get(name);
        if before == Some(value) {
            continue;
        }
        let change = match value {
            Value::Object(_) => Value::Object(map(before.unwrap_or(&Value::Null), value)),
            Value::Array(items) if REPLACED.contains(&name.as_str()) => {
                let mut items = items.clone();
                items.push(json!({"$patch": "replace"}));
                Value::Array(items)
            }
            other => other.clone(),
        };
        patch.insert(name.clone(), change);
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    patch
}

/// Changed members, and null for those that are gone.
fn map(old: &Value, new: &Value) -> Map<String, Value> {
    let empty = Map::new();
    let (old, new) = (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
    let mut patch = Map::new();
    for (name, value) in new.iter().filter(|(name, value)| old.get(*name) != Some(value)) {
        patch.insert(name.clone(), value.clone());
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    patch
}

/// Whether two states differ by more than heartbeats.
pub(super) fn differs(old: &NodeStatus, new: &NodeStatus) -> bool {
    let without_heartbeats = |status: &NodeStatus| {
        let mut status = status.clone();
        status.conditions.iter_mut().for_each(|condition| condition.last_heartbeat_time = Default::default());
        status
    };
    without_heartbeats(old) != without_heartbeats(new)
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_machinery::time::Time;
    use api_types::core_v1::{NodeAddress, NodeCondition};

    use super::*;

    #[test]
    fn only_changes_are_sent() {
        let mut old = Node::default();
        old.metadata.annotations = [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "1".to_owned())].into();
        old.status.capacity.insert("cpu".into(), Quantity::parse("1").unwrap());
        old.status.capacity.insert("old".into(), Quantity::parse("1").unwrap());
        old.status.addresses = vec![NodeAddress { type_: "InternalIP".into(), address: "1.1.1.1".into() }];
        assert_eq!(of(&old, &old.clone()), None);
        let mut new = old.clone();
        new.metadata.annotations = [("a".to_owned(), "2".to_owned())].into();
        new.status.capacity.insert("cpu".into(), Quantity::parse("2").unwrap());
        new.status.capacity.remove("old");
        new.status.addresses.push(NodeAddress { type_: "InternalIP".into(), address: "fd00::1".into() });
        let expected = json!({
            "metadata": {"annotations": {"a": "2", "b": null}},
            "status": {
                "capacity": {"cpu": "2", "old": null},
                "addresses": [
                    {"type": "InternalIP", "address": "1.1.1.1"},
                    {"type": "InternalIP", "address": "fd00::1"},
                    {"$patch": "replace"},
                ],
            },
        });
        assert_eq!(of(&old, &new), Some(expected));
    }

    #[test]
    fn heartbeats_alone_are_no_difference() {
        let condition = |heartbeat: i64, status: &str| NodeCondition {
            type_: "Ready".into(),
            status: status.into(),
            last_heartbeat_time: Time::from_unix_seconds(heartbeat),
            ..NodeCondition::default()
        };
        let status = |heartbeat, status: &str| NodeStatus {
            conditions: vec![condition(heartbeat, status)],
            ..NodeStatus::default()
        };
        assert!(!differs(&status(1, "True"), &status(2, "True")));
        assert!(differs(&status(1, "True"), &status(1, "False")));
    }
}
