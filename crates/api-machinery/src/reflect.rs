//! Reflection over API objects: one static table per struct, and three small object-safe traits over its values.
//!
//! Codecs, patches, apply, pruning, schema export, deep equality and field paths are each written once over what is
//! here. `#[api]` (crate `api-derive`) writes the implementations of [`Reflect`] for structs; this file has those of
//! the containers. A number of a field is its protobuf number, an index is its place in [`StructType::fields`].

use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::leaf::{Leaf, LeafType};
use crate::value::Value;

/// Replacing a whole value, which every type that can be copied and be empty can do.
pub trait Replace {
    /// Becomes a copy of `from`; nothing happens, and it says so, where that is of another type.
    fn assign(&mut self, from: &dyn Any) -> bool;
    /// Becomes the zero value.
    fn reset(&mut self);
}

impl<T: Any + Clone + Default> Replace for T {
    fn assign(&mut self, from: &dyn Any) -> bool {
        let same = from.downcast_ref::<T>();
        if let Some(from) = same {
            self.clone_from(from);
        }
        same.is_some()
    }
    fn reset(&mut self) {
        *self = T::default();
    }
}

/// A value somewhere inside an API object.
pub trait Field: Replace + Any + Send + Sync {
    /// The value, for reading.
    fn view(&self) -> View<'_>;
    /// The value, for writing in place.
    fn view_mut(&mut self) -> ViewMut<'_>;
    /// Whether JSON output leaves it out under [`Presence::OmitEmpty`]: it is empty, and neither struct nor leaf.
    fn is_unset(&self) -> bool {
        false
    }
    /// The static type.
    fn shape() -> Shape
    where
        Self: Sized;
}

/// A struct of the API.
pub trait Reflect: Any + Send + Sync {
    /// The table of the struct.
    fn struct_type(&self) -> &'static StructType;
    /// The field at `index` of the table.
    fn field(&self, index: usize) -> &dyn Field;
    /// The field at `index` of the table, for writing.
    fn field_mut(&mut self, index: usize) -> &mut dyn Field;
    /// One bit per field, by index, for those that are not [unset](Field::is_unset). Most fields of most objects are
    /// unset, and this finds the others without a call for each.
    fn present(&self) -> u128 {
        let is_set = |index: &usize| !self.field(*index).is_unset();
        (0..self.struct_type().fields.len()).filter(is_set).fold(0, |set, index| set | 1 << index)
    }
}

/// Stands in [`StructType::by_number`] for a number that no field has.
pub const NO_FIELD: u8 = u8::MAX;

/// The static type of a struct.
pub struct StructType {
    /// Name as in the API documentation, such as `PodSpec`.
    pub name: &'static str,
    /// Prefix of its `OpenAPI` name, such as `io.k8s.api.core.v1`.
    pub package: &'static str,
    /// What it is, for `kubectl explain`.
    pub doc: &'static str,
    /// Server-side apply owns it as a whole.
    pub atomic: bool,
    /// It may carry `kind` and `apiVersion`, which are not fields of it.
    pub type_meta: bool,
    /// Fields in declared order, which is the order of JSON output.
    pub fields: &'static [FieldType],
    /// Numbers and indexes of the fields that are on the protobuf wire, by ascending number.
    pub wire_order: &'static [(u32, u16)],
    /// By protobuf number, from 0 on: the field's index, or [`NO_FIELD`].
    pub by_number: &'static [u8],
    /// One bit per field that JSON has even when it is unset.
    pub json_always: u128,
    /// One bit per field that may be on the wire even when it is unset: all but lists, maps and pointers.
    pub wire_always: u128,
    /// One bit per field that defaulting sets when it is empty.
    pub fills: u128,
}

impl StructType {
    /// The index of the field with this JSON name; members of the inline field are not looked at.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| !field.inline && field.name == name)
    }

    /// The index of the field whose members appear among this struct's own.
    #[must_use]
    pub fn inline(&self) -> Option<usize> {
        self.fields.iter().position(|field| field.inline)
    }

    /// The struct's version, such as `v1`, as it shows in type names of decode errors.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.package.rsplit('.').next().unwrap_or(self.package)
    }
}

/// When a field is left out of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Left out when empty; structs never are (Go's `omitempty`).
    OmitEmpty,
    /// Left out when it and all below is zero (Go's `omitzero`).
    OmitZero,
    /// Always written.
    Always,
}

/// How server-side apply sees a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// Owned as a whole.
    Atomic,
    /// A set of scalars, each owned by itself.
    Set,
    /// Entries told apart by these members.
    Map(&'static [&'static str]),
}

/// How a strategic merge patch treats a list or struct.
#[derive(Debug, Clone, Copy, Default)]
pub struct PatchStrategy {
    /// Lists are merged rather than replaced.
    pub merge: bool,
    /// Members that the patch does not name are dropped.
    pub retain_keys: bool,
    /// A struct is replaced as a whole rather than merged.
    pub replace: bool,
    /// The member that tells entries apart; empty for lists of scalars.
    pub merge_key: &'static str,
}

/// One row of a struct's table.
pub struct FieldType {
    /// JSON name; empty for the inline field and the rest.
    pub name: &'static str,
    /// The name as JSON has it: in quotes, with the colon behind.
    pub key: &'static str,
    /// Protobuf number; 0 where the field is not on the wire.
    pub number: u32,
    /// What it is, for `kubectl explain`.
    pub doc: &'static str,
    /// When it is left out of JSON.
    pub presence: Presence,
    /// Its members appear among those of the parent in JSON (they are a nested message in protobuf).
    pub inline: bool,
    /// A map that takes every member that no other field names.
    pub rest: bool,
    /// `OpenAPI` lists it as required.
    pub required: bool,
    /// Server-side apply owns the map or struct as a whole.
    pub atomic: bool,
    /// How server-side apply sees it when it is a list.
    pub list: ListType,
    /// How strategic merge treats it.
    pub patch: PatchStrategy,
    /// The declared default as JSON text; empty for none.
    pub default: &'static str,
    /// What defaulting sets where the field is empty, as JSON text; empty for none.
    pub fill: &'static str,
    /// Its static type.
    pub shape: fn() -> Shape,
}

impl FieldType {
    /// A row with nothing set, for tables that are written by hand.
    pub const PLAIN: Self = Self {
        name: "",
        key: "",
        number: 0,
        doc: "",
        presence: Presence::OmitEmpty,
        inline: false,
        rest: false,
        required: false,
        atomic: false,
        list: ListType::Atomic,
        patch: PatchStrategy { merge: false, replace: false, retain_keys: false, merge_key: "" },
        default: "",
        fill: "",
        shape: <String as Field>::shape,
    };
}

/// A static type.
#[derive(Clone, Copy)]
pub enum Shape {
    /// `true` or `false`.
    Bool,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A double.
    Float,
    /// A string.
    Str,
    /// Bytes; base64 in JSON.
    Bytes,
    /// A struct with this table.
    Struct(&'static StructType),
    /// A list of this.
    List(fn() -> Shape),
    /// A map from strings to this.
    Map(fn() -> Shape),
    /// This or nothing.
    Optional(fn() -> Shape),
    /// A type with an encoding of its own.
    Leaf(&'static LeafType),
    /// Any JSON value.
    Dynamic,
}

impl Shape {
    /// The type without the layer of optionality.
    #[must_use]
    pub fn required(self) -> Shape {
        match self {
            Shape::Optional(inner) => inner().required(),
            other => other,
        }
    }

    /// The type's name in decode errors, such as `[]v1.Container`.
    #[must_use]
    pub fn go_name(self) -> String {
        match self {
            Shape::Bool => "bool".into(),
            Shape::Int32 => "int32".into(),
            Shape::Int64 => "int64".into(),
            Shape::Float => "float64".into(),
            Shape::Str => "string".into(),
            Shape::Bytes => "[]uint8".into(),
            Shape::Struct(of) => format!("{}.{}", of.version(), of.name),
            Shape::List(of) => format!("[]{}", of().go_name()),
            Shape::Map(of) => format!("map[string]{}", of().go_name()),
            Shape::Optional(of) => of().go_name(),
            Shape::Leaf(leaf) => leaf.name.into(),
            Shape::Dynamic => "map[string]interface {}".into(),
        }
    }
}

/// A value for reading.
pub enum View<'a> {
    /// `true` or `false`.
    Bool(bool),
    /// A 32-bit integer.
    Int32(i32),
    /// A 64-bit integer.
    Int64(i64),
    /// A double.
    Float(f64),
    /// A string.
    Str(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A struct.
    Struct(&'a dyn Reflect),
    /// A list.
    List(&'a dyn List),
    /// A map with string keys.
    Map(&'a dyn Map),
    /// A value that may be missing.
    Optional(Option<&'a dyn Field>),
    /// A value with an encoding of its own.
    Leaf(&'a dyn Leaf),
    /// Any JSON value.
    Dynamic(&'a Value),
}

/// A value for writing.
pub enum ViewMut<'a> {
    /// `true` or `false`.
    Bool(&'a mut bool),
    /// A 32-bit integer.
    Int32(&'a mut i32),
    /// A 64-bit integer.
    Int64(&'a mut i64),
    /// A double.
    Float(&'a mut f64),
    /// A string.
    Str(&'a mut String),
    /// Bytes.
    Bytes(&'a mut Vec<u8>),
    /// A struct.
    Struct(&'a mut dyn Reflect),
    /// A list.
    List(&'a mut dyn List),
    /// A map with string keys.
    Map(&'a mut dyn Map),
    /// A value that may be missing.
    Optional(&'a mut dyn Optional),
    /// A value with an encoding of its own.
    Leaf(&'a mut dyn Leaf),
    /// Any JSON value.
    Dynamic(&'a mut Value),
}

/// A list of fields.
pub trait List {
    /// The static type of the list.
    fn list_shape(&self) -> Shape;
    /// How many entries there are.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The entry at `index`, if there is one.
    fn item(&self, index: usize) -> Option<&dyn Field>;
    /// The entry at `index` for writing, if there is one.
    fn item_mut(&mut self, index: usize) -> Option<&mut dyn Field>;
    /// Appends a zero entry and returns it.
    fn push_default(&mut self) -> &mut dyn Field;
    /// Removes the entry at `index`, if there is one.
    fn remove(&mut self, index: usize);
    /// Removes all entries.
    fn clear(&mut self);
}

/// A map from strings to fields, in key order.
pub trait Map {
    /// The static type of the map.
    fn map_shape(&self) -> Shape;
    /// How many entries there are.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The entry of `key`, if there is one.
    fn entry(&self, key: &str) -> Option<&dyn Field>;
    /// Calls `visit` with each entry in key order.
    fn each(&self, visit: &mut dyn FnMut(&str, &dyn Field));
    /// Calls `visit` with each entry from the last key to the first.
    fn each_back(&self, visit: &mut dyn FnMut(&str, &dyn Field));
    /// The entry of `key` for writing, a zero one if there was none, and whether there was one.
    fn upsert(&mut self, key: &str) -> (&mut dyn Field, bool);
    /// Removes the entry of `key`, if there is one.
    fn remove(&mut self, key: &str);
    /// Removes all entries.
    fn clear(&mut self);
}

/// A place for a value that may be missing.
pub trait Optional {
    /// Whether there is a value.
    fn is_set(&self) -> bool;
    /// The value, for writing; a zero one is put there if it was missing.
    fn ensure(&mut self) -> &mut dyn Field;
    /// Takes the value away.
    fn clear(&mut self);
}

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
    let is_written = |index: &usize| {
        table.fields[*index].presence != Presence::OmitZero
            || table.fields[*index].inline
            || !is_zero(value.field(*index))
    };
    set_bits(value.present() | table.json_always).filter(is_written)
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
    let table = one.struct_type();
    std::ptr::eq(table, other.struct_type())
        && (0..table.fields.len()).all(|index| equal(one.field(index), other.field(index)))
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

macro_rules! scalar_field {
    ($type:ty, $variant:ident, $read:expr) => {
        impl Field for $type {
            fn is_unset(&self) -> bool {
                *self == <$type>::default()
            }
            fn view(&self) -> View<'_> {
                let read: fn(&$type) -> _ = $read;
                View::$variant(read(self))
            }
            fn view_mut(&mut self) -> ViewMut<'_> {
                ViewMut::$variant(self)
            }
            fn shape() -> Shape {
                Shape::$variant
            }
        }
    };
}

scalar_field!(bool, Bool, |value| *value);
scalar_field!(i32, Int32, |value| *value);
scalar_field!(i64, Int64, |value| *value);
scalar_field!(f64, Float, |value| *value);

impl Field for String {
    fn is_unset(&self) -> bool {
        self.is_empty()
    }
    fn view(&self) -> View<'_> {
        View::Str(self)
    }
    fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::Str(self)
    }
    fn shape() -> Shape {
        Shape::Str
    }
}

/// Bytes are a type of their own, so that a list of them and a list of numbers are not confused.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteString(pub Vec<u8>);

impl std::fmt::Debug for ByteString {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} bytes", self.0.len())
    }
}

impl From<Vec<u8>> for ByteString {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&str> for ByteString {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl std::ops::Deref for ByteString {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Field for ByteString {
    fn is_unset(&self) -> bool {
        self.0.is_empty()
    }
    fn view(&self) -> View<'_> {
        View::Bytes(&self.0)
    }
    fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::Bytes(&mut self.0)
    }
    fn shape() -> Shape {
        Shape::Bytes
    }
}

impl Field for Value {
    fn is_unset(&self) -> bool {
        self.is_null()
    }
    fn view(&self) -> View<'_> {
        View::Dynamic(self)
    }
    fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::Dynamic(self)
    }
    fn shape() -> Shape {
        Shape::Dynamic
    }
}

impl<T: Field + Clone + Default> Field for Vec<T> {
    fn is_unset(&self) -> bool {
        Vec::is_empty(self)
    }
    fn view(&self) -> View<'_> {
        View::List(self)
    }
    fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::List(self)
    }
    fn shape() -> Shape {
        Shape::List(T::shape)
    }
}

impl<T: Field + Clone + Default> List for Vec<T> {
    fn list_shape(&self) -> Shape {
        Shape::List(T::shape)
    }
    fn len(&self) -> usize {
        Vec::len(self)
    }
    fn item(&self, index: usize) -> Option<&dyn Field> {
        self.get(index).map(|item| item as &dyn Field)
    }
    fn item_mut(&mut self, index: usize) -> Option<&mut dyn Field> {
        self.get_mut(index).map(|item| item as &mut dyn Field)
    }
    fn push_default(&mut self) -> &mut dyn Field {
        let index = Vec::len(self);
        if index == self.capacity() {
            // Most lists are short, and are kept for long: room for four large entries would mostly stay empty.
            self.reserve_exact(index.max(1));
        }
        // Made in its place: large entries are slow to move.
        self.resize_with(index + 1, T::default);
        &mut self[index]
    }
    fn remove(&mut self, index: usize) {
        if index < Vec::len(self) {
            Vec::remove(self, index);
        }
    }
    fn clear(&mut self) {
        Vec::clear(self);
    }
}

impl<T: Field + Clone + Default> Field for BTreeMap<String, T> {
    fn is_unset(&self) -> bool {
        BTreeMap::is_empty(self)
    }
    fn view(&self) -> View<'_> {
        View::Map(self)
    }
    fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::Map(self)
    }
    fn shape() -> Shape {
        Shape::Map(T::shape)
    }
}

impl<T: Field + Clone + Default> Map for BTreeMap<String, T> {
    fn map_shape(&self) -> Shape {
        Shape::Map(T::shape)
    }
    fn len(&self) -> usize {
        BTreeMap::len(self)
    }
    fn entry(&self, key: &str) -> Option<&dyn Field> {
        self.get(key).map(|value| value as &dyn Field)
    }
    fn each(&self, visit: &mut dyn FnMut(&str, &dyn Field)) {
        for (key, value) in self {
            visit(key, value);
        }
    }
    fn each_back(&self, visit: &mut dyn FnMut(&str, &dyn Field)) {
        for (key, value) in self.iter().rev() {
            visit(key, value);
        }
    }
    fn upsert(&mut self, key: &str) -> (&mut dyn Field, bool) {
        match BTreeMap::entry(self, key.to_owned()) {
            Entry::Occupied(entry) => (entry.into_mut(), true),
            Entry::Vacant(entry) => (entry.insert(T::default()), false),
        }
    }
    fn remove(&mut self, key: &str) {
        BTreeMap::remove(self, key);
    }
    fn clear(&mut self) {
        BTreeMap::clear(self);
    }
}

impl<T: Field + Clone + Default> Field for Option<T> {
    fn is_unset(&self) -> bool {
        self.is_none()
    }
    fn view(&self) -> View<'_> {
        View::Optional(self.as_ref().map(|value| value as &dyn Field))
    }
    fn view_mut(&mut self) -> ViewMut<'_> {
        ViewMut::Optional(self)
    }
    fn shape() -> Shape {
        Shape::Optional(T::shape)
    }
}

impl<T: Field + Clone + Default> Optional for Option<T> {
    fn is_set(&self) -> bool {
        self.is_some()
    }
    fn ensure(&mut self) -> &mut dyn Field {
        self.get_or_insert_with(T::default)
    }
    fn clear(&mut self) {
        *self = None;
    }
}

impl<T: Field + Clone + Default> Field for Box<T> {
    fn is_unset(&self) -> bool {
        T::is_unset(self)
    }
    fn view(&self) -> View<'_> {
        T::view(self)
    }
    fn view_mut(&mut self) -> ViewMut<'_> {
        T::view_mut(self)
    }
    fn shape() -> Shape {
        T::shape()
    }
}

/// Where generated code ends for an index that its table does not have.
///
/// # Panics
/// Always: indexes come from tables, never from input.
pub fn no_such_field(index: usize) -> ! {
    panic!("invariant: field index {index} comes from the table of another struct")
}
