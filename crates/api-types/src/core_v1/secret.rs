//! Secret.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::reflect::ByteString;

/// Holds sensitive data, at most 1 MiB in total.
#[api(group = "", version = "v1", kind = "Secret", resource = "secrets", namespaced)]
pub struct Secret {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Forbids changes to the data when true; cannot be undone.
    #[field(5)]
    pub immutable: Option<bool>,
    /// Secret values by key, base64-encoded.
    #[field(2)]
    pub data: BTreeMap<String, ByteString>,
    /// Plain values merged into data on write; never returned.
    #[field(4)]
    pub string_data: BTreeMap<String, String>,
    /// Tells how the data is used; default Opaque.
    #[field(3, fill = "\"Opaque\"")]
    pub type_: String,
}
