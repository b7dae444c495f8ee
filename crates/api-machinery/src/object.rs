//! Objects: structs with a kind and metadata, and custom objects whose fields are only known at run time.

use std::any::Any;
use std::collections::BTreeMap;

use crate::cbor;
use crate::gvk::GroupVersionKind;
use crate::json::{self, DecodeError, Decoded, TypeMeta};
use crate::meta::{ListMeta, ObjectMeta};
use crate::protobuf::{self, Encoder, WireError};
use crate::reflect::{self, Field, FieldType, Reflect, Shape, StructType};
use crate::renamed::Renamed;
use crate::value::Value;

/// What a kind is called on the wire.
#[derive(Clone, Copy)]
pub struct KindType {
    /// The group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The version of the same form in which clients read and watch it. It is another one where objects are kept in an
    /// older version than the one that is likely to be served.
    pub watched: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The plural name in paths; empty for kinds that are not resources.
    pub resource: &'static str,
    /// The singular name: the kind in lower case, as of every built-in one.
    pub singular: &'static str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// The table of its struct.
    pub table: &'static StructType,
}

impl KindType {
    /// Its place among all resources: group, version and plural name.
    #[must_use]
    pub const fn place(&self) -> [&'static str; 3] {
        [self.group, self.version, self.resource]
    }

    /// `group/version`, or the version alone for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// A struct with a kind of its own.
pub trait Kind: Reflect + Clone + Default {
    /// What the kind is called.
    const TYPE: KindType;
}

/// An object with metadata, built-in or custom.
pub trait Object: Reflect {
    /// `apiVersion` of the object.
    fn api_version(&self) -> String;
    /// `kind` of the object.
    fn kind(&self) -> &str;
    /// The metadata.
    fn meta(&self) -> &ObjectMeta;
    /// The metadata, for writing.
    fn meta_mut(&mut self) -> &mut ObjectMeta;
    /// A copy.
    fn clone_object(&self) -> Box<dyn Object>;
    /// The table view, for engines that do not care that it is an object.
    fn as_reflect(&self) -> &dyn Reflect;
    /// The table view, for writing.
    fn as_reflect_mut(&mut self) -> &mut dyn Reflect;
}

impl dyn Object {
    /// The object as its own type, if it is a `T`, under whichever version's name.
    #[must_use]
    pub fn downcast_ref<T: Object>(&self) -> Option<&T> {
        let own = (self as &dyn Any).downcast_ref();
        own.or_else(|| (self as &dyn Any).downcast_ref::<Renamed>()?.object().downcast_ref())
    }

    /// The object as its own type for writing, if it is a `T`.
    #[must_use]
    pub fn downcast_mut<T: Object>(&mut self) -> Option<&mut T> {
        if (self as &dyn Any).is::<Renamed>() {
            return (self as &mut dyn Any).downcast_mut::<Renamed>()?.object_mut().downcast_mut();
        }
        (self as &mut dyn Any).downcast_mut()
    }

    /// The group, version and kind; empty names where `apiVersion` cannot be read.
    #[must_use]
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::from_type_meta(&self.api_version(), self.kind()).unwrap_or_default()
    }

    /// The object as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::encode_object(self.kind(), &self.api_version(), self.as_reflect())
    }

    /// The object as JSON, as an item of a list, which says what its items are; custom objects say so themselves.
    #[must_use]
    pub fn to_json_item(&self) -> String {
        let is_custom = (self.as_reflect() as &dyn Any).is::<Unstructured>();
        if is_custom { self.to_json() } else { json::encode_item(self.as_reflect()) }
    }

    /// The object as an enveloped protobuf message. Custom objects have no protobuf form.
    #[must_use]
    pub fn to_protobuf(&self) -> Vec<u8> {
        protobuf::seal(&self.api_version(), self.kind(), |out: &mut Encoder| out.members(self.as_reflect()))
    }

    /// The object as CBOR.
    #[must_use]
    pub fn to_cbor(&self) -> Vec<u8> {
        cbor::encode_typed(self.kind(), &self.api_version(), self.as_reflect())
    }

    /// The object as a free-form value with `kind` and `apiVersion`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = crate::value::struct_to_map(self.as_reflect());
        map.insert("apiVersion".into(), self.api_version().into());
        map.insert("kind".into(), self.kind().into());
        Value::Object(map)
    }
}

impl Clone for Box<dyn Object> {
    fn clone(&self) -> Self {
        self.clone_object()
    }
}

/// Decodes a typed object from JSON, reporting unknown and duplicate fields.
///
/// # Errors
/// When the bytes are not JSON or do not fit.
pub fn from_json<T: Reflect + Default>(bytes: &[u8]) -> Result<(T, Decoded), DecodeError> {
    let mut target = T::default();
    let decoded = json::decode(bytes, &mut target)?;
    Ok((target, decoded))
}

/// Decodes a typed object from a free-form value.
///
/// # Errors
/// When the value does not fit.
pub fn from_value<T: Reflect + Default>(value: &Value) -> Result<T, DecodeError> {
    let mut target = T::default();
    crate::value::from_value(value, &mut target)?;
    Ok(target)
}

/// Decodes a typed object from an enveloped protobuf message.
///
/// # Errors
/// When the bytes are not one.
pub fn from_protobuf<T: Reflect + Default>(bytes: &[u8]) -> Result<(T, TypeMeta), WireError> {
    let envelope = protobuf::open(bytes)?;
    let mut target = T::default();
    protobuf::decode(envelope.raw, &mut target)?;
    Ok((target, TypeMeta { api_version: envelope.api_version, kind: envelope.kind }))
}

/// An object whose kind is only known at run time, such as a custom resource.
#[derive(Clone, Default)]
pub struct Unstructured {
    /// `apiVersion` and `kind`.
    pub type_meta: TypeMeta,
    /// The metadata, which every kind shares.
    pub metadata: ObjectMeta,
    /// All other top-level members.
    pub content: BTreeMap<String, Value>,
}

impl Unstructured {
    /// The table of all of them.
    pub const TABLE: &'static StructType = &UNSTRUCTURED;

    /// An empty object of a kind.
    #[must_use]
    pub fn new(api_version: &str, kind: &str) -> Self {
        let type_meta = TypeMeta { api_version: api_version.into(), kind: kind.into() };
        Self { type_meta, ..Self::default() }
    }

    /// Decodes one from JSON, reporting unknown metadata fields and duplicate names.
    ///
    /// # Errors
    /// When the bytes are not a JSON object, or its metadata does not fit.
    pub fn from_json(bytes: &[u8]) -> Result<(Self, Decoded), DecodeError> {
        let (mut object, decoded) = from_json::<Self>(bytes)?;
        object.type_meta = decoded.type_meta.clone();
        Ok((object, decoded))
    }

    /// Decodes one from a free-form value.
    ///
    /// # Errors
    /// When it is not an object, or its metadata does not fit.
    pub fn from_value(value: &Value) -> Result<Self, DecodeError> {
        let mut object = from_value::<Self>(value)?;
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        object.type_meta = TypeMeta { api_version: text("apiVersion"), kind: text("kind") };
        Ok(object)
    }
}

static UNSTRUCTURED: StructType = StructType {
    name: "Unstructured",
    package: "io.k8s.apimachinery.pkg.runtime",
    doc: "An object whose kind is only known at run time.",
    atomic: false,
    type_meta: true,
    union: None,
    fields: &[
        FieldType { name: "metadata", key: "\"metadata\":", shape: <ObjectMeta as Field>::shape, ..FieldType::PLAIN },
        FieldType { rest: true, shape: <BTreeMap<String, Value> as Field>::shape, ..FieldType::PLAIN },
    ],
    wire_order: &[],
    by_number: &[],
    json_always: 0,
    wire_always: 0,
    fills: 0,
};

impl Reflect for Unstructured {
    fn struct_type(&self) -> &'static StructType {
        Self::TABLE
    }
    fn field(&self, index: usize) -> &dyn Field {
        if index == 0 { &self.metadata } else { &self.content }
    }
    fn field_mut(&mut self, index: usize) -> &mut dyn Field {
        if index == 0 { &mut self.metadata } else { &mut self.content }
    }
}

impl Object for Unstructured {
    fn api_version(&self) -> String {
        self.type_meta.api_version.clone()
    }
    fn kind(&self) -> &str {
        &self.type_meta.kind
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
    fn clone_object(&self) -> Box<dyn Object> {
        Box::new(self.clone())
    }
    fn as_reflect(&self) -> &dyn Reflect {
        self
    }
    fn as_reflect_mut(&mut self) -> &mut dyn Reflect {
        self
    }
}

impl PartialEq for Unstructured {
    fn eq(&self, other: &Self) -> bool {
        self.type_meta == other.type_meta && reflect::equal_structs(self, other)
    }
}

impl std::fmt::Debug for Unstructured {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (meta, kind) = (self.meta(), &self.type_meta.kind);
        // Whoever reads one without its type knows nothing of its secrets.
        if kind == "Secret" {
            return write!(out, "{kind} {}/{}", meta.namespace, meta.name);
        }
        out.write_str(&crate::json::encode_redacted(self))
    }
}

/// A list of typed objects; its kind is the item's with `List` behind.
#[derive(Clone, Debug, Default)]
pub struct ObjectList<T> {
    /// Revision and paging.
    pub metadata: ListMeta,
    /// The objects.
    pub items: Vec<T>,
}

/// A struct shape for a type that has a table; used by generated code.
#[must_use]
pub const fn struct_shape(table: &'static StructType) -> Shape {
    Shape::Struct(table)
}
