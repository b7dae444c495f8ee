//! One object of a resource as a response, projected as the client wants it.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use component_base::serving::Response;
use http::StatusCode;
use watch_cache::Stored;

use super::document::{cbor_document, json_document, protobuf_document};
use super::projection::{metadata_json, metadata_protobuf};
use super::rendering::Rendering;
use super::table;
use crate::negotiate::{MediaType, Target};

/// A stored object; its bytes are shared where nothing is projected.
pub(crate) fn stored(rendering: &Rendering<'_>, status: StatusCode, item: &Stored) -> Result<Response, ApiError> {
    match (&rendering.choice.target, rendering.choice.media) {
        (Target::Object, MediaType::Protobuf) => {
            rendering.preferences.audit().answer(|| item.json());
            Ok(protobuf_document(rendering.preferences, status, item.protobuf()))
        }
        (Target::Object, MediaType::Json | MediaType::Yaml) => {
            Ok(json_document(rendering.preferences, &rendering.choice, status, item.json()))
        }
        _ => view(rendering, status, item.object()),
    }
}

/// An object that is not stored as it is shown.
pub(crate) fn view(rendering: &Rendering<'_>, status: StatusCode, object: &dyn Object) -> Result<Response, ApiError> {
    let preferences = rendering.preferences;
    let json = |text: String| json_document(preferences, &rendering.choice, status, text.into());
    match (&rendering.choice.target, rendering.choice.media) {
        (Target::Table(version), _) => Ok(json(table::of_object(rendering, object, version))),
        (Target::MetadataList(_), _) => Err(rendering.refuse_list_form()),
        (Target::Metadata(version), MediaType::Protobuf) => {
            preferences.audit().answer(|| metadata_json(object, version).into());
            Ok(protobuf_document(preferences, status, metadata_protobuf(object, version).into()))
        }
        (Target::Metadata(version), _) => Ok(json(metadata_json(object, version))),
        (Target::Object, MediaType::Protobuf) => {
            preferences.audit().answer(|| object.to_json().into());
            Ok(protobuf_document(preferences, status, object.to_protobuf().into()))
        }
        (Target::Object, MediaType::Cbor) => {
            preferences.audit().answer(|| object.to_json().into());
            Ok(cbor_document(preferences, status, object.to_cbor().into()))
        }
        (Target::Object, MediaType::Json | MediaType::Yaml) => Ok(json(object.to_json())),
    }
}
