//! Structs: of the API, of the caller, and those that expressions make.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api_machinery::reflect::{self, Presence, Reflect};
use api_machinery::value::{Value as Json, ValueMap};

use crate::ast::Name;
use crate::error::{EvalError, Out};
use crate::kubernetes::declared::Declared;

use super::Value;

/// A struct.
#[derive(Clone)]
pub enum Object<'a> {
    /// An API object or a part of one.
    Struct(&'a dyn Reflect),
    /// A free-form object whose type is declared.
    Declared(&'a ValueMap<String, Json>, &'a Declared),
    /// What the caller shows.
    View(&'a dyn View),
    /// Made by the expression.
    Built(Arc<Built<'a>>),
}

/// A struct that the caller shows in its own way.
pub trait View: Send + Sync {
    /// The name of its type.
    fn type_name(&self) -> &str;
    /// The field, where it is set.
    fn field(&self, name: &str) -> Option<Value<'_>>;
    /// The names of the fields that are set.
    fn fields(&self) -> Vec<&str>;
}

/// A struct that an expression made.
#[derive(Debug)]
pub struct Built<'a> {
    pub type_name: Name,
    /// The fields that were set, in order.
    pub fields: Vec<(Name, Value<'a>)>,
}

impl<'a> Object<'a> {
    /// The name of its type.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match self {
            Self::Struct(object) => object.struct_type().name,
            Self::Declared(_, declared) => declared.type_name(),
            Self::View(view) => view.type_name(),
            Self::Built(built) => &built.type_name,
        }
    }

    /// The field, where it is set.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Value<'a>> {
        match self {
            Self::Struct(object) => struct_field(*object, name),
            Self::Declared(map, declared) => declared.field_value(map, name),
            Self::View(view) => view.field(name),
            Self::Built(built) => {
                built.fields.iter().find(|(found, _)| &**found == name).map(|(_, value)| value.clone())
            }
        }
    }

    /// The names of the fields that are set.
    #[must_use]
    pub fn fields(&self) -> Vec<Name> {
        match self {
            Self::Struct(object) => {
                let table = object.struct_type().fields;
                let written = reflect::written_fields(*object);
                written.filter_map(|index| table.get(index)).map(|field| field.name.into()).collect()
            }
            Self::Declared(map, declared) => declared.field_names(map),
            Self::View(view) => view.fields().into_iter().map(Name::from).collect(),
            Self::Built(built) => built.fields.iter().map(|(name, _)| Name::clone(name)).collect(),
        }
    }

    pub(crate) fn select(&self, name: &str) -> Out<Value<'a>> {
        self.field(name).ok_or_else(|| EvalError::NoSuchKey(name.to_owned()))
    }

    pub(crate) fn has(&self, name: &str) -> Out<bool> {
        Ok(self.field(name).is_some())
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.fields().is_empty()
    }
}

/// A field as JSON has it: one that would not be written is not there.
fn struct_field<'a>(object: &'a dyn Reflect, name: &str) -> Option<Value<'a>> {
    let table = object.struct_type();
    match table.index_of(name) {
        Some(index) => struct_field_at(object, index),
        None => {
            let inline = object.field(table.inline()?);
            let reflect::View::Struct(inner) = inline.view() else { return None };
            struct_field(inner, name)
        }
    }
}

fn struct_field_at(object: &dyn Reflect, index: usize) -> Option<Value<'_>> {
    let row = object.struct_type().fields.get(index)?;
    let field = object.field(index);
    let written = match row.presence {
        Presence::Always => true,
        Presence::OmitEmpty => !field.is_unset(),
        Presence::OmitZero => !reflect::is_zero(field),
    };
    written.then(|| Value::of_field(field))
}

/// Where a field stands in the tables of the objects seen last: selections of one place mostly see one type.
#[derive(Debug, Default)]
pub(crate) struct FieldHint(AtomicUsize);

impl FieldHint {
    /// The value of a field by name.
    pub(crate) fn select<'a>(&self, value: &Value<'a>, name: &str) -> Out<Value<'a>> {
        let Value::Object(Object::Struct(object)) = value else { return value.select(name) };
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
                struct_field_at(*object, index).ok_or_else(|| EvalError::NoSuchKey(name.to_owned()))
            }
            _ => value.select(name),
        }
    }
}

impl fmt::Debug for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct(self.type_name());
        for name in self.fields() {
            if let Some(value) = self.field(&name) {
                out.field(&name, &value);
            }
        }
        out.finish()
    }
}
