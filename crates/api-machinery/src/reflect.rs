//! Reflection over API objects: one static table per struct, and three small object-safe traits over its values.
//!
//! Codecs, patches, apply, pruning, schema export, deep equality and field paths are each written once over what is
//! here. `#[api]` (crate `api-derive`) writes the implementations of [`Reflect`] for structs, `values` has those of
//! containers and scalars. A number of a field is its protobuf number, an index is its place in [`StructType::fields`].

mod rare;
mod table;
mod value;
mod values;
mod walk;

pub use rare::{Rare, Vacant};
pub use table::{FieldType, ListType, NO_FIELD, NamedType, PatchStrategy, Presence, Shape, StructType, Union};
pub use value::{Field, List, Map, Optional, Reflect, Replace, View, ViewMut, no_such_field};
pub use values::ByteString;
pub use walk::{copy_field, differs_in, equal, equal_structs, is_zero, reset_field, written_fields};
pub(crate) use walk::{is_row_written, is_shared, set_bits};
