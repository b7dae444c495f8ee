//! Walks over a value together with its type: what places it has, how two differ, and how one merges into another.

use serde_json::Value;

use super::path::Element;
use crate::type_node::{Class, ListKind, TypeNode};

mod added;
mod compare;
mod fields;
mod merge;
mod remove;
mod validate;

pub use added::added;
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
            scalar => Ok(Element::Value(scalar.clone())),
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
    let mut found = serde_json::Map::new();
    for key in &keys {
        if let Some(value) = member(key).or_else(|| item_type.declared(key)?.default_value()) {
            found.insert((*key).to_owned(), value);
        }
    }
    if found.is_empty() {
        let quoted: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
             for any key fields)",
            quoted.join(" ")
        ));
    }
    Ok(Element::Key(found))
}

/// The items of a list by step, in order of first appearance; items without a step stand by their position.
fn items_by_step<'v>(list: TypeNode<'_>, kind: ListKind, items: &'v [Value]) -> Vec<(Element, Vec<&'v Value>)> {
    let mut found: Vec<(Element, Vec<&'v Value>)> = Vec::with_capacity(items.len());
    let mut places = std::collections::BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let step = item_step(list, kind, item, index).unwrap_or(Element::Index(index));
        let place = *places.entry(step.clone()).or_insert(found.len());
        match found.get_mut(place) {
            Some((_, values)) => values.push(item),
            None => found.push((step, vec![item])),
        }
    }
    found
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
