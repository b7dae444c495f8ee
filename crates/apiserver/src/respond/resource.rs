//! One object of a resource as a response, projected as the client wants it.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use component_base::serving::Response;
use http::StatusCode;
use kinds::rules::Rules;
use watch_cache::Stored;

use super::document::{cbor_document, json_document, protobuf_document};
use super::projection::{metadata_json, metadata_protobuf};
use crate::negotiate::{Choice, MediaType, Target, Wish};
use crate::table::{self, IncludeObject};

/// What is needed to show objects of a resource.
pub(crate) struct Shown<'a> {
    pub(crate) wish: &'a Wish,
    pub(crate) choice: Choice,
    pub(crate) rules: &'a dyn Rules,
    pub(crate) include: IncludeObject,
    pub(crate) now: Time,
    /// The kind of lists.
    pub(crate) list_kind: String,
}

impl Shown<'_> {
    pub(crate) fn api_version(&self) -> String {
        let info = self.rules.info();
        if info.group.is_empty() { info.version.to_owned() } else { format!("{}/{}", info.group, info.version) }
    }

    /// The name that texts about the wrong projection print for a type.
    pub(super) fn type_name(&self, kind: &str) -> String {
        if self.is_custom() {
            let list = if kind == self.list_kind { "List" } else { "" };
            return format!("*unstructured.Unstructured{list}");
        }
        let info = self.rules.info();
        let group = info.storage.as_ref().map_or(info.group, |storage| storage.group);
        let group = group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        format!("*{group}.{kind}")
    }

    /// Whether it is a kind that came at run time, whose objects are free-form to upstream.
    pub(super) fn is_custom(&self) -> bool {
        let info = self.rules.info();
        kinds::find(info.group, info.version, info.resource).is_none()
    }

    fn refuse_list_form(&self) -> ApiError {
        ApiError::not_acceptable(format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
            self.type_name(self.rules.info().kind)
        ))
    }
}

/// A stored object; its bytes are shared where nothing is projected.
pub(crate) fn stored(shown: &Shown<'_>, status: StatusCode, item: &Stored) -> Result<Response, ApiError> {
    match (&shown.choice.target, shown.choice.media) {
        (Target::Object, MediaType::Protobuf) => Ok(protobuf_document(shown.wish, status, item.protobuf())),
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
            Ok(protobuf_document(wish, status, metadata_protobuf(object, version).into()))
        }
        (Target::Metadata(version), _) => Ok(json(metadata_json(object, version))),
        (Target::Object, MediaType::Protobuf) => Ok(protobuf_document(wish, status, object.to_protobuf().into())),
        (Target::Object, MediaType::Cbor) => Ok(cbor_document(wish, status, object.to_cbor().into())),
        (Target::Object, MediaType::Json | MediaType::Yaml) => Ok(json(object.to_json())),
    }
}
