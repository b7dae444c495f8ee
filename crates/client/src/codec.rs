//! Bodies: objects, lists and Status in JSON, protobuf or CBOR, whichever the server answered in.

use std::borrow::Cow;

use api_machinery::cbor::{self, is_self_described};
use api_machinery::json;
use api_machinery::meta::{ListMeta, Status};
use api_machinery::object::{self, Kind, Object, Unstructured};
use api_machinery::protobuf::{self, is_enveloped};
use api_machinery::reflect::Reflect;
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use bytes::Bytes;

use crate::config::ContentType;
use crate::error::{ClientError, error_from_status};
use crate::request::{CBOR, JSON, PROTOBUF};
use crate::resource::{Codec, Form};
use list::{Items, ListBody};

mod list;

/// Media types of whoever takes CBOR, and rather.
pub(crate) const CBOR_FIRST: &str = "application/json;q=0.9,application/cbor;q=1";

/// Prefix of the `OpenAPI` names of what is declared below.
const PACKAGE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Media types in order of preference, for single objects.
pub(crate) fn accept(form: Form, content: ContentType) -> &'static str {
    match (form, content) {
        (Form::Typed, ContentType::Protobuf) => "application/vnd.kubernetes.protobuf,application/json",
        (Form::Metadata, ContentType::Protobuf) => {
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
             application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
        }
        (Form::Metadata, ContentType::Json) => {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
        }
        (Form::Typed, ContentType::Json) | (Form::Unstructured, _) => JSON,
    }
}

/// Media types in order of preference, for lists.
pub(crate) fn accept_list(form: Form, content: ContentType) -> &'static str {
    match (form, content) {
        (Form::Metadata, ContentType::Protobuf) => {
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
             application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
        }
        (Form::Metadata, ContentType::Json) => {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
        }
        (form, content) => accept(form, content),
    }
}

fn undecodable(what: &str, reason: impl std::fmt::Display) -> ClientError {
    ClientError::Decode { what: what.to_owned(), reason: reason.to_string() }
}

/// An object as a body, with the media type of it.
pub(crate) fn encode_object(object: &dyn Object, form: Form, content: ContentType) -> (&'static str, Vec<u8>) {
    if form == Form::Typed && content == ContentType::Protobuf {
        (PROTOBUF, object.to_protobuf())
    } else {
        (JSON, object.to_json().into_bytes())
    }
}

/// A free-form object as a body of CBOR.
pub(crate) fn encode_cbor(object: &dyn Object) -> (&'static str, Vec<u8>) {
    (CBOR, cbor::encode_value(&object.to_value()))
}

/// A struct with a kind as a body, whether or not it is an object.
pub(crate) fn encode_kind<T: Kind>(value: &T, content: ContentType) -> (&'static str, Vec<u8>) {
    let kind = T::TYPE;
    match content {
        ContentType::Protobuf => (PROTOBUF, protobuf::seal(&kind.api_version(), kind.kind, |out| out.members(value))),
        ContentType::Json => (JSON, json::encode_typed(kind.kind, &kind.api_version(), value).into_bytes()),
    }
}

/// Reads a struct with a kind.
pub(crate) fn decode_kind<T: Kind>(body: &[u8]) -> Result<T, ClientError> {
    let mut target = T::default();
    decode_into(body, &mut target)?;
    Ok(target)
}

/// Reads a body into an empty struct and answers with its `kind`.
fn decode_into(body: &[u8], target: &mut dyn Reflect) -> Result<json::TypeMeta, ClientError> {
    let what = target.struct_type().name;
    if is_enveloped(body) {
        let envelope = protobuf::open(body).map_err(|error| undecodable(what, error))?;
        protobuf::decode(envelope.raw, target).map_err(|error| undecodable(what, error))?;
        return Ok(json::TypeMeta { api_version: envelope.api_version, kind: envelope.kind });
    }
    let body = as_json(body).map_err(|error| undecodable(what, error))?;
    Ok(json::decode(&body, target).map_err(|error| undecodable(what, error))?.type_meta)
}

/// A body as JSON, where it is CBOR.
fn as_json(body: &[u8]) -> Result<Cow<'_, [u8]>, cbor::CborError> {
    if !is_self_described(body) {
        return Ok(Cow::Borrowed(body));
    }
    cbor::to_json(body).map(|text| Cow::Owned(text.into_bytes()))
}

/// Reads an object in the codec's form.
pub(crate) fn decode_object(codec: &Codec, body: &[u8]) -> Result<Box<dyn Object>, ClientError> {
    let mut target = (codec.empty)();
    let type_meta = decode_into(body, target.as_reflect_mut())?;
    if let Some(custom) = target.downcast_mut::<Unstructured>() {
        custom.type_meta = type_meta;
    }
    Ok(target)
}

/// The `kind` of a body, empty where it cannot be read.
pub(crate) fn kind_of(body: &[u8]) -> String {
    if is_enveloped(body) {
        return protobuf::open(body).map(|envelope| envelope.kind).unwrap_or_default();
    }
    let Ok(body) = as_json(body) else { return String::new() };
    let text = String::from_utf8_lossy(&body);
    json::read_type_meta(&text).map(|meta| meta.kind).unwrap_or_default()
}

/// The error in a body that is a Status.
pub(crate) fn decode_status(media_type: &str, body: &[u8]) -> Option<ApiError> {
    if media_type != JSON && !is_enveloped(body) && !is_self_described(body) {
        return None;
    }
    let mut status = Status::default();
    let meta = decode_into(body, &mut status).ok()?;
    (meta.kind == "Status").then(|| error_from_status(status))
}

/// A list that was read: its metadata and its objects.
pub(crate) struct RawList {
    pub(crate) metadata: ListMeta,
    pub(crate) items: Vec<Box<dyn Object>>,
}

/// Reads a list of objects in the codec's form.
pub(crate) fn decode_list(codec: &Codec, body: &Bytes) -> Result<RawList, ClientError> {
    if codec.form == Form::Unstructured {
        return decode_free_list(codec, body);
    }
    let mut list = ListBody { metadata: ListMeta::default(), items: Items { empty: codec.empty, items: Vec::new() } };
    let meta = decode_into(body, &mut list)?;
    // An old server ignores `as=...` and sends the objects themselves, whose metadata is read just the same.
    if meta.kind == "Table" {
        let reason = format!("unsupported list gvk: {}, Kind={}", meta.api_version, meta.kind);
        return Err(undecodable("list", reason));
    }
    Ok(RawList { metadata: list.metadata, items: list.items.items.into_iter().map(|item| item.0).collect() })
}

fn decode_free_list(codec: &Codec, body: &[u8]) -> Result<RawList, ClientError> {
    let body = as_json(body).map_err(|error| undecodable("list", error))?;
    let text = String::from_utf8_lossy(&body);
    let value = json::parse_value(&text).map_err(|error| undecodable("list", error))?;
    let metadata = value.get("metadata").cloned().unwrap_or(Value::Null);
    let metadata: ListMeta = object::from_value(&metadata).map_err(|error| undecodable("list", error))?;
    let mut items: Vec<Box<dyn Object>> = Vec::new();
    for item in value.get("items").and_then(Value::as_array).into_iter().flatten() {
        let mut object = Unstructured::from_value(item).map_err(|error| undecodable("list", error))?;
        if object.type_meta.kind.is_empty() {
            object.type_meta.kind.clone_from(&codec.info.kind);
            object.type_meta.api_version = codec.info.api_version();
        }
        items.push(Box::new(object));
    }
    Ok(RawList { metadata, items })
}

#[cfg(test)]
mod tests;
