//! VolumeSnapshot and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::quantity::Quantity;
use api_machinery::time::Time;

/// A user's request for a snapshot of a volume, or for the use of one that is there.
#[api(kind = "VolumeSnapshot", resource = "volumesnapshots", namespaced)]
pub struct VolumeSnapshot {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What is wanted. Immutable.
    #[field(2, always, required)]
    pub spec: VolumeSnapshotSpec,
    /// How far it is.
    #[field(3)]
    pub status: Option<VolumeSnapshotStatus>,
}

/// What is to be taken a snapshot of.
#[api]
pub struct VolumeSnapshotSpec {
    /// What it is of.
    #[field(1, always, required)]
    pub source: VolumeSnapshotSource,
    /// The class; the default one of the volume's driver where absent.
    #[field(2)]
    pub volume_snapshot_class_name: Option<String>,
}

/// What a snapshot is of: exactly one of the two.
#[api]
pub struct VolumeSnapshotSource {
    /// A claim in the same namespace.
    #[field(1)]
    pub persistent_volume_claim_name: Option<String>,
    /// A content that is there already.
    #[field(2)]
    pub volume_snapshot_content_name: Option<String>,
}

/// How far a snapshot is.
#[api]
pub struct VolumeSnapshotStatus {
    /// The content that it is bound to.
    #[field(1)]
    pub bound_volume_snapshot_content_name: Option<String>,
    /// When the snapshot was taken.
    #[field(2)]
    pub creation_time: Option<Time>,
    /// Whether volumes can be restored from it.
    #[field(3)]
    pub ready_to_use: Option<bool>,
    /// The smallest volume that it can be restored to.
    #[field(4)]
    pub restore_size: Option<Quantity>,
    /// What went wrong last.
    #[field(5)]
    pub error: Option<VolumeSnapshotError>,
    /// The group snapshot that it belongs to.
    #[field(6)]
    pub volume_group_snapshot_name: Option<String>,
}

/// What went wrong with a snapshot.
#[api]
pub struct VolumeSnapshotError {
    /// When.
    #[field(1)]
    pub time: Option<Time>,
    /// In words.
    #[field(2)]
    pub message: Option<String>,
}
