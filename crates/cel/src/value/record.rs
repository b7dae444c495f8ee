//! API objects as maps, as JSON has them: a field that would not be written is not there.

use std::sync::atomic::{AtomicUsize, Ordering};

use api_machinery::object::Object;
use api_machinery::reflect::{self, Presence, Reflect, View};

use crate::error::{EvalError, Out};

use super::{Map, Text, Value};

/// The names that an object has before its fields.
const TYPE_META: [&str; 2] = ["apiVersion", "kind"];

/// A field of a whole object, or what says of which kind it is.
pub(super) fn member<'a>(object: &'a dyn Object, name: &str) -> Option<Value<'a>> {
    match name {
        "apiVersion" => Some(Value::text(object.api_version())),
        "kind" => Some(Value::String(Text::Borrowed(object.kind()))),
        _ => field(object.as_reflect(), name),
    }
}

/// The names of all members of a whole object.
pub(super) fn members<'a>(object: &'a dyn Object) -> Vec<Text<'a>> {
    TYPE_META.into_iter().map(Text::Borrowed).chain(names(object.as_reflect())).collect()
}

/// A field, where it is set.
pub(super) fn field<'a>(object: &'a dyn Reflect, name: &str) -> Option<Value<'a>> {
    let table = object.struct_type();
    if let Some(index) = table.index_of(name) {
        return field_at(object, index);
    }
    let beside = table.fields.iter().enumerate().filter(|(_, row)| row.inline || row.rest);
    beside.map(|(index, _)| object.field(index)).find_map(|part| match part.view() {
        View::Struct(inner) => field(inner, name),
        View::Map(map) => map.entry(name).map(Value::of_field),
        _ => None,
    })
}

fn field_at(object: &dyn Reflect, index: usize) -> Option<Value<'_>> {
    let row = object.struct_type().fields.get(index)?;
    let field = object.field(index);
    let written = match row.presence {
        Presence::Always => true,
        Presence::OmitEmpty => !field.is_unset(),
        Presence::OmitZero => !reflect::is_zero(field),
    };
    written.then(|| Value::of_field(field))
}

/// The names of the fields that are set.
pub(super) fn names<'a>(object: &'a dyn Reflect) -> Vec<Text<'a>> {
    let table = object.struct_type().fields;
    let mut out = Vec::new();
    for (index, row) in reflect::written_fields(object).filter_map(|index| Some((index, table.get(index)?))) {
        match object.field(index).view() {
            View::Struct(inner) if row.inline => out.extend(names(inner)),
            View::Map(map) if row.rest => map.each(&mut |key, _| out.push(Text::Shared(key.into()))),
            _ => out.push(Text::Borrowed(row.name)),
        }
    }
    out
}

/// Where a field stands in the tables of the objects seen last: selections of one place mostly see one type.
#[derive(Debug, Default)]
pub(crate) struct FieldHint(AtomicUsize);

impl FieldHint {
    /// The value of a field by name.
    pub(crate) fn select<'a>(&self, value: &Value<'a>, name: &str) -> Out<Value<'a>> {
        let object = match value {
            Value::Map(Map::Struct(object)) => *object,
            Value::Map(Map::Object(object)) if !TYPE_META.contains(&name) => object.as_reflect(),
            _ => return value.select(name),
        };
        let table = object.struct_type();
        let hint = self.0.load(Ordering::Relaxed);
        if table.fields.get(hint).is_none_or(|field| field.inline || field.name != name) {
            let Some(index) = table.index_of(name) else { return value.select(name) };
            self.0.store(index, Ordering::Relaxed);
        }
        let index = self.0.load(Ordering::Relaxed);
        // Another thread may have seen another type just now.
        match table.fields.get(index) {
            Some(field) if field.name == name => {
                field_at(object, index).ok_or_else(|| EvalError::NoSuchKey(name.to_owned()))
            }
            _ => value.select(name),
        }
    }
}
