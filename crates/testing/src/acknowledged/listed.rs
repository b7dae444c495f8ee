//! A list of any kind, of which only the metadata is looked at.

use api_machinery::meta::{ListMeta, PartialObjectMetadata};
use api_machinery::{api, json, protobuf};

/// What lists of all kinds have in common.
#[api(group = "meta.k8s.io", version = "v1", kind = "PartialObjectMetadataList")]
pub(super) struct ObjectsListed {
    #[field(1, always)]
    pub(super) metadata: ListMeta,
    #[field(2)]
    pub(super) items: Vec<PartialObjectMetadata>,
}

/// The list that a body is, if it is one.
pub(super) fn list(body: &[u8]) -> Option<ObjectsListed> {
    let mut list = ObjectsListed::default();
    if protobuf::is_enveloped(body) {
        let envelope = protobuf::open(body).ok()?;
        if !envelope.kind.ends_with("List") {
            return None;
        }
        protobuf::decode(envelope.raw, &mut list).ok()?;
    } else {
        json::decode(body, &mut list).ok()?;
    }
    Some(list)
}
