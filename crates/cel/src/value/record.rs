//! API objects as maps, as JSON has them: a field that would not be written is not there.

use std::sync::atomic::{AtomicUsize, Ordering};

use api_machinery::object::Object;
use api_machinery::reflect::{self, Field, Presence, Reflect, View};

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

/// Whether a whole object has a member.
pub(super) fn has_member(object: &dyn Object, name: &str) -> bool {
    TYPE_META.contains(&name) || found(object.as_reflect(), name).is_some()
}

/// A field, where it is set.
pub(super) fn field<'a>(object: &'a dyn Reflect, name: &str) -> Option<Value<'a>> {
    found(object, name).map(Value::of_field)
}

/// A field, where it is set, before it is made a value, which is work for some.
pub(super) fn found<'a>(object: &'a dyn Reflect, name: &str) -> Option<&'a dyn Field> {
    let table = object.struct_type();
    if let Some(index) = table.index_of(name) {
        return found_at(object, index);
    }
    let beside = table.fields.iter().enumerate().filter(|(_, row)| row.inline || row.rest);
    beside.map(|(index, _)| object.field(index)).find_map(|part| match part.view() {
        View::Struct(inner) => found(inner, name),
        View::Map(map) => map.entry(name),
        _ => None,
    })
}

fn found_at(object: &dyn Reflect, index: usize) -> Option<&dyn Field> {
    let row = object.struct_type().fields.get(index)?;
    let field = object.field(index);
    let written = match row.presence {
        Presence::Always => true,
        Presence::OmitEmpty => !field.is_unset(),
        Presence::OmitZero => !reflect::is_zero(field),
    };
    written.then_some(field)
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
        match self.find(value, name) {
            Some((object, index)) => {
                let found = found_at(object, index).map(Value::of_field);
                found.ok_or_else(|| EvalError::NoSuchKey(name.to_owned()))
            }
            None => value.select(name),
        }
    }

    /// Whether a field is set.
    pub(crate) fn has(&self, value: &Value<'_>, name: &str) -> Out<bool> {
        match self.find(value, name) {
            Some((object, index)) => Ok(found_at(object, index).is_some()),
            None => value.has(name),
        }
    }

    /// The struct that a value is, and the place of a field in its own table; nothing where it has to be looked for elsewhere.
    fn find<'a>(&self, value: &Value<'a>, name: &str) -> Option<(&'a dyn Reflect, usize)> {
        let object = match value {
            Value::Map(Map::Struct(object)) => *object,
            Value::Map(Map::Object(object)) if !TYPE_META.contains(&name) => object.as_reflect(),
            _ => return None,
        };
        let table = object.struct_type();
        let hint = self.0.load(Ordering::Relaxed);
        if table.fields.get(hint).is_some_and(|field| !field.inline && field.name == name) {
            return Some((object, hint));
        }
        let index = table.index_of(name)?;
        self.0.store(index, Ordering::Relaxed);
        Some((object, index))
    }
}
