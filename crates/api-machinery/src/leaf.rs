//! Types with an encoding of their own: times, quantities, int-or-string, raw JSON and the like. What that is to say is
//! [`Leaf`], below reflection; the types are above it.

pub(crate) mod encoding;
mod int_or_string;
mod quantity;
mod raw_json;
mod string_list;
mod times;

pub use encoding::{Leaf, LeafType, same};
pub use raw_json::RawJson;
pub use string_list::StringList;
