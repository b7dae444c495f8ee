//! What a new value brings.

use api_machinery::reflect::{Field, List, Map, Reflect, View, written_fields};
use api_machinery::value::to_value;

use super::compare::Difference;
use super::{granular, item_step, key_of, member_type};
use crate::apply::field_set::{Entry, FieldSet};
use crate::apply::path::Element;
use crate::type_node::{Class, ListKind, TypeNode};

/// All places of a value that appears where none was: what [`compare`](super::compare) finds added, from the value as it
/// stands, without making a free-form copy of it. Creates are the most frequent writes.
pub fn added(value: View<'_>, node: TypeNode<'_>) -> FieldSet {
    place(value, node).below
}

fn place(value: View<'_>, node: TypeNode<'_>) -> Entry {
    let below = match (value, node.class()) {
        (View::Optional(Some(value)), _) => return place(value.view(), node),
        (View::Dynamic(value), _) => return Difference::of(None, Some(value), node).added,
        (View::Leaf(leaf), Class::Deduced) => return Difference::of(None, Some(&leaf.to_value()), node).added,
        (View::Struct(value), class) if granular(class) => members(value, node),
        (View::Map(map), class) if granular(class) => {
            let mut below = FieldSet::default();
            entries(map, node, &mut below);
            below
        }
        (View::List(list), Class::List(kind)) if granular(Class::List(kind)) => items(list, node, kind),
        _ => FieldSet::default(),
    };
    Entry { owned: true, below }
}

fn members(value: &dyn Reflect, node: TypeNode<'_>) -> FieldSet {
    let mut below = FieldSet::default();
    collect_members(value, node, &mut below);
    below
}

fn collect_members(value: &dyn Reflect, node: TypeNode<'_>, below: &mut FieldSet) {
    let rows = value.struct_type().fields;
    for (index, row) in written_fields(value).filter_map(|index| Some((index, rows.get(index)?))) {
        match value.field(index).view() {
            View::Struct(inner) if row.inline => collect_members(inner, node, below),
            View::Map(map) if row.rest => entries(map, node, below),
            field => below.put(Element::declared(row.name), place(field, node.field(row))),
        }
    }
}

fn entries(map: &dyn Map, node: TypeNode<'_>, below: &mut FieldSet) {
    map.each(&mut |name, value| below.put(Element::field(name), place(value.view(), member_type(node, name))));
}

fn items(list: &dyn List, list_type: TypeNode<'_>, kind: ListKind) -> FieldSet {
    let mut below = FieldSet::default();
    let items = (0..list.len()).filter_map(|index| Some((index, list.item(index)?)));
    for (index, item) in items {
        let step = match (kind, item.view()) {
            (ListKind::Map, View::Struct(members)) => key_of(list_type, |name| written(members, name).map(to_value)),
            _ => item_step(list_type, kind, &to_value(item), index),
        };
        let step = step.unwrap_or(Element::Index(index));
        // Items that occur twice are one opaque place.
        let is_repeated = below.has(&step);
        let found = if is_repeated { Entry::opaque() } else { place(item.view(), list_type.item()) };
        below.put(step, found);
    }
    below
}

/// The field of this name, if JSON output has it; inline structs are looked through.
fn written<'a>(value: &'a dyn Reflect, name: &str) -> Option<&'a dyn Field> {
    let table = value.struct_type();
    if let Some(index) = table.index_of(name) {
        return written_fields(value).any(|written| written == index).then(|| value.field(index));
    }
    match value.field(table.inline()?).view() {
        View::Struct(inner) => written(inner, name),
        _ => None,
    }
}
