//! VolumeSnapshotContent and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::VolumeSnapshotError;
use crate::core_v1::ObjectReference;

/// A snapshot as its driver has it.
#[api(kind = "VolumeSnapshotContent", resource = "volumesnapshotcontents")]
pub struct VolumeSnapshotContent {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What it is.
    #[field(2, always, required)]
    pub spec: VolumeSnapshotContentSpec,
    /// How far it is.
    #[field(3)]
    pub status: Option<VolumeSnapshotContentStatus>,
}

/// What a snapshot's content is.
#[api]
pub struct VolumeSnapshotContentSpec {
    /// The snapshot that it belongs to.
    #[field(1, always, required)]
    pub volume_snapshot_ref: ObjectReference,
    /// What happens to it when its snapshot goes: Delete or Retain.
    #[field(2, always, required)]
    pub deletion_policy: String,
    /// The driver. Immutable.
    #[field(3, always, required)]
    pub driver: String,
    /// The class that it was made by.
    #[field(4)]
    pub volume_snapshot_class_name: Option<String>,
    /// What it is of. Immutable.
    #[field(5, always, required)]
    pub source: VolumeSnapshotContentSource,
    /// Whether the volume was a filesystem or a block device. Immutable.
    #[field(6)]
    pub source_volume_mode: Option<String>,
}

/// What a content is of: exactly one of the two.
#[api]
pub struct VolumeSnapshotContentSource {
    /// The driver's id of the volume that a snapshot is to be taken of.
    #[field(1)]
    pub volume_handle: Option<String>,
    /// The driver's id of a snapshot that is there already.
    #[field(2)]
    pub snapshot_handle: Option<String>,
}

/// How far a content is.
#[api]
pub struct VolumeSnapshotContentStatus {
    /// The driver's id of the snapshot.
    #[field(1)]
    pub snapshot_handle: Option<String>,
    /// When the snapshot was taken, in nanoseconds of Unix time.
    #[field(2)]
    pub creation_time: Option<i64>,
    /// The smallest volume that it can be restored to, in bytes.
    #[field(3)]
    pub restore_size: Option<i64>,
    /// Whether volumes can be restored from it.
    #[field(4)]
    pub ready_to_use: Option<bool>,
    /// What went wrong last.
    #[field(5)]
    pub error: Option<VolumeSnapshotError>,
    /// The driver's id of the group snapshot that it belongs to.
    #[field(6)]
    pub volume_group_snapshot_handle: Option<String>,
}
