//! Objects and lists of any kind, of which only the metadata is looked at.

use api_machinery::meta::{ListMeta, PartialObjectMetadata};
use api_machinery::reflect::Reflect;
use api_machinery::{api, json, protobuf};

/// What lists of all kinds have in common.
#[api(group = "meta.k8s.io", version = "v1", kind = "PartialObjectMetadataList")]
pub(super) struct ObjectsListed {
    #[field(1, always)]
    pub(super) metadata: ListMeta,
    #[field(2)]
    pub(super) items: Vec<PartialObjectMetadata>,
}

/// What a body is, if its kind, as far as it has one before it is read, is wanted.
pub(super) fn decoded<T: Reflect + Default>(body: &[u8], is_wanted: impl FnOnce(&str) -> bool) -> Option<T> {
    let mut found = T::default();
    if protobuf::is_enveloped(body) {
        let envelope = protobuf::open(body).ok()?;
        if !is_wanted(&envelope.kind) {
            return None;
        }
        protobuf::decode(envelope.raw, &mut found).ok()?;
    } else {
        json::decode(body, &mut found).ok()?;
    }
    Some(found)
}
