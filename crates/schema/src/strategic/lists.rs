//! Merging of lists: by key, by value, and in what order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    DIRECTIVE, ORDER_PREFIX, StrategicError, go_list, go_map, items_without_directives, member_type, merge_map,
    unknown_directive, without_directives,
};
use crate::apply::path::Element;
use crate::type_node::TypeNode;

/// Merges or replaces a list, as its type says.
pub(super) fn merge_list(
    original: Vec<Value>,
    patch: Vec<Value>,
    node: TypeNode<'_>,
) -> Result<Vec<Value>, StrategicError> {
    if !node.patch_strategy().merge {
        return Ok(items_without_directives(patch));
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let key = node.patch_strategy().merge_key;
    if !holds_maps(&original, &patch)? {
        let before = original.clone();
        let order = patch.clone();
        let both = original.into_iter().chain(patch).collect();
        return Ok(in_order(deduplicate(both), &order, &before, ""));
    }
    if key.is_empty() {
        return Err(StrategicError::Other(format!(
            "cannot merge lists without merge key for {}",
            node.item().go_name()
        )));
    }
    let (original, patch) = obey_item_directives(original, patch, key)?;
    let before = original.clone();
    let merged = merge_items(original, patch.clone(), key, node.item())?;
    Ok(in_order(merged, &patch, &before, key))
}

/// Whether the items are maps; all must be of one type, and no lists.
fn holds_maps(original: &[Value], patch: &[Value]) -> Result<bool, StrategicError> {
    let mut kinds = original.iter().chain(patch).map(|item| match item {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    });
    let first = kinds.next().unwrap_or("map");
    if first == "list" {
        return Err(StrategicError::ListOfLists);
    }
    if kinds.any(|kind| kind != first) {
        let both = format!("[{} {}]", go_list(original), go_list(patch));
        return Err(StrategicError::Other(format!("list element types are not identical: {both}")));
    }
    Ok(first == "map")
}

/// Removes later duplicates; the last item takes the place of each, as upstream does it.
fn deduplicate(mut items: Vec<Value>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut index = 0;
    while let Some(item) = items.get(index) {
        if seen.insert(Element::Value(item.clone())) {
            index += 1;
        } else {
            items.swap_remove(index);
        }
    }
    items
}

/// `$patch` in items: `delete` takes live items away, `replace` discards the live list.
fn obey_item_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), StrategicError> {
    let mut plain = Vec::new();
    let mut deleted = BTreeSet::new();
    let mut replaces = false;
    for item in patch {
        let Value::Object(map) = item else { continue };
        let Some(directive) = map.get(DIRECTIVE) else {
            plain.push(Value::Object(map));
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let unwanted = map.get(key).ok_or_else(|| no_merge_key(&map, key))?;
                deleted.insert(Element::Value(unwanted.clone()));
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                return Err(StrategicError::Other("merging lists cannot yet be specified in the patch".into()));
            }
            _ => return Err(unknown_directive(directive, &map)),
        }
    }
    if replaces {
        return Ok((plain, Vec::new()));
    }
    if !deleted.is_empty() {
        original.retain(|live| live.get(key).is_none_or(|value| !deleted.contains(&Element::Value(value.clone()))));
    }
    Ok((original, plain))
}

fn no_merge_key(map: &Map<String, Value>, key: &str) -> StrategicError {
    StrategicError::Other(format!("map: {} does not contain declared merge key: {key}", go_map(map)))
}

fn merge_items(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    item_type: TypeNode<'_>,
) -> Result<Vec<Value>, StrategicError> {
    let mut places = FirstIndexes::of(&original, key);
    for item in patch {
        let Value::Object(change) = item else { continue };
        let wanted = Element::Value(change.get(key).ok_or_else(|| no_merge_key(&change, key))?.clone());
        match places.first.get(&wanted).and_then(|place| original.get_mut(*place)) {
            Some(slot) => {
                let before = slot.as_object_mut().map(std::mem::take).unwrap_or_default();
                *slot = Value::Object(merge_map(before, change, item_type)?);
            }
            None => {
                places.first.insert(wanted, original.len());
                original.extend(without_directives(Value::Object(change)));
            }
        }
    }
    Ok(original)
}

/// Where items first stand in a list: by key, or by value when there is no key.
struct FirstIndexes<'k> {
    key: &'k str,
    first: BTreeMap<Element, usize>,
}

impl<'k> FirstIndexes<'k> {
    fn of(list: &[Value], key: &'k str) -> Self {
        let mut places = Self { key, first: BTreeMap::new() };
        for (index, item) in list.iter().enumerate() {
            if let Some(identity) = places.identity(item) {
                places.first.entry(identity).or_insert(index);
            }
        }
        places
    }

    fn identity(&self, item: &Value) -> Option<Element> {
        let value = if self.key.is_empty() { item } else { item.get(self.key)? };
        Some(Element::Value(value.clone()))
    }

    fn get(&self, item: &Value) -> Option<usize> {
        self.first.get(&self.identity(item)?).copied()
    }
}

/// Items that `order` names come in its order, the others in the order of `live`, woven by their live places.
fn in_order(items: Vec<Value>, order: &[Value], live: &[Value], key: &str) -> Vec<Value> {
    let (order, live) = (FirstIndexes::of(order, key), FirstIndexes::of(live, key));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|item| order.get(item).is_some());
    named.sort_by_cached_key(|item| order.get(item));
    others.sort_by_cached_key(|item| live.get(item).unwrap_or(usize::MAX));
    let mut woven = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return woven,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(named)) => match (live.get(other), live.get(named)) {
                (Some(other), Some(named)) => other < named,
                _ => false,
            },
        };
        woven.extend(if other_first { others.next() } else { named.next() });
    }
}

/// Merges each list that has a `$setElementOrder` beside it, and takes both out of the patch.
pub(super) fn merge_ordered_lists(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    node: TypeNode<'_>,
) -> Result<(), StrategicError> {
    let directives: Vec<String> = patch.keys().filter(|name| name.starts_with(ORDER_PREFIX)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => {
                let found = go_type(&other.unwrap_or_default());
                return Err(StrategicError::Other(format!("expected a []interface {{}}, but received a {found}")));
            }
        };
        let name = directive.strip_prefix(ORDER_PREFIX).unwrap_or_default();
        let list_type = member_type(node, name);
        if !list_type.patch_strategy().merge {
            continue;
        }
        if patch.get(name).is_some_and(|change| !change.is_array()) {
            continue;
        }
        let change = match patch.remove(name) {
            Some(Value::Array(change)) => change,
            _ => Vec::new(),
        };
        let key = list_type.patch_strategy().merge_key;
        check_order(&change, &order, key)?;
        let (live, merged) = match original.get(name) {
            Some(Value::Array(live)) => (live.clone(), merge_list(live.clone(), change, list_type)?),
            _ if change.is_empty() => continue,
            _ => (Vec::new(), items_without_directives(change)),
        };
        original.insert(name.to_owned(), Value::Array(in_order(merged, &order, &live, key)));
    }
    Ok(())
}

/// The patch's items must stand in the order that `$setElementOrder` gives them.
fn check_order(change: &[Value], order: &[Value], key: &str) -> Result<(), StrategicError> {
    if order.is_empty() {
        return Ok(());
    }
    let kept = change.iter().filter(|item| item.get(DIRECTIVE).is_none());
    let ordered = FirstIndexes::of(order, key);
    let places: Option<Vec<usize>> = kept.map(|item| ordered.get(item)).collect();
    if places.is_some_and(|places| places.is_sorted()) {
        return Ok(());
    }
    Err(StrategicError::Other(format!(
        "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
        go_list(change),
        go_list(order)
    )))
}

/// The type of a value in Go.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `$deleteFromPrimitiveList`: removes scalars from a live list. What is no list removes nothing.
pub(super) fn delete_scalars(original: &mut Map<String, Value>, name: &str, change: &Value) {
    let Value::Array(unwanted) = change else { return };
    if let Some(Value::Array(live)) = original.get_mut(name) {
        let unwanted: BTreeSet<Element> = unwanted.iter().cloned().map(Element::Value).collect();
        live.retain(|item| !unwanted.contains(&Element::Value(item.clone())));
    }
}
