//! Answers: objects, lists, tables and errors in the form that was agreed on.

mod chunks;
mod document;
mod indent;
mod list;
mod projection;
mod resource;
mod status;

pub(crate) use chunks::Chunks;
pub(crate) use document::{cbor_of, cbor_of_json, error, json_document, path_and_query, plain_error};
pub(crate) use document::{json, object};
pub(crate) use document::{protobuf_document, success};
pub(crate) use list::list;
pub(crate) use projection::{metadata_json, metadata_protobuf};
pub(crate) use resource::{Shown, stored, view};
pub(crate) use status::status_of;
