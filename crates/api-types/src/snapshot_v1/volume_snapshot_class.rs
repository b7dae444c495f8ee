//! VolumeSnapshotClass.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// Describes how snapshots are taken.
#[api(kind = "VolumeSnapshotClass", resource = "volumesnapshotclasses")]
pub struct VolumeSnapshotClass {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The driver. Immutable.
    #[field(2, always, required)]
    pub driver: String,
    /// Settings passed to the driver. Immutable.
    #[field(3)]
    pub parameters: BTreeMap<String, String>,
    /// What happens to a content whose snapshot goes: Delete or Retain. Immutable.
    #[field(4, always, required)]
    pub deletion_policy: String,
}
