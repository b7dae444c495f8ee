//! Walks over values that need nothing but their tables: zero values, equality, single fields.

use std::any::Any;

use super::table::{FieldType, Presence};
use super::value::{Field, List, Map, Reflect, View};

/// Whether a value is Go's zero value, all the way down.
#[must_use]
pub fn is_zero(field: &dyn Field) -> bool {
    match field.view() {
        View::Bool(value) => !value,
        View::Int32(value) => value == 0,
        View::Int64(value) => value == 0,
        View::Float(value) => value == 0.0,
        View::Str(value) => value.is_empty(),
        View::Bytes(value) => value.is_empty(),
        View::Struct(value) => set_bits(value.present()).all(|index| is_zero(value.field(index))),
        View::List(value) => value.is_empty(),
        View::Map(value) => value.is_empty(),
        View::Optional(value) => value.is_none(),
        View::Leaf(value) => value.is_zero(),
        View::Dynamic(value) => value.is_null(),
    }
}

/// The indexes of the fields that JSON output has, in table order; the inline field is among them.
pub fn written_fields(value: &dyn Reflect) -> impl Iterator<Item = usize> {
    let table = value.struct_type();
    let is_written = |index: &usize| is_row_written(&table.fields[*index], value.field(*index));
    set_bits(value.present() | table.json_always).filter(is_written)
}

/// Whether JSON output has a field that is present, or always written.
pub(crate) fn is_row_written(row: &FieldType, field: &dyn Field) -> bool {
    row.presence != Presence::OmitZero || row.inline || !is_zero(field)
}

/// The numbers of the bits that are set, from the lowest on.
pub(crate) fn set_bits(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = set.trailing_zeros();
        // Nothing is left of an empty set, whose count of zeros is the width.
        set &= set.wrapping_sub(1);
        (lowest < u128::BITS).then_some(lowest as usize)
    })
}

/// Makes the top-level field of this name the same as in `from`, which is of the same type.
pub fn copy_field(to: &mut dyn Reflect, from: &dyn Reflect, name: &str) {
    if let Some(index) = to.struct_type().index_of(name) {
        to.field_mut(index).assign(from.field(index) as &dyn Any);
    }
}

/// Empties the top-level field of this name.
pub fn reset_field(object: &mut dyn Reflect, name: &str) {
    if let Some(index) = object.struct_type().index_of(name) {
        object.field_mut(index).reset();
    }
}

/// Whether the top-level field of this name differs; false where there is none.
#[must_use]
pub fn differs_in(one: &dyn Reflect, other: &dyn Reflect, name: &str) -> bool {
    one.struct_type().index_of(name).is_some_and(|index| !equal(one.field(index), other.field(index)))
}

/// Deep equality; lists in order, quantities by number, empty and absent alike.
#[must_use]
pub fn equal(one: &dyn Field, other: &dyn Field) -> bool {
    match (one.view(), other.view()) {
        (View::Bool(a), View::Bool(b)) => a == b,
        (View::Int32(a), View::Int32(b)) => a == b,
        (View::Int64(a), View::Int64(b)) => a == b,
        (View::Float(a), View::Float(b)) => a.to_bits() == b.to_bits(),
        (View::Str(a), View::Str(b)) => a == b,
        (View::Bytes(a), View::Bytes(b)) => a == b,
        (View::Struct(a), View::Struct(b)) => equal_structs(a, b),
        (View::List(a), View::List(b)) => a.len() == b.len() && equal_lists(a, b),
        (View::Map(a), View::Map(b)) => a.len() == b.len() && equal_maps(a, b),
        (View::Optional(a), View::Optional(b)) => match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => equal(a, b),
            _ => false,
        },
        (View::Leaf(a), View::Leaf(b)) => a.equal(b),
        (View::Dynamic(a), View::Dynamic(b)) => a == b,
        _ => false,
    }
}

/// Deep equality of two structs; false where they are of different types.
#[must_use]
pub fn equal_structs(one: &dyn Reflect, other: &dyn Reflect) -> bool {
    if is_shared(one, other) {
        return true;
    }
    let present = one.present();
    // What is unset on both sides is the same.
    std::ptr::eq(one.struct_type(), other.struct_type())
        && present == other.present()
        && set_bits(present).all(|index| equal(one.field(index), other.field(index)))
}

/// Whether two structs are one and the same: versions of an object share the large parts that have not changed.
pub(crate) fn is_shared(one: &dyn Reflect, other: &dyn Reflect) -> bool {
    // A struct lies where its first field does.
    std::ptr::addr_eq(one, other) && std::ptr::eq(one.struct_type(), other.struct_type())
}

fn equal_lists(one: &dyn List, other: &dyn List) -> bool {
    (0..one.len()).all(|index| match (one.item(index), other.item(index)) {
        (Some(a), Some(b)) => equal(a, b),
        _ => false,
    })
}

fn equal_maps(one: &dyn Map, other: &dyn Map) -> bool {
    let mut same = true;
    one.each(&mut |key, value| same = same && other.entry(key).is_some_and(|twin| equal(value, twin)));
    same
}
