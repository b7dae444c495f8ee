//! Strategic merge patch: a merge patch that knows how the lists of built-in kinds are keyed.
//!
//! Concept: <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md>

use serde_json::{Map, Value};

use crate::type_node::TypeNode;

mod lists;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_PREFIX: &str = "$deleteFromPrimitiveList/";
const ORDER_PREFIX: &str = "$setElementOrder/";

/// Why a patch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategicError {
    /// The document or patch is no object: a bad request.
    #[error("invalid JSON document")]
    NotAnObject,
    /// A directive has the wrong form: a bad request. The field holds what the list is of.
    #[error("invalid patch format of {0}")]
    BadFormat(&'static str),
    /// The patch changes members that it does not retain: a bad request, told like a list of the wrong form.
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    /// Unprocessable.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// Everything else: an internal error, as upstream answers it.
    #[error("{0}")]
    Other(String),
}

impl StrategicError {
    /// The HTTP status that upstream answers with.
    pub const fn code(&self) -> u16 {
        match self {
            Self::NotAnObject | Self::BadFormat(_) | Self::RetainKeys => 400,
            Self::ListOfLists => 422,
            Self::Other(_) => 500,
        }
    }
}

/// The document after the patch; `node` is the type of both.
pub fn apply(document: Value, patch: &Value, node: TypeNode<'_>) -> Result<Value, StrategicError> {
    match (document, patch) {
        (Value::Object(document), Value::Object(patch)) => merge_map(document, patch.clone(), node).map(Value::Object),
        _ => Err(StrategicError::NotAnObject),
    }
}

fn member_type<'a>(node: TypeNode<'a>, name: &str) -> TypeNode<'a> {
    node.member(name).unwrap_or(TypeNode::deduced())
}

fn merge_map(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    node: TypeNode<'_>,
) -> Result<Map<String, Value>, StrategicError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    lists::merge_ordered_lists(&mut original, &mut patch, node)?;
    for (name, change) in patch {
        if let Some(list_name) = name.strip_prefix(DELETE_FROM_PREFIX) {
            lists::delete_scalars(&mut original, list_name, &change);
            continue;
        }
        if change.is_null() {
            original.remove(&name);
            continue;
        }
        let merged = match (original.remove(&name), change) {
            (Some(Value::Object(before)), Value::Object(change)) => {
                let of = member_type(node, &name);
                let replaced = of.patch_strategy().replace;
                Value::Object(if replaced { change } else { merge_map(before, change, of)? })
            }
            (Some(Value::Array(before)), Value::Array(change)) => {
                Value::Array(lists::merge_list(before, change, member_type(node, &name))?)
            }
            (_, change) => match without_directives(change) {
                Some(taken) => taken,
                None => continue,
            },
        };
        original.insert(name, merged);
    }
    Ok(original)
}

fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> StrategicError {
    StrategicError::Other(format!("unknown patch type: {} in map: {}", go_value(directive), go_map(patch)))
}

/// A value as Go prints it: the texts of errors hold maps and lists in that form.
pub fn go_value(value: &Value) -> String {
    match value {
        Value::Object(map) => go_map(map),
        Value::Array(items) => go_list(items),
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

fn go_map(map: &Map<String, Value>) -> String {
    let mut members: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", go_value(value))).collect();
    members.sort();
    format!("map[{}]", members.join(" "))
}

fn go_list(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(go_value).collect();
    format!("[{}]", items.join(" "))
}

/// Obeys `$retainKeys`: live members that it does not list go, and the patch may not set others.
fn retain_keys(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), StrategicError> {
    let Some(listed) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(listed) = listed else { return Err(StrategicError::BadFormat("retainKeys")) };
    let is_listed = |name: &str| listed.iter().any(|item| item.as_str() == Some(name));
    let sets_other = |(name, value): (&String, &Value)| !name.starts_with('$') && !value.is_null() && !is_listed(name);
    if patch.iter().any(sets_other) {
        return Err(StrategicError::RetainKeys);
    }
    original.retain(|name, _| is_listed(name));
    Ok(())
}

/// A value that is taken whole, where there is nothing to merge it with: maps that carry a `$patch` vanish with all that
/// they hold, and so do the nulls of maps. `None` where nothing is left.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let set = map.into_iter().filter(|(_, value)| !value.is_null());
            let kept = set.filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(Value::Array(items_without_directives(list))),
        scalar => Some(scalar),
    }
}

/// The items of a list that is taken whole.
fn items_without_directives(list: Vec<Value>) -> Vec<Value> {
    list.into_iter().filter_map(without_directives).collect()
}

#[cfg(test)]
mod tests;
