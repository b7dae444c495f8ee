//! Values. What the caller's objects hold is read where it lies; only what an expression makes is owned, and shared.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use api_machinery::object::Object as ApiObject;
use api_machinery::reflect::{Field, Reflect};
use api_machinery::value::{Value as Json, ValueMap};

use crate::ast::{Literal, Name};
use crate::error::{EvalError, Out};
use crate::kubernetes::declared::Declared;
use crate::time::Timestamp;
use crate::types::Type;

pub(crate) mod compare;
mod map;
mod object;
mod read;
mod record;

pub use map::{Entries, Map, View};
pub use object::{Built, Object};
pub(crate) use record::{FieldHint, Step};

/// A value, which may borrow from what it was evaluated over.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Blob<'a>),
    Timestamp(Timestamp),
    /// Nanoseconds.
    Duration(i64),
    List(List<'a>),
    Map(Map<'a>),
    Object(Object<'a>),
    Optional(Option<Arc<Self>>),
    Type(Type),
    Opaque(Arc<dyn Opaque>),
}

/// A string.
#[derive(Clone)]
pub enum Text<'a> {
    Borrowed(&'a str),
    Shared(Name),
}

/// Bytes.
#[derive(Debug, Clone)]
pub enum Blob<'a> {
    Borrowed(&'a [u8]),
    Shared(Arc<[u8]>),
}

/// A list.
#[derive(Clone)]
pub enum List<'a> {
    /// Made by the expression.
    Shared(Arc<Vec<Value<'a>>>),
    /// Of a free-form value.
    Json(&'a [Json]),
    /// Of an API object.
    Field(&'a dyn Field),
    /// Of a free-form value whose type is declared.
    Declared(&'a [Json], &'a Declared),
}

/// A value that only functions look into.
pub trait Opaque: Any + Debug + Send + Sync {
    /// The name of its type.
    fn type_name(&self) -> &'static str;
    /// Whether it equals another of any type.
    fn equals(&self, other: &dyn Opaque) -> bool;
    /// What counts as its size for costs.
    fn size(&self) -> u64 {
        1
    }
}

impl dyn Opaque {
    /// The value as its own type, if it is a `T`.
    #[must_use]
    pub fn downcast_ref<T: Opaque>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

impl Text<'_> {
    /// The characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl std::fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

impl Blob<'_> {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl<'a> List<'a> {
    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Shared(items) => items.len(),
            Self::Json(items) | Self::Declared(items, _) => items.len(),
            Self::Field(field) => read::list_of(*field).map_or(0, |list| list.len()),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::Shared(items) => items.get(index).cloned(),
            Self::Json(items) => items.get(index).map(Value::of_json),
            Self::Declared(items, declared) => items.get(index).map(|item| declared.item_value(item)),
            Self::Field(field) => read::list_of(*field)?.item(index).map(Value::of_field),
        }
    }

    /// The elements.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        let list = if let Self::Field(field) = self { read::list_of(*field) } else { None };
        let len = list.map_or_else(|| self.len(), |list| list.len());
        (0..len).filter_map(move |index| match list {
            Some(list) => list.item(index).map(Value::of_field),
            None => self.get(index),
        })
    }
}

impl std::fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> Value<'a> {
    /// A string of its own.
    pub fn text(text: impl Into<Name>) -> Self {
        Self::String(Text::Shared(text.into()))
    }

    /// Bytes of its own.
    pub fn blob(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::Bytes(Blob::Shared(bytes.into()))
    }

    /// A list of its own.
    #[must_use]
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(List::Shared(Arc::new(items)))
    }

    /// An optional that holds a value.
    #[must_use]
    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// A value that only functions look into.
    pub fn opaque(value: impl Opaque) -> Self {
        Self::Opaque(Arc::new(value))
    }

    /// A free-form value, read where it lies.
    #[must_use]
    pub fn of_json(json: &'a Json) -> Self {
        read::json(json)
    }

    /// A free-form object, read where it lies.
    #[must_use]
    pub fn of_json_map(map: &'a ValueMap<String, Json>) -> Self {
        Self::Map(Map::Json(map))
    }

    /// An API object, read where it lies: as `of_struct`, and with what says of which kind it is.
    #[must_use]
    pub fn of_object(object: &'a dyn ApiObject) -> Self {
        Self::Map(Map::Object(object))
    }

    /// A part of an API object, read where it lies, as a map such as JSON has it: times, quantities and bytes are texts.
    #[must_use]
    pub fn of_struct(object: &'a dyn Reflect) -> Self {
        Self::Map(Map::Struct(object))
    }

    /// A map that the caller shows in its own way.
    #[must_use]
    pub fn of_view(view: &'a dyn View) -> Self {
        Self::Map(Map::View(view))
    }

    /// A part of an API object, read where it lies.
    #[must_use]
    pub fn of_field(field: &'a dyn Field) -> Self {
        read::field(field)
    }

    /// The same value for those who do not outlive this one; copies of a text are not counted.
    pub(crate) fn lent<'s: 'a>(&'s self) -> Self {
        match self {
            Self::String(text) => Self::String(Text::Borrowed(text.as_str())),
            other => other.clone(),
        }
    }

    pub(crate) fn of_literal(literal: &Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Bool(value) => Self::Bool(*value),
            Literal::Int(value) => Self::Int(*value),
            Literal::Uint(value) => Self::Uint(*value),
            Literal::Double(value) => Self::Double(*value),
            Literal::String(value) => Self::String(Text::Shared(Name::clone(value))),
            Literal::Bytes(value) => Self::Bytes(Blob::Shared(Arc::clone(value))),
        }
    }

    /// The characters, if it is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text.as_str()) } else { None }
    }

    /// The value of this opaque type, if it is one.
    #[must_use]
    pub fn as_opaque<T: Opaque>(&self) -> Option<&T> {
        if let Self::Opaque(value) = self { value.downcast_ref() } else { None }
    }

    /// Its type; elements of lists and maps are not looked at.
    #[must_use]
    pub fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Self::Object(object) => Type::object(object.type_name()),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Type(_) => Type::type_of(Type::Dyn),
            Self::Opaque(value) => Type::opaque(value.type_name()),
        }
    }

    /// Whether it is of a type, as far as can be told without looking at elements.
    pub(crate) fn is_of(&self, ty: &Type) -> bool {
        match (self, ty) {
            (_, Type::Dyn | Type::Error | Type::Param(_))
            | (Self::Null, Type::Null | Type::Nullable(_))
            | (Self::Bool(_), Type::Bool)
            | (Self::Int(_), Type::Int)
            | (Self::Uint(_), Type::Uint)
            | (Self::Double(_), Type::Double)
            | (Self::String(_), Type::String)
            | (Self::Bytes(_), Type::Bytes)
            | (Self::Timestamp(_), Type::Timestamp)
            | (Self::Duration(_), Type::Duration)
            | (Self::List(_), Type::List(_))
            | (Self::Map(_), Type::Map(_))
            | (Self::Type(_), Type::Type(_)) => true,
            (_, Type::Nullable(inner)) => self.is_of(inner),
            (Self::Optional(_), ty) => ty.as_optional().is_some(),
            (Self::Object(object), Type::Object(name)) => object.type_name() == &**name,
            (Self::Opaque(value), Type::Opaque(name, _)) => value.type_name() == &**name,
            _ => false,
        }
    }

    /// The size that costs are counted by: characters, bytes, elements; else 1.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Self::String(text) => characters(text.as_str()) as u64,
            Self::Bytes(bytes) => bytes.as_bytes().len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Opaque(value) => value.size(),
            _ => 1,
        }
    }

    /// The value of a field or key by name.
    pub(crate) fn select(&self, name: &str) -> Out<Self> {
        match self {
            Self::Map(map) => {
                let found = map.get_str(name).or_else(|| map.otherwise());
                found.ok_or_else(|| EvalError::NoSuchKey(name.to_owned()))
            }
            Self::Object(object) => object.select(name),
            Self::Optional(None) => Ok(Self::Optional(None)),
            Self::Optional(Some(inner)) => inner.select_optional(name),
            _ => Err(EvalError::failed("no such overload")),
        }
    }

    /// The value of a field or key as an optional.
    pub(crate) fn select_optional(&self, name: &str) -> Out<Self> {
        match self {
            Self::Optional(None) => Ok(Self::Optional(None)),
            Self::Optional(Some(inner)) => inner.select_optional(name),
            Self::Map(map) => Ok(Self::Optional(map.get_str(name).map(Arc::new))),
            Self::Object(object) if !object.has(name)? => Ok(Self::Optional(None)),
            _ => self.select(name).map(Self::some),
        }
    }

    /// Whether the field is set or the key there.
    pub(crate) fn has(&self, name: &str) -> Out<bool> {
        match self {
            Self::Map(map) => Ok(map.has_str(name)),
            Self::Object(object) => object.has(name),
            Self::Optional(None) => Ok(false),
            Self::Optional(Some(inner)) => inner.has(name),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    /// The element at an index or key.
    pub(crate) fn index(&self, key: &Self) -> Out<Self> {
        match (self, key) {
            (Self::List(list), _) => {
                let index = list_index(key)?;
                let found = usize::try_from(index).ok().and_then(|index| list.get(index));
                found.ok_or(EvalError::IndexOutOfBounds(index))
            }
            (Self::Map(map), _) => {
                let found = map.get(key)?.or_else(|| map.otherwise());
                found.ok_or_else(|| EvalError::NoSuchKey(key.to_display()))
            }
            (Self::Object(object), Self::String(name)) => object.select(name.as_str()),
            (Self::Optional(None), _) => Ok(Self::Optional(None)),
            (Self::Optional(Some(inner)), _) => inner.index_optional(key),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    /// The element at an index or key as an optional.
    pub(crate) fn index_optional(&self, key: &Self) -> Out<Self> {
        match (self, key) {
            (Self::Optional(None), _) => Ok(Self::Optional(None)),
            (Self::Optional(Some(inner)), _) => inner.index_optional(key),
            (Self::Object(_), Self::String(name)) => self.select_optional(name.as_str()),
            _ => match self.index(key) {
                Ok(value) => Ok(Self::some(value)),
                Err(EvalError::NoSuchKey(_) | EvalError::IndexOutOfBounds(_)) => Ok(Self::Optional(None)),
                Err(error) => Err(error),
            },
        }
    }

    /// The value as messages show it.
    #[must_use]
    pub fn to_display(&self) -> String {
        match self {
            Self::String(text) => text.as_str().to_owned(),
            Self::Int(value) => value.to_string(),
            Self::Uint(value) => value.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::Double(value) => value.to_string(),
            other => format!("{other:?}"),
        }
    }

    /// Whether it is what its type has by default.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) | Self::Duration(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::String(text) => text.as_str().is_empty(),
            Self::Bytes(bytes) => bytes.as_bytes().is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Map(map) => map.is_empty(),
            Self::Optional(value) => value.is_none(),
            Self::Object(object) => object.is_zero(),
            Self::Timestamp(_) | Self::Type(_) | Self::Opaque(_) => false,
        }
    }
}

/// How many characters a text has. Most texts are short, and have one for each byte.
fn characters(text: &str) -> usize {
    const NOT_ASCII: u64 = 0x8080_8080_8080_8080;
    let bytes = text.as_bytes();
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(head), Some(tail)) if bytes.len() <= 16 => {
            let both = u64::from_ne_bytes(*head) | u64::from_ne_bytes(*tail);
            if both & NOT_ASCII == 0 { bytes.len() } else { text.chars().count() }
        }
        _ if text.is_ascii() => bytes.len(),
        _ => text.chars().count(),
    }
}

/// A whole number as an index.
fn list_index(key: &Value<'_>) -> Out<i64> {
    match key {
        Value::Int(index) => Ok(*index),
        Value::Uint(index) => Ok(i64::try_from(*index).unwrap_or(i64::MAX)),
        Value::Double(index) => {
            compare::double_as_int(*index).ok_or_else(|| EvalError::failed("invalid_argument: unsupported index value"))
        }
        _ => Err(EvalError::NoSuchOverload),
    }
}
