//! JSON pointers (RFC 6901).

use serde_json::{Map, Value};

/// A container that holds the last step of a path.
pub(super) enum Slot<'a> {
    Map(&'a mut Map<String, Value>),
    List(&'a mut Vec<Value>),
}

/// The container that a path's last step belongs to, and that step; `None` where a container on the way is missing.
pub(super) fn parent_of<'a>(document: &'a mut Value, path: &str) -> Option<(Slot<'a>, String)> {
    let mut steps: Vec<String> = path.strip_prefix('/')?.split('/').map(unescape).collect();
    let last = steps.pop()?;
    let mut place = document;
    for step in steps {
        place = match place {
            Value::Object(map) => map.get_mut(&step)?,
            Value::Array(list) => {
                let index = super::position(&step, list.len()).ok()?;
                list.get_mut(index)?
            }
            _ => return None,
        };
    }
    match place {
        Value::Object(map) => Some((Slot::Map(map), last)),
        Value::Array(list) => Some((Slot::List(list), last)),
        _ => None,
    }
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
