//! Scalars and containers as fields.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use serde_json::Value;

use super::table::Shape;
use super::value::{Field, List, Map, Optional, View, ViewMut};

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

/// What copies of an object share until one of them changes it.
impl<T: Field + Clone + Default> Field for Arc<T> {
    fn is_unset(&self) -> bool {
        T::is_unset(self)
    }
    fn view(&self) -> View<'_> {
        T::view(self)
    }
    fn view_mut(&mut self) -> ViewMut<'_> {
        T::view_mut(Self::make_mut(self))
    }
    fn shape() -> Shape {
        T::shape()
    }
}

/// Writes the [`Field`] implementation of a leaf.
#[macro_export]
macro_rules! leaf_field {
    ($type:ty, $leaf_type:expr) => {
        impl $crate::reflect::Field for $type {
            fn view(&self) -> $crate::reflect::View<'_> {
                $crate::reflect::View::Leaf(self)
            }
            fn view_mut(&mut self) -> $crate::reflect::ViewMut<'_> {
                $crate::reflect::ViewMut::Leaf(self)
            }
            fn shape() -> $crate::reflect::Shape {
                $crate::reflect::Shape::Leaf($leaf_type)
            }
        }
    };
}
