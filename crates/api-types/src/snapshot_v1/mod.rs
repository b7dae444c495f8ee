//! snapshot.storage.k8s.io/v1: snapshots of volumes. Custom resources, whose definitions come with the addons.

mod volume_snapshot;
mod volume_snapshot_class;
mod volume_snapshot_content;

pub use volume_snapshot::{
    VolumeSnapshot, VolumeSnapshotError, VolumeSnapshotSource, VolumeSnapshotSpec, VolumeSnapshotStatus,
};
pub use volume_snapshot_class::VolumeSnapshotClass;
pub use volume_snapshot_content::{
    VolumeSnapshotContent, VolumeSnapshotContentSource, VolumeSnapshotContentSpec, VolumeSnapshotContentStatus,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.storage.snapshot.v1";
/// The API group.
pub const GROUP: &str = "snapshot.storage.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
