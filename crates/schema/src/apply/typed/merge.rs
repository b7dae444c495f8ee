//! Merging an applied value into a live one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{granular, is_hollow, items_by_step, member_type};
use crate::apply::path::Element;
use crate::type_node::{Class, ListKind, TypeNode};

/// The live value with the applied one on top: leaves and atomic places are the applied ones, keyed lists and sets are
/// united in an order that keeps both sides' own orders where it can.
pub fn merge(live: &Value, applied: &Value, node: TypeNode<'_>) -> Value {
    visit(Some(live), Some(applied), node).unwrap_or_default()
}

fn visit(live: Option<&Value>, applied: Option<&Value>, node: TypeNode<'_>) -> Option<Value> {
    let (live, applied) = match (live, applied) {
        (live, None) => return live.cloned(),
        (None, Some(applied)) => (&Value::Null, applied),
        (Some(live), Some(applied)) => (live, applied),
    };
    let class = node.class_for(applied);
    if granular(class) && applied.is_null() {
        // Nothing is said of what is in it.
        return Some(live.clone());
    }
    if !granular(class) || is_hollow(applied) && is_hollow(live) {
        return Some(applied.clone());
    }
    match (class, applied) {
        (Class::List(kind), Value::Array(applied)) => {
            let live = live.as_array().map_or(&[][..], Vec::as_slice);
            Some(Value::Array(merge_lists(live, applied, node, kind)))
        }
        (_, Value::Object(applied)) => Some(Value::Object(merge_maps(live.as_object(), applied, node))),
        _ => Some(applied.clone()),
    }
}

fn merge_maps(
    live: Option<&Map<String, Value>>,
    applied: &Map<String, Value>,
    node: TypeNode<'_>,
) -> Map<String, Value> {
    let others = live.into_iter().flatten().filter(|(name, _)| !applied.contains_key(*name));
    let mut merged: Map<String, Value> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, value) in applied {
        let before = live.and_then(|map| map.get(name));
        if let Some(value) = visit(before, Some(value), member_type(node, name)) {
            merged.insert(name.clone(), value);
        }
    }
    merged
}

/// Walks both lists: shared items come in the applied order, live-only items keep their place between shared ones.
fn merge_lists(live: &[Value], applied: &[Value], node: TypeNode<'_>, kind: ListKind) -> Vec<Value> {
    let live = items_by_step(node, kind, live);
    let applied = items_by_step(node, kind, applied);
    let wanted: BTreeSet<&Element> = applied.iter().map(|(step, _)| step).collect();
    let twins: BTreeMap<&Element, &Vec<&Value>> = live.iter().map(|(step, values)| (step, values)).collect();
    let twin = |step: &Element| twins.get(step).copied();
    let shared: Vec<&Element> = applied.iter().map(|(step, _)| step).filter(|step| twin(step).is_some()).collect();
    let mut merged = Vec::with_capacity(live.len() + applied.len());
    let mut emitted: BTreeSet<&Element> = BTreeSet::new();
    let mut next_live = live.iter().peekable();
    let mut next_applied = applied.iter().peekable();
    let mut next_shared = shared.iter().peekable();
    let mut emit = |step: &Element, values: &[&Value]| {
        let before = match twin(step).map(Vec::as_slice) {
            Some([only]) => Some(*only),
            _ => None,
        };
        merged.extend(values.first().and_then(|value| visit(before, Some(value), node.item())));
    };
    loop {
        match (next_live.peek(), next_applied.peek()) {
            (None, None) => break,
            (Some((step, values)), _) if !wanted.contains(step) => {
                // Only live: stays where it is.
                values.iter().for_each(|value| merged_push(&mut emit, step, value));
                next_live.next();
            }
            (Some((step, _)), Some((applied_step, values))) if step == applied_step => {
                emit(applied_step, values);
                emitted.insert(applied_step);
                next_live.next();
                next_applied.next();
                next_shared.next_if(|shared| **shared == step);
            }
            (Some((step, _)), _)
                if emitted.contains(step) || next_shared.peek().is_some_and(|shared| **shared != step) =>
            {
                // Emitted already, or it will come in the applied order.
                next_live.next();
            }
            (_, Some((applied_step, values))) => {
                emit(applied_step, values);
                emitted.insert(applied_step);
                next_applied.next();
                next_shared.next_if(|shared| **shared == applied_step);
            }
            (Some(_), None) => {
                next_live.next();
            }
        }
    }
    merged
}

/// Emits a live-only item; merging it with itself changes nothing.
fn merged_push(emit: &mut impl FnMut(&Element, &[&Value]), step: &Element, value: &&Value) {
    emit(step, &[*value]);
}
