//! The values: what codecs and walks see of them, whatever their types.

use std::any::Any;

use serde_json::Value;

use super::table::{Shape, StructType};
use crate::leaf::encoding::Leaf;

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

/// Where generated code ends for an index that its table does not have.
///
/// # Panics
/// Always: indexes come from tables, never from input.
pub fn no_such_field(index: usize) -> ! {
    panic!("invariant: field index {index} comes from the table of another struct")
}
