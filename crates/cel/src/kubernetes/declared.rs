//! Types of free-form values, as a structural schema declares them: what the checker knows of them, and how they read.
//!
//! Concept: <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#type-checking>

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::value::{Value as Json, ValueMap};
use base64::Engine as _;

use crate::ast::Name;
use crate::environment::TypeProvider;
use crate::estimate::{Hints, Range};
use crate::time::{self, Timestamp};
use crate::types::Type;
use crate::value::{List, Map, Object, Value, compare};

mod unordered;

/// A declared type.
#[derive(Debug, Clone)]
pub struct Declared {
    pub kind: DeclaredKind,
    /// The most characters, bytes or elements that a value has, where that is known; upstream counts other values as
    /// nothing (0) where their type is declared.
    pub max_size: Option<u64>,
}

/// What a declared type is.
#[derive(Debug, Clone)]
pub enum DeclaredKind {
    /// Anything; also `int-or-string`.
    Dyn,
    Bool,
    Int,
    Double,
    String,
    /// A string in base64.
    Bytes,
    /// A string of format `date` or `date-time`.
    Timestamp,
    /// A string of format `duration`.
    Duration,
    List {
        item: Arc<Declared>,
        order: ListOrder,
    },
    Map {
        value: Arc<Declared>,
    },
    Object {
        name: Name,
        fields: BTreeMap<Name, DeclaredField>,
    },
}

/// What the order of a list's elements means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListOrder {
    Atomic,
    /// Equal in any order.
    Set,
    /// Told apart by these members, equal in any order.
    Map(Vec<String>),
}

/// A field of an object, filed under the name that expressions have for it.
#[derive(Debug, Clone)]
pub struct DeclaredField {
    /// The name in JSON.
    pub json_name: String,
    pub declared: Arc<Declared>,
}

const RESERVED: [&str; 20] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
];

/// Whether the word is no name in expressions.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || name == "while"
}

/// The name that expressions have for a property; nothing for one that they cannot reach.
#[must_use]
pub fn escape(name: &str) -> Option<Name> {
    if is_reserved(name) {
        return Some(format!("__{name}__").into());
    }
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/'));
    if !starts || !plain {
        return None;
    }
    let escaped = name.replace("__", "__underscores__").replace('.', "__dot__");
    Some(escaped.replace('-', "__dash__").replace('/', "__slash__").into())
}

impl Declared {
    /// The keys of maps. Upstream knows no limit for them and counts them as nothing.
    const KEY: &'static Self = &Self { kind: DeclaredKind::String, max_size: Some(0) };

    /// A type without a known size.
    #[must_use]
    pub fn new(kind: DeclaredKind) -> Self {
        Self { kind, max_size: None }
    }

    /// A string.
    #[must_use]
    pub fn text() -> Self {
        Self::new(DeclaredKind::String)
    }

    /// A list whose order counts.
    #[must_use]
    pub fn list(item: Self) -> Self {
        Self::new(DeclaredKind::List { item: Arc::new(item), order: ListOrder::Atomic })
    }

    /// A map from strings.
    #[must_use]
    pub fn map(value: Self) -> Self {
        Self::new(DeclaredKind::Map { value: Arc::new(value) })
    }

    /// A struct whose fields have the same names in JSON and in expressions.
    #[must_use]
    pub fn object(name: &str, fields: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        let field = |(name, declared): (&'static str, Self)| {
            (name.into(), DeclaredField { json_name: name.to_owned(), declared: Arc::new(declared) })
        };
        let fields = fields.into_iter().map(field).collect();
        Self::new(DeclaredKind::Object { name: name.into(), fields })
    }

    /// A user, as reviews and rules about users see one.
    #[must_use]
    pub fn user_info() -> Self {
        let fields = [
            ("username", Self::text()),
            ("uid", Self::text()),
            ("groups", Self::list(Self::text())),
            ("extra", Self::map(Self::list(Self::text()))),
        ];
        Self::object("kubernetes.UserInfo", fields)
    }

    /// The type for the checker.
    #[must_use]
    pub fn cel_type(&self) -> Type {
        match &self.kind {
            DeclaredKind::Dyn => Type::Dyn,
            DeclaredKind::Bool => Type::Bool,
            DeclaredKind::Int => Type::Int,
            DeclaredKind::Double => Type::Double,
            DeclaredKind::String => Type::String,
            DeclaredKind::Bytes => Type::Bytes,
            DeclaredKind::Timestamp => Type::Timestamp,
            DeclaredKind::Duration => Type::Duration,
            DeclaredKind::List { item, .. } => Type::list(item.cel_type()),
            DeclaredKind::Map { value } => Type::map(Type::String, value.cel_type()),
            DeclaredKind::Object { name, .. } => Type::Object(Name::clone(name)),
        }
    }

    /// A free-form value of this type, read where it lies. One that is of another type reads as what it is.
    #[must_use]
    pub fn value<'a>(&'a self, json: &'a Json) -> Value<'a> {
        let read = match (&self.kind, json) {
            (DeclaredKind::List { .. }, Json::Array(items)) => Some(Value::List(List::Declared(items, self))),
            (DeclaredKind::Map { .. }, Json::Object(map)) => Some(Value::Map(Map::Declared(map, self))),
            (DeclaredKind::Object { .. }, Json::Object(map)) => Some(Value::Object(Object::Declared(map, self))),
            (DeclaredKind::Int, Json::Number(number)) => {
                number.as_i64().or_else(|| compare::double_as_int(number.as_f64()?)).map(Value::Int)
            }
            (DeclaredKind::Double, Json::Number(number)) => number.as_f64().map(Value::Double),
            (DeclaredKind::Timestamp, Json::String(text)) => timestamp(text).map(Value::Timestamp),
            (DeclaredKind::Duration, Json::String(text)) => time::parse_duration(text).map(Value::Duration),
            (DeclaredKind::Bytes, Json::String(text)) => {
                base64::engine::general_purpose::STANDARD.decode(text).ok().map(Value::blob)
            }
            _ => None,
        };
        read.unwrap_or_else(|| Value::of_json(json))
    }

    pub(crate) fn item_value<'a>(&'a self, json: &'a Json) -> Value<'a> {
        match &self.kind {
            DeclaredKind::List { item, .. } => item.value(json),
            DeclaredKind::Map { value } => value.value(json),
            _ => Value::of_json(json),
        }
    }

    pub(crate) fn type_name(&self) -> &str {
        if let DeclaredKind::Object { name, .. } = &self.kind { name } else { "object" }
    }

    pub(crate) fn field_value<'a>(&'a self, map: &'a ValueMap<String, Json>, name: &str) -> Option<Value<'a>> {
        let DeclaredKind::Object { fields, .. } = &self.kind else { return None };
        let field = fields.get(name)?;
        // A field that is null is one that is not there.
        map.get(&field.json_name).filter(|json| !json.is_null()).map(|json| field.declared.value(json))
    }

    pub(crate) fn field_names(&self, map: &ValueMap<String, Json>) -> Vec<Name> {
        let DeclaredKind::Object { fields, .. } = &self.kind else { return Vec::new() };
        fields
            .iter()
            .filter(|(_, field)| map.get(&field.json_name).is_some_and(|json| !json.is_null()))
            .map(|(name, _)| Name::clone(name))
            .collect()
    }

    /// Whether objects of this type are equal. What the type does not declare is compared as it is.
    pub(crate) fn objects_equal(&self, left: &ValueMap<String, Json>, right: &ValueMap<String, Json>) -> bool {
        let DeclaredKind::Object { fields, .. } = &self.kind else { return left == right };
        let same = |(name, value): (&String, &Json)| {
            let Some(other) = right.get(name) else { return false };
            let declared = escape(name).and_then(|name| fields.get(&name));
            declared.map_or_else(
                || value == other,
                |field| field.declared.value(value).equals(&field.declared.value(other)),
            )
        };
        left.len() == right.len() && left.iter().all(same)
    }

    /// How the elements are told apart, if this is a list whose order does not count.
    fn unordered(&self) -> Option<unordered::Identity<'_>> {
        match &self.kind {
            DeclaredKind::List { order: ListOrder::Set, .. } => Some(unordered::Identity::Value),
            DeclaredKind::List { order: ListOrder::Map(keys), .. } => Some(unordered::Identity::Keys(keys)),
            _ => None,
        }
    }

    /// Whether lists are equal in any order; nothing where the order counts.
    pub(crate) fn lists_equal(&self, left: &List<'_>, right: &List<'_>) -> Option<bool> {
        Some(unordered::equal(self.unordered()?, left, right))
    }

    /// What adding a list to one of this type makes; nothing where it is put behind it.
    pub(crate) fn lists_merged<'v>(&self, left: &List<'v>, right: &List<'v>) -> Option<Vec<Value<'v>>> {
        Some(unordered::merged(self.unordered()?, left, right))
    }

    /// The type at a path of field names, `@items` and `@values`.
    fn at(&self, path: &[Name]) -> Option<&Self> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        match (&self.kind, &**first) {
            (DeclaredKind::List { item, .. }, "@items") => item.at(rest),
            (DeclaredKind::Map { value }, "@values") => value.at(rest),
            (DeclaredKind::Map { .. }, "@keys") => Self::KEY.at(rest),
            (DeclaredKind::Map { value }, _) if !first.starts_with('@') => value.at(rest),
            (DeclaredKind::Object { fields, .. }, name) => fields.get(name)?.declared.at(rest),
            _ => None,
        }
    }

    fn find(&self, wanted: &str) -> Option<&BTreeMap<Name, DeclaredField>> {
        match &self.kind {
            DeclaredKind::Object { name, fields } if &**name == wanted => Some(fields),
            DeclaredKind::Object { fields, .. } => fields.values().find_map(|field| field.declared.find(wanted)),
            DeclaredKind::List { item, .. } => item.find(wanted),
            DeclaredKind::Map { value } => value.find(wanted),
            _ => None,
        }
    }
}

/// Of format `date-time` or `date`.
fn timestamp(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text).or_else(|| Timestamp::parse(&format!("{text}T00:00:00Z")))
}

/// The structs below declared types, and sizes below the variables that have them.
#[derive(Debug, Clone, Default)]
pub struct DeclaredTypes {
    variables: Vec<(Name, Arc<Declared>)>,
}

impl DeclaredTypes {
    /// With a variable of a type.
    #[must_use]
    pub fn with(mut self, variable: &str, declared: Arc<Declared>) -> Self {
        self.variables.push((variable.into(), declared));
        self
    }

    fn find(&self, type_name: &str) -> Option<&BTreeMap<Name, DeclaredField>> {
        self.variables.iter().find_map(|(_, declared)| declared.find(type_name))
    }
}

impl TypeProvider for DeclaredTypes {
    fn has_type(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn field(&self, type_name: &str, field: &str) -> Option<Type> {
        Some(self.find(type_name)?.get(field)?.declared.cel_type())
    }
}

impl Hints for DeclaredTypes {
    fn size(&self, path: &[Name]) -> Option<Range> {
        let (variable, rest) = path.split_first()?;
        let (_, declared) = self.variables.iter().find(|(name, _)| name == variable)?;
        declared.at(rest)?.max_size.map(|max| Range::new(0, max))
    }
}
