//! API objects as maps, as JSON has them: a field that would not be written is not there.

use std::slice::Iter;
use std::sync::atomic::{AtomicUsize, Ordering};

use api_machinery::object::Object;
use api_machinery::reflect::{self, Field, Presence, Reflect, StructType, View};

use crate::ast::Name;
use crate::error::{EvalError, Out};
use crate::program::Meter;

use super::{Map, Text, Value, read};

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

/// Where a field stands in the table of the objects seen last: selections of one place mostly see one type. The place is in
/// the highest byte, below it the table's address; 0 where none was seen.
#[derive(Debug, Default)]
pub(crate) struct FieldHint(AtomicUsize);

const PLACE_SHIFT: u32 = usize::BITS - 8;
const ADDRESS: usize = usize::MAX >> 8;

impl FieldHint {
    /// The place of a field in a table; nothing where it has to be looked for elsewhere.
    fn place(&self, table: &'static StructType, name: &str) -> Option<usize> {
        let address = std::ptr::from_ref(table).addr();
        let seen = self.0.load(Ordering::Relaxed);
        if seen & ADDRESS == address {
            return Some(seen >> PLACE_SHIFT);
        }
        let index = table.index_of(name)?;
        if address <= ADDRESS && index <= usize::from(u8::MAX) {
            self.0.store(index << PLACE_SHIFT | address, Ordering::Relaxed);
        }
        Some(index)
    }

    /// Whether a field is set.
    pub(crate) fn has(&self, value: &Value<'_>, name: &str) -> Out<bool> {
        if let Some(object) = as_struct(value, name)
            && let Some(index) = self.place(object.struct_type(), name)
        {
            return Ok(found_at(object, index).is_some());
        }
        value.has(name)
    }
}

/// The struct that may have a field of this name, if the value is an API object or a part of one.
fn as_struct<'a>(value: &Value<'a>, name: &str) -> Option<&'a dyn Reflect> {
    match value {
        Value::Map(Map::Struct(object)) => Some(*object),
        Value::Map(Map::Object(object)) if !TYPE_META.contains(&name) => Some(object.as_reflect()),
        _ => None,
    }
}

/// One selection of a chain.
#[derive(Debug)]
pub(crate) struct Step {
    field: Name,
    hint: FieldHint,
    cost: u64,
}

impl Step {
    pub(crate) fn new(field: &Name, cost: u64) -> Self {
        Self { field: Name::clone(field), hint: FieldHint::default(), cost }
    }

    /// What the step selects; in a struct those that follow, too, for as long as they lead into structs.
    fn select<'a>(&self, from: &Value<'a>, rest: &mut Iter<'_, Self>, meter: &mut Meter<'_>) -> Out<Value<'a>> {
        let Some(mut object) = as_struct(from, &self.field) else {
            meter.charge(self.cost)?;
            return from.select(&self.field);
        };
        let mut step = self;
        loop {
            meter.charge(step.cost)?;
            let field = step.found(object).ok_or_else(|| EvalError::NoSuchKey(step.field.to_string()))?;
            match (field.view(), rest.as_slice()) {
                (View::Struct(inner), [next, ..]) => {
                    rest.next();
                    (object, step) = (inner, next);
                }
                (view, _) => return Ok(read::viewed(field, view)),
            }
        }
    }

    /// The field of a struct, before it is made a value.
    fn found<'a>(&self, object: &'a dyn Reflect) -> Option<&'a dyn Field> {
        match self.hint.place(object.struct_type(), &self.field) {
            Some(index) => found_at(object, index),
            None => found(object, &self.field),
        }
    }
}

impl<'a> Value<'a> {
    /// What a chain of selections finds. Structs on the way are not made values.
    pub(crate) fn follow(&self, steps: &[Step], meter: &mut Meter<'_>) -> Out<Value<'a>> {
        let mut steps = steps.iter();
        let Some(first) = steps.next() else { return Ok(self.clone()) };
        let mut value = first.select(self, &mut steps, meter)?;
        while let Some(step) = steps.next() {
            value = step.select(&value, &mut steps, meter)?;
        }
        Ok(value)
    }
}
