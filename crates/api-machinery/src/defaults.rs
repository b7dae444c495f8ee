//! Filling in the defaults that the field tables state. Defaults that depend on other fields are rules of their kind.

use crate::json::Reader;
use crate::reflect::{Field, Reflect, View, ViewMut, is_zero, set_bits};

/// Sets every empty field that has a default, all the way down. What is absent stays absent, unless it has a default
/// of its own.
pub fn fill(object: &mut dyn Reflect) {
    let table = object.struct_type();
    for index in set_bits(object.present() | table.fills) {
        let row = &table.fields[index];
        if !row.fill.is_empty() && is_empty(object.field(index)) {
            // The text is part of the table and fits; the test over all kinds shows it.
            let _ = Reader::new(row.fill).read_field(object.field_mut(index));
        }
        fill_field(object.field_mut(index));
    }
}

/// A pointer is empty only when it is absent; anything else when it is zero.
fn is_empty(field: &dyn Field) -> bool {
    match field.view() {
        View::Optional(value) => value.is_none(),
        _ => is_zero(field),
    }
}

fn fill_field(field: &mut dyn Field) {
    match field.view_mut() {
        ViewMut::Struct(inner) => fill(inner),
        ViewMut::List(list) => {
            for index in 0..list.len() {
                if let Some(item) = list.item_mut(index) {
                    fill_field(item);
                }
            }
        }
        ViewMut::Optional(slot) if slot.is_set() => fill_field(slot.ensure()),
        // No map of the API holds structs with defaults.
        _ => {}
    }
}
