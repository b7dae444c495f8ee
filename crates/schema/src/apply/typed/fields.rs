//! The places that a value has.

use serde_json::Value;

use super::{items_by_step, member_type};
use crate::apply::field_set::FieldSet;
use crate::apply::path::{Element, FieldPath};
use crate::type_node::{Class, ListKind, TypeNode};

/// All places of a value: its leaves, the items of keyed lists and sets, and the entries of maps with free keys.
pub fn fields_of(value: &Value, node: TypeNode<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    visit(value, node, &mut Vec::new(), &mut set);
    set
}

fn visit(value: &Value, node: TypeNode<'_>, path: &mut FieldPath, set: &mut FieldSet) {
    match (node.class_for(value), value) {
        (Class::Map { atomic: false }, Value::Object(map)) => {
            for (name, member) in map {
                path.push(Element::field(name));
                visit(member, member_type(node, name), path, set);
                let hollow = member.is_null() || member.as_object().is_some_and(serde_json::Map::is_empty);
                if hollow || node.declared(name).is_none() {
                    set.insert(path);
                }
                path.pop();
            }
        }
        (Class::List(kind @ (ListKind::Set | ListKind::Map)), Value::Array(items)) => {
            for (step, values) in items_by_step(node, kind, items) {
                path.push(step);
                // Items that occur twice are owned as one opaque place.
                if let [only] = values.as_slice() {
                    visit(only, node.item(), path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
        (Class::Map { atomic: false } | Class::List(ListKind::Set | ListKind::Map), Value::Null) => {}
        _ => set.insert(path),
    }
}
