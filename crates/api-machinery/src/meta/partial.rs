//! PartialObjectMetadata.

use api_derive::api;

use super::ObjectMeta;

/// An object reduced to its metadata.
#[api(group = "meta.k8s.io", version = "v1", kind = "PartialObjectMetadata")]
pub struct PartialObjectMetadata {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
}
