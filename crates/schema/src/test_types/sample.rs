//! A struct with every kind of list and map.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::leaf::RawJson;
use api_machinery::meta::ObjectMeta;

/// The whole object.
#[api(group = "test", version = "v1", kind = "Sample", resource = "samples", namespaced)]
pub(crate) struct Sample {
    /// Metadata.
    #[field(1)]
    pub(crate) metadata: ObjectMeta,
    /// Keyed.
    #[field(2, merge_key = "name")]
    pub(crate) items: Vec<Item>,
    /// Scalars that merge.
    #[field(3, set, merge)]
    pub(crate) marks: Vec<String>,
    /// Replaced.
    #[field(4)]
    pub(crate) args: Vec<String>,
    /// Free keys.
    #[field(5)]
    pub(crate) labels: BTreeMap<String, String>,
    /// Below.
    #[field(6)]
    pub(crate) inner: Option<Inner>,
    /// Owned as a whole.
    #[field(7, atomic)]
    pub(crate) selector: BTreeMap<String, String>,
    /// Two keys, one with a default.
    #[field(8, merge_key = "port", keys("port", "protocol"))]
    pub(crate) ports: Vec<Port>,
    /// Free-form.
    #[field(9)]
    pub(crate) raw: RawJson,
    /// A number.
    #[field(10)]
    pub(crate) replicas: Option<i32>,
}

/// An item.
#[api]
pub(crate) struct Item {
    /// Its key.
    #[field(1, always)]
    pub(crate) name: String,
    /// Something.
    #[field(2)]
    pub(crate) value: String,
}

/// A struct below.
#[api]
pub(crate) struct Inner {
    /// One.
    #[field(1)]
    pub(crate) a: String,
    /// Other.
    #[field(2)]
    pub(crate) b: String,
}

/// An item with two keys.
#[api]
pub(crate) struct Port {
    /// A key.
    #[field(1, always)]
    pub(crate) port: i32,
    /// A key with a default.
    #[field(2, default = "\"TCP\"")]
    pub(crate) protocol: String,
    /// Something.
    #[field(3)]
    pub(crate) name: String,
}
