//! Merging an applied value into a live one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Items, granular, is_hollow, items_as_listed, member_type};
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

/// The items of a list with their steps, as listed.
type Listed<'v> = [(Element, Items<'v>)];

/// Walks both lists: shared items come in the applied order, live-only items keep their place between shared ones.
fn merge_lists(live: &[Value], applied: &[Value], node: TypeNode<'_>, kind: ListKind) -> Vec<Value> {
    let live = items_as_listed(node, kind, live);
    let applied = items_as_listed(node, kind, applied);
    let merged = |before: Option<&Value>, value: &Value| visit(before, Some(value), node.item());
    // Mostly the same items are applied again.
    if live.len() == applied.len() && live.iter().zip(&applied).all(|((step, _), (twin, _))| step == twin) {
        let pairs = live.iter().zip(&applied);
        return pairs.filter_map(|((_, before), (_, after))| merged(before.only(), after.first)).collect();
    }
    let twins: BTreeMap<&Element, &Items<'_>> = live.iter().map(|(step, items)| (step, items)).collect();
    let mut result = Vec::with_capacity(live.len() + applied.len());
    for (step, origin) in in_order(&live, &applied, |step| twins.contains_key(step)) {
        let before = twins.get(step).and_then(|items| items.only());
        match origin {
            Origin::Live(items) => result.extend(items.iter().filter_map(|value| merged(before, value))),
            Origin::Applied(items) => result.extend(merged(before, items.first)),
        }
    }
    result
}

/// Which of two lists items of a merged one come from.
enum Origin<'a, 'v> {
    Live(&'a Items<'v>),
    Applied(&'a Items<'v>),
}

/// The items of two lists in the order of the merged one.
fn in_order<'a, 'v>(
    live: &'a Listed<'v>,
    applied: &'a Listed<'v>,
    is_live: impl Fn(&Element) -> bool,
) -> Vec<(&'a Element, Origin<'a, 'v>)> {
    let wanted: BTreeSet<&Element> = applied.iter().map(|(step, _)| step).collect();
    let mut order = Vec::with_capacity(live.len() + applied.len());
    let mut emitted: BTreeSet<&Element> = BTreeSet::new();
    let (mut next_live, mut next_applied) = (live.iter().peekable(), applied.iter().peekable());
    let mut next_shared = applied.iter().map(|(step, _)| step).filter(|step| is_live(step)).peekable();
    loop {
        match (next_live.peek(), next_applied.peek()) {
            (None, None) => return order,
            (Some((step, items)), _) if !wanted.contains(step) => {
                order.push((step, Origin::Live(items)));
                next_live.next();
            }
            (Some((step, _)), Some((applied_step, items))) if step == applied_step => {
                order.push((applied_step, Origin::Applied(items)));
                emitted.insert(applied_step);
                next_live.next();
                next_applied.next();
                next_shared.next_if(|shared| *shared == step);
            }
            (Some((step, _)), _)
                if emitted.contains(step) || next_shared.peek().is_some_and(|shared| *shared != step) =>
            {
                // Emitted already, or it will come in the applied order.
                next_live.next();
            }
            (_, Some((applied_step, items))) => {
                order.push((applied_step, Origin::Applied(items)));
                emitted.insert(applied_step);
                next_applied.next();
                next_shared.next_if(|shared| *shared == applied_step);
            }
            (Some(_), None) => {
                next_live.next();
            }
        }
    }
}
