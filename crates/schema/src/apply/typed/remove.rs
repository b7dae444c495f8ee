//! Taking places out of a value.

use serde_json::{Map, Value};

use super::{item_step, member_type};
use crate::apply::field_set::FieldSet;
use crate::apply::path::Element;
use crate::type_node::{Class, ListKind, TypeNode};

/// The value without the places of the set. A collection that becomes empty by that is null and stays in its parent, so
/// that who owns the collection as such goes on owning it.
pub fn remove_fields(value: &Value, unwanted: &FieldSet, node: TypeNode<'_>) -> Value {
    match (node.class_for(value), value) {
        (Class::Map { atomic: false }, Value::Object(map)) => remove_members(map, unwanted, node),
        (Class::List(kind @ (ListKind::Set | ListKind::Map)), Value::Array(items)) => {
            remove_items(items, unwanted, node, kind)
        }
        _ => value.clone(),
    }
}

fn remove_members(map: &Map<String, Value>, unwanted: &FieldSet, node: TypeNode<'_>) -> Value {
    let mut kept = Map::new();
    for (name, member) in map {
        let step = Element::field(name);
        if unwanted.has(&step) {
            continue;
        }
        let remaining = match unwanted.below(&step) {
            Some(below) => remove_fields(member, below, member_type(node, name)),
            None => member.clone(),
        };
        kept.insert(name.clone(), remaining);
    }
    if kept.is_empty() && !map.is_empty() { Value::Null } else { Value::Object(kept) }
}

fn remove_items(items: &[Value], unwanted: &FieldSet, node: TypeNode<'_>, kind: ListKind) -> Value {
    let mut kept = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let step = item_step(node, kind, item, index).unwrap_or(Element::Index(index));
        if unwanted.has(&step) {
            continue;
        }
        kept.push(match unwanted.below(&step) {
            Some(below) => remove_fields(item, below, node.item()),
            None => item.clone(),
        });
    }
    if kept.is_empty() && !items.is_empty() { Value::Null } else { Value::Array(kept) }
}
