//! Objects reduced to their metadata.

use api_machinery::json;
use api_machinery::meta::PartialObjectMetadata;
use api_machinery::object::Object;
use api_machinery::protobuf;
use api_types::apps_v1::DaemonSet;
use api_types::apps_v1::constants::DEPRECATED_TEMPLATE_GENERATION;

const KIND: &str = "PartialObjectMetadata";

fn partial(object: &dyn Object) -> PartialObjectMetadata {
    let mut metadata = object.meta().clone();
    if object.downcast_ref::<DaemonSet>().is_some() {
        // Upstream has the count in a field of its own inside, and only the conversion to a whole object makes this of it.
        metadata.annotations.remove(DEPRECATED_TEMPLATE_GENERATION);
    }
    PartialObjectMetadata { metadata }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_a_template_is_no_metadata() {
        let mut set = DaemonSet::default();
        set.metadata.annotations.insert(DEPRECATED_TEMPLATE_GENERATION.into(), "1".into());
        set.metadata.annotations.insert("a".into(), "b".into());
        let text = metadata_json(&set, "v1");
        assert!(text.contains(r#""annotations":{"a":"b"}"#), "{text}");
    }
}
