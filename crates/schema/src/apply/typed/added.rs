//! What a new value brings.

use api_machinery::reflect::{Field, FieldType, List, Map, Presence, Reflect, View, is_zero, written_fields};
use api_machinery::value::to_value;

use super::compare::Difference;
use super::{granular, item_step, key_of, member_type};
use crate::apply::field_set::{Entry, FieldSet};
use crate::apply::path::Element;
use crate::type_node::{Class, ListKind, TypeNode};

/// All places that a new object has and an empty one of its type has not, from the object as it stands, without making a
/// free-form copy of it: creates are the most frequent writes. The empty object is what Go prints of one, so members such
/// as `spec`, or `containers` as null, are there already and belong to nobody; what [`compare`](super::compare) finds
/// added or modified is the same.
pub fn added(value: View<'_>, node: TypeNode<'_>) -> FieldSet {
    match value {
        View::Struct(value) => members(value, node, Base::Empty),
        value => place(value, node).below,
    }
}

/// What a value is compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    /// There is nothing.
    Nothing,
    /// There is what Go prints of an empty value.
    Empty,
}

impl Base {
    /// What there is of a member.
    fn of(self, row: &FieldType, value: &View<'_>) -> Self {
        let is_printed_empty = match row.presence {
            Presence::Always => true,
            Presence::OmitZero => false,
            // `omitempty` leaves structs in place, and types with an encoding of their own are structs.
            Presence::OmitEmpty => matches!(value, View::Struct(_) | View::Leaf(_)),
        };
        if is_printed_empty { self } else { Self::Nothing }
    }
}

fn place(value: View<'_>, node: TypeNode<'_>) -> Entry {
    let below = match (value, node.class()) {
        (View::Optional(Some(value)), _) => return place(value.view(), node),
        (View::Dynamic(value), _) => return Difference::of(None, Some(value), node).added,
        (View::Leaf(leaf), Class::Deduced) => return Difference::of(None, Some(&leaf.to_value()), node).added,
        (View::Struct(value), class) if granular(class) => members(value, node, Base::Nothing),
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

/// A member that the empty object has, too: it is not owned itself, unless it is owned as a whole.
fn place_of_printed(value: &dyn Field, node: TypeNode<'_>) -> Entry {
    match value.view() {
        View::Struct(value) if granular(node.class()) => {
            Entry { owned: false, below: members(value, node, Base::Empty) }
        }
        _ if is_zero(value) => Entry::default(),
        // A list of which nothing can be told apart, such as an atomic one, has been modified as a whole.
        view => {
            let below = place(view, node).below;
            Entry { owned: below.is_empty(), below }
        }
    }
}

fn members(value: &dyn Reflect, node: TypeNode<'_>, base: Base) -> FieldSet {
    let mut below = FieldSet::default();
    collect_members(value, node, base, &mut below);
    below
}

fn collect_members(value: &dyn Reflect, node: TypeNode<'_>, base: Base, below: &mut FieldSet) {
    let rows = value.struct_type().fields;
    for (index, row) in written_fields(value).filter_map(|index| Some((index, rows.get(index)?))) {
        let field = value.field(index);
        match field.view() {
            View::Struct(inner) if row.inline => collect_members(inner, node, base, below),
            View::Map(map) if row.rest => entries(map, node, below),
            view if base.of(row, &view) == Base::Empty => {
                let found = place_of_printed(field, node.field(row));
                if !found.is_empty() {
                    below.put(Element::declared(row.name), found);
                }
            }
            view => below.put(Element::declared(row.name), place(view, node.field(row))),
        }
    }
}

fn entries(map: &dyn Map, node: TypeNode<'_>, below: &mut FieldSet) {
    map.each(&mut |name, value| below.put(Element::field(name), place(value.view(), member_type(node, name))));
}

fn items(list: &dyn List, list_type: TypeNode<'_>, kind: ListKind) -> FieldSet {
    let step_to = |index: usize, item: &dyn Field| {
        let step = match (kind, item.view()) {
            (ListKind::Map, View::Struct(members)) => key_of(list_type, |name| written(members, name).map(to_value)),
            _ => item_step(list_type, kind, &to_value(item), index),
        };
        step.unwrap_or(Element::Index(index))
    };
    let items = (0..list.len()).filter_map(|index| Some((index, list.item(index)?)));
    let mut items: Vec<(Element, &dyn Field)> = items.map(|(index, item)| (step_to(index, item), item)).collect();
    items.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut below = FieldSet::default();
    let mut items = items.into_iter().peekable();
    while let Some((step, item)) = items.next() {
        // Items that occur twice are one opaque place.
        let is_repeated = std::iter::from_fn(|| items.next_if(|(next, _)| *next == step)).count() > 0;
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
