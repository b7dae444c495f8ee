//! ConfigMap.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::reflect::ByteString;

/// Holds configuration data for pods, at most 1 MiB in total.
#[api(kind = "ConfigMap", resource = "configmaps", namespaced)]
pub struct ConfigMap {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Forbids changes to the data when true; cannot be undone.
    #[field(4)]
    pub immutable: Option<bool>,
    /// Text values by key; keys may not repeat in binaryData.
    #[field(2)]
    pub data: BTreeMap<String, String>,
    /// Binary values by key, base64-encoded; keys may not repeat in data.
    #[field(3)]
    pub binary_data: BTreeMap<String, ByteString>,
}
