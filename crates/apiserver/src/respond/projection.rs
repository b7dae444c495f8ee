//! Objects reduced to their metadata.

use api_machinery::json;
use api_machinery::meta::PartialObjectMetadata;
use api_machinery::object::Object;
use api_machinery::protobuf;

const KIND: &str = "PartialObjectMetadata";

fn partial(object: &dyn Object) -> PartialObjectMetadata {
    PartialObjectMetadata { metadata: object.meta().clone() }
}

/// The metadata as JSON; `version` is that of meta.k8s.io.
pub(crate) fn metadata_json(object: &dyn Object, version: &str) -> String {
    json::encode_typed(KIND, &format!("meta.k8s.io/{version}"), &partial(object))
}

/// The metadata as an enveloped message.
pub(crate) fn metadata_protobuf(object: &dyn Object, version: &str) -> Vec<u8> {
    protobuf::seal(&format!("meta.k8s.io/{version}"), KIND, |out| out.members(&partial(object)))
}

/// The metadata as a bare message, for lists.
pub(super) fn metadata_message(object: &dyn Object) -> Vec<u8> {
    protobuf::encode(&partial(object))
}
