//! VolumeAttributesClass.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// Attributes of volumes that may change while they are used.
#[api(kind = "VolumeAttributesClass", resource = "volumeattributesclasses")]
pub struct VolumeAttributesClass {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The driver. Immutable.
    #[field(2, always, required)]
    pub driver_name: String,
    /// The attributes as the driver knows them. Immutable.
    #[field(3)]
    pub parameters: BTreeMap<String, String>,
}
