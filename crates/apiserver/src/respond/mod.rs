//! Answers: objects, lists, tables and errors in the form that was agreed on.

mod chunks;
mod document;
mod indent;
mod list;
mod projection;
mod resource;
mod status;

pub use document::{json, kind, object};
pub(crate) use document::{error, plain_error, success};
pub(crate) use list::list;
pub(crate) use projection::{metadata_json, metadata_protobuf};
pub(crate) use resource::{Shown, stored};
pub use status::status_of;
