//! One object of a resource as a response, projected as the client wants it.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use component_base::serving::Response;
use http::StatusCode;
use watch_cache::Stored;

use super::document::{cbor_document, json_document, protobuf_document};
use super::projection::{metadata_json, metadata_protobuf};
use super::shown::Shown;
use super::table;
use crate::negotiate::{MediaType, Target};

/// A stored object; its bytes are shared where nothing is projected.
pub(crate) fn stored(shown: &Shown<'_>, status: StatusCode, item: &Stored) -> Result<Response, ApiError> {
    match (&shown.choice.target, shown.choice.media) {
        (Target::Object, MediaType::Protobuf) => {
            shown.wish.audit().answer(|| item.json());
            Ok(protobuf_document(shown.wish, status, item.protobuf()))
        }
        (Target::Object, MediaType::Json | MediaType::Yaml) => {
            Ok(json_document(shown.wish, &shown.choice, status, item.json()))
        }
        _ => view(shown, status, item.object()),
    }
}

/// An object that is not stored as it is shown.
pub(crate) fn view(shown: &Shown<'_>, status: StatusCode, object: &dyn Object) -> Result<Response, ApiError> {
    let wish = shown.wish;
    let json = |text: String| json_document(wish, &shown.choice, status, text.into());
    match (&shown.choice.target, shown.choice.media) {
        (Target::Table(version), _) => Ok(json(table::of_object(shown, object, version))),
        (Target::MetadataList(_), _) => Err(shown.refuse_list_form()),
        (Target::Metadata(version), MediaType::Protobuf) => {
            wish.audit().answer(|| metadata_json(object, version).into());
            Ok(protobuf_document(wish, status, metadata_protobuf(object, version).into()))
        }
        (Target::Metadata(version), _) => Ok(json(metadata_json(object, version))),
        (Target::Object, MediaType::Protobuf) => {
            wish.audit().answer(|| object.to_json().into());
            Ok(protobuf_document(wish, status, object.to_protobuf().into()))
        }
        (Target::Object, MediaType::Cbor) => {
            wish.audit().answer(|| object.to_json().into());
            Ok(cbor_document(wish, status, object.to_cbor().into()))
        }
        (Target::Object, MediaType::Json | MediaType::Yaml) => Ok(json(object.to_json())),
    }
}
