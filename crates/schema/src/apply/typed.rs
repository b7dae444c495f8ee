//! Walks over a value together with its type: what places it has, how two differ, and how one merges into another.

use std::cmp::Ordering;

use serde_json::Value;

use super::path::Element;
use crate::type_node::{Class, ListKind, TypeNode};

mod added;
mod compare;
mod fields;
mod merge;
mod remove;
mod validate;

pub use added::{Without, added};
pub use compare::{Comparison, compare, compare_within};
pub use fields::fields_of;
pub use merge::merge;
pub use remove::remove_fields;
pub use validate::{ValidationProblem, validate};

/// The step to an item of a keyed list or set.
fn item_step(list: TypeNode<'_>, kind: ListKind, item: &Value, index: usize) -> Result<Element, String> {
    match kind {
        ListKind::Atomic => Ok(Element::Index(index)),
        ListKind::Set => match item {
            Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
            Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
            scalar => Ok(Element::value(scalar.clone())),
        },
        ListKind::Map => keyed_step(list, item),
    }
}

fn keyed_step(list: TypeNode<'_>, item: &Value) -> Result<Element, String> {
    let members = match item {
        Value::Object(members) => members,
        Value::Null => return Err("associative list with keys may not have a null element".into()),
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    key_of(list, |name| members.get(name).cloned())
}

/// The step to an item whose members `member` knows.
fn key_of(list: TypeNode<'_>, member: impl Fn(&str) -> Option<Value>) -> Result<Element, String> {
    let item_type = list.item();
    let keys = list.map_keys();
    let value_of = |key: &str| member(key).or_else(|| item_type.declared(key)?.default_value());
    let step = Element::key(keys.iter().filter_map(|key| Some((*key, value_of(key)?))));
    if matches!(&step, Element::Key(members) if members.is_empty()) {
        let quoted: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
             for any key fields)",
            quoted.join(" ")
        ));
    }
    Ok(step)
}

/// The items of a list that have one step: mostly one.
struct Items<'v> {
    /// Where in the list the first one is.
    position: usize,
    first: &'v Value,
    others: Vec<&'v Value>,
}

impl<'v> Items<'v> {
    /// The item, if no other has its step.
    fn only(&self) -> Option<&'v Value> {
        self.others.is_empty().then_some(self.first)
    }

    fn iter(&self) -> impl Iterator<Item = &'v Value> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }
}

/// The items of a list by step, sorted; items without a step stand by their position.
fn items_by_step<'v>(list: TypeNode<'_>, kind: ListKind, items: &'v [Value]) -> Vec<(Element, Items<'v>)> {
    let found = items.iter().enumerate().map(|(position, first)| {
        let step = item_step(list, kind, first, position).unwrap_or(Element::Index(position));
        (step, Items { position, first, others: Vec::new() })
    });
    let mut found: Vec<(Element, Items<'v>)> = found.collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found.dedup_by(|(step, later), (first_step, items)| {
        let is_same = step == first_step;
        if is_same {
            items.others.push(later.first);
        }
        is_same
    });
    found
}

/// The items of a list by step, in order of first appearance.
fn items_as_listed<'v>(list: TypeNode<'_>, kind: ListKind, items: &'v [Value]) -> Vec<(Element, Items<'v>)> {
    let mut found = items_by_step(list, kind, items);
    found.sort_by_key(|(_, items)| items.position);
    found
}

/// Goes through two sorted walks at once: what both have meets.
fn side_by_side<K: Ord, V>(
    one: impl IntoIterator<Item = (K, V)>,
    other: impl IntoIterator<Item = (K, V)>,
    mut meet: impl FnMut(K, Option<V>, Option<V>),
) {
    let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
    loop {
        let order = match (one.peek(), other.peek()) {
            (Some((mine, _)), Some((theirs, _))) => mine.cmp(theirs),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let mine = if order.is_le() { one.next() } else { None };
        let theirs = if order.is_ge() { other.next() } else { None };
        match (mine, theirs) {
            (None, None) => return,
            (Some((key, mine)), theirs) => meet(key, Some(mine), theirs.map(|(_, theirs)| theirs)),
            (None, Some((key, theirs))) => meet(key, None, Some(theirs)),
        }
    }
}

/// The type of a member; free-form where it is not declared.
fn member_type<'a>(node: TypeNode<'a>, name: &str) -> TypeNode<'a> {
    node.member(name).unwrap_or(TypeNode::deduced())
}

/// Whether the value is a collection without content, or null.
fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Whether the walk goes into the value: lists and maps that are not owned as a whole.
fn granular(class: Class) -> bool {
    matches!(class, Class::Map { atomic: false } | Class::List(ListKind::Set | ListKind::Map))
}

#[cfg(test)]
mod tests;
