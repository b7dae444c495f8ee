//! One view of a type for merging, apply and pruning, whether it comes from the static tables of built-in kinds or from
//! the structural schema of a custom resource.
//!
//! A [`TypeNode`] is a cheap cursor: it says what kind of node it stands on and gives the nodes below. Where nothing is
//! known (free-form JSON) it is *deduced*: scalars and lists as a whole, maps key by key.

mod misfit;

use api_machinery::leaf::LeafType;
use api_machinery::reflect::{FieldType, ListType, PatchStrategy, Presence, Shape, StructType};
use serde_json::Value;

use crate::structural::Structural;

/// A place in a type.
#[derive(Clone, Copy)]
pub struct TypeNode<'a> {
    source: Source<'a>,
    /// The row of the struct's table that declares this place, if a table does.
    row: Option<&'static FieldType>,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Table(Shape),
    Schema(&'a Structural),
    TypeMeta,
    Deduced,
}

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A single value.
    Scalar(Scalar),
    /// A list.
    List(ListKind),
    /// A struct or a map; `atomic` when it is owned as a whole.
    Map {
        /// Owned as a whole.
        atomic: bool,
    },
    /// Anything; the value decides.
    Deduced,
}

/// Which JSON types a scalar may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// `true` or `false`.
    Boolean,
    /// A number.
    Numeric,
    /// A text.
    String,
    /// Any of them.
    Any,
}

/// How the items of a list are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Not at all: the list is one value.
    Atomic,
    /// By value.
    Set,
    /// By key members, see [`TypeNode::map_keys`].
    Map,
}

impl<'a> TypeNode<'a> {
    /// The type of a whole object of a built-in kind.
    pub const fn of_struct(table: &'static StructType) -> Self {
        Self { source: Source::Table(Shape::Struct(table)), row: None }
    }

    /// A type of which nothing is known.
    pub const fn deduced() -> Self {
        Self { source: Source::Deduced, row: None }
    }

    /// The type that a structural schema describes.
    pub const fn of_schema(schema: &'a Structural) -> Self {
        Self { source: Source::Schema(schema), row: None }
    }

    /// What stands here.
    pub fn class(&self) -> Class {
        match self.source {
            Source::Deduced => Class::Deduced,
            Source::TypeMeta => Class::Scalar(Scalar::String),
            Source::Table(shape) => self.table_class(shape.required()),
            Source::Schema(schema) => schema_class(schema),
        }
    }

    /// The class for this value: free-form places take after what they hold.
    pub fn class_for(&self, value: &Value) -> Class {
        match (self.class(), value) {
            (Class::Deduced, Value::Object(_)) => Class::Map { atomic: false },
            (Class::Deduced, Value::Array(_)) => Class::List(ListKind::Atomic),
            (Class::Deduced, Value::Null) => Class::Deduced,
            (Class::Deduced, _) => Class::Scalar(Scalar::Any),
            (class, _) => class,
        }
    }

    fn table_class(&self, shape: Shape) -> Class {
        match shape {
            Shape::Bool => Class::Scalar(Scalar::Boolean),
            Shape::Int32 | Shape::Int64 | Shape::Float => Class::Scalar(Scalar::Numeric),
            Shape::Str | Shape::Bytes => Class::Scalar(Scalar::String),
            Shape::Struct(table) => {
                Class::Map { atomic: self.row.map_or(table.atomic, |row| row.atomic || table.atomic && !row.granular) }
            }
            Shape::Map(_) => Class::Map { atomic: self.row.is_some_and(|row| row.atomic) },
            Shape::List(_) => Class::List(self.row.map_or(ListKind::Atomic, |row| match row.list {
                ListType::Atomic => ListKind::Atomic,
                ListType::Set => ListKind::Set,
                ListType::Map(_) => ListKind::Map,
            })),
            Shape::Leaf(leaf) => leaf_class(leaf),
            Shape::Dynamic => Class::Deduced,
            Shape::Optional(inner) => self.table_class(inner()),
        }
    }

    /// The member names that tell the items of a keyed list apart.
    pub fn map_keys(&self) -> Vec<&'a str> {
        match self.source {
            Source::Schema(schema) => schema.list_map_keys.iter().map(String::as_str).collect(),
            _ => match self.row.map(|row| row.list) {
                Some(ListType::Map(keys)) => keys.to_vec(),
                _ => Vec::new(),
            },
        }
    }

    /// The default that the type declares for this place.
    pub fn default_value(&self) -> Option<Value> {
        match self.source {
            Source::Schema(schema) => schema.default.clone(),
            _ => serde_json::from_str(self.row?.default).ok().or_else(|| self.zero()),
        }
    }

    /// What is always written has its zero value for a default, as the documents of upstream say.
    fn zero(&self) -> Option<Value> {
        let (Source::Table(shape), Presence::Always) = (self.source, self.row?.presence) else { return None };
        match shape {
            Shape::Str => Some("".into()),
            Shape::Int32 | Shape::Int64 => Some(0.into()),
            Shape::Bool => Some(false.into()),
            _ => None,
        }
    }

    /// The type of the items of a list.
    #[must_use]
    pub fn item(&self) -> Self {
        let deduced = Self::deduced();
        match self.source {
            Source::Table(shape) => match shape.required() {
                Shape::List(of) => Self { source: Source::Table(of()), row: None },
                _ => deduced,
            },
            Source::Schema(schema) => schema.items.as_deref().map_or(deduced, Self::of_schema),
            Source::TypeMeta | Source::Deduced => deduced,
        }
    }

    /// The type of a member, whether a declared field or a map's entry; `None` when the type knows no such member.
    pub fn member(&self, name: &str) -> Option<Self> {
        self.declared(name).or_else(|| self.entry())
    }

    /// The type of the field of this row, for a struct that has it in its table.
    #[must_use]
    pub fn field(&self, row: &'static FieldType) -> Self {
        match self.source {
            Source::Table(_) => Self::of_row(row),
            _ => self.member(row.name).unwrap_or(Self::deduced()),
        }
    }

    fn of_row(row: &'static FieldType) -> Self {
        Self { source: Source::Table((row.shape)()), row: Some(row) }
    }

    /// The type of a declared field.
    pub fn declared(&self, name: &str) -> Option<Self> {
        match self.source {
            Source::Table(shape) => match shape.required() {
                Shape::Struct(table) => struct_member(table, name),
                _ => None,
            },
            Source::Schema(schema) => {
                if schema.is_object_root() && matches!(name, "apiVersion" | "kind") {
                    return Some(Self { source: Source::TypeMeta, row: None });
                }
                if schema.is_object_root() && name == "metadata" {
                    return Some(object_meta());
                }
                schema.properties.get(name).map(|below| Self::of_schema(below))
            }
            Source::TypeMeta | Source::Deduced => None,
        }
    }

    /// The type of the entries of a map with free keys.
    pub fn entry(&self) -> Option<Self> {
        match self.source {
            Source::Deduced => Some(Self::deduced()),
            Source::TypeMeta => None,
            Source::Table(shape) => match shape.required() {
                Shape::Map(of) => Some(Self { source: Source::Table(of()), row: None }),
                Shape::Struct(table) => {
                    let rest = table.fields.iter().find(|field| field.rest)?;
                    match (rest.shape)().required() {
                        Shape::Map(of) => Some(Self { source: Source::Table(of()), row: None }),
                        _ => Some(Self::deduced()),
                    }
                }
                Shape::Dynamic | Shape::Leaf(_) => Some(Self::deduced()),
                _ => None,
            },
            Source::Schema(schema) => match &schema.additional_properties {
                Some(of) => Some(Self::of_schema(of)),
                None if schema.preserve_unknown_fields || schema.any_properties || schema.is_untyped() => {
                    Some(Self::deduced())
                }
                None => None,
            },
        }
    }

    /// How a strategic merge patch treats this place.
    pub fn patch_strategy(&self) -> PatchStrategy {
        self.row.map(|row| row.patch).unwrap_or_default()
    }

    /// Whether this is a struct with a table, as against a map or free-form JSON.
    pub fn is_struct(&self) -> bool {
        matches!(self.source, Source::Table(shape) if matches!(shape.required(), Shape::Struct(_)))
    }

    /// The name that errors of strategic merge print for this type.
    pub fn go_name(&self) -> String {
        match self.source {
            Source::Table(shape) => shape.required().go_name(),
            _ => "map[string]interface {}".into(),
        }
    }
}

/// The type of `metadata` of every object.
pub fn object_meta() -> TypeNode<'static> {
    use api_machinery::meta::ObjectMeta;
    use api_machinery::reflect::Field;
    TypeNode { source: Source::Table(<ObjectMeta as Field>::shape()), row: None }
}

fn struct_member(table: &'static StructType, name: &str) -> Option<TypeNode<'static>> {
    if table.type_meta && matches!(name, "apiVersion" | "kind") {
        return Some(TypeNode { source: Source::TypeMeta, row: None });
    }
    if let Some(row) = table.index_of(name).and_then(|index| table.fields.get(index)).filter(|row| !row.rest) {
        return Some(TypeNode::of_row(row));
    }
    let inline = table.fields.get(table.inline()?)?;
    match (inline.shape)().required() {
        Shape::Struct(inner) => struct_member(inner, name),
        _ => None,
    }
}

fn leaf_class(leaf: &LeafType) -> Class {
    match (leaf.name, leaf.openapi_type) {
        ("resource.Quantity" | "intstr.IntOrString", _) => Class::Scalar(Scalar::Any),
        (_, "string") => Class::Scalar(Scalar::String),
        (_, "array") => Class::List(ListKind::Atomic),
        _ => Class::Deduced,
    }
}

fn schema_class(schema: &Structural) -> Class {
    if schema.int_or_string {
        return Class::Scalar(Scalar::Any);
    }
    match schema.kind.as_str() {
        "object" if schema.is_free_form() => Class::Deduced,
        "object" => Class::Map { atomic: schema.map_type == "atomic" },
        "array" => Class::List(match schema.list_type.as_str() {
            "set" => ListKind::Set,
            "map" => ListKind::Map,
            _ => ListKind::Atomic,
        }),
        "string" => Class::Scalar(Scalar::String),
        "boolean" => Class::Scalar(Scalar::Boolean),
        "integer" | "number" => Class::Scalar(Scalar::Numeric),
        _ => Class::Deduced,
    }
}
