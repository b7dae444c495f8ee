//! The places that a value has.

use serde_json::Value;

use super::{items_by_step, member_type};
use crate::apply::field_set::{Entry, FieldSet};
use crate::apply::path::Element;
use crate::type_node::{Class, ListKind, TypeNode};

/// All places of a value: its leaves, the items of keyed lists and sets, and the entries of maps with free keys.
pub fn fields_of(value: &Value, node: TypeNode<'_>) -> FieldSet {
    place(value, node).below
}

fn place(value: &Value, node: TypeNode<'_>) -> Entry {
    let mut below = FieldSet::default();
    match (node.class_for(value), value) {
        (Class::Map { atomic: false }, Value::Object(map)) => {
            for (name, member) in map {
                let mut found = place(member, member_type(node, name));
                let hollow = member.is_null() || member.as_object().is_some_and(serde_json::Map::is_empty);
                found.owned |= hollow || node.declared(name).is_none();
                if !found.is_empty() {
                    below.put(Element::field(name), found);
                }
            }
        }
        (Class::List(kind @ (ListKind::Set | ListKind::Map)), Value::Array(items)) => {
            for (step, items) in items_by_step(node, kind, items) {
                // Items that occur twice are owned as one opaque place.
                let found = items.only().map(|only| place(only, node.item()).below).unwrap_or_default();
                below.put(step, Entry { owned: true, below: found });
            }
        }
        (Class::Map { atomic: false } | Class::List(ListKind::Set | ListKind::Map), Value::Null) => {}
        _ => return Entry::opaque(),
    }
    Entry { owned: false, below }
}
