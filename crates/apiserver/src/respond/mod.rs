//! Answers: objects, lists, tables and errors in the form that was agreed on.

mod chunks;
mod document;
mod indent;
mod list;
mod projection;
mod rendering;
mod resource;
mod status;
pub(crate) mod table;

pub(crate) use document::{
    cbor_of, cbor_of_json, error, json, json_document, object, path_and_query, plain_error, protobuf_document, success,
};
pub(crate) use list::list;
pub(crate) use projection::{metadata_json, metadata_protobuf};
pub(crate) use rendering::Rendering;
pub(crate) use resource::{stored, view};
pub(crate) use status::status_of;
