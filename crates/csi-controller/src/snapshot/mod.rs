//! Snapshots of volumes: what upstream's snapshot controller ([`common`]) and external-snapshotter ([`content`]) do. The
//! former ties a user's VolumeSnapshot to a VolumeSnapshotContent, the latter has the driver take what that stands for.

pub(crate) mod common;
pub(crate) mod content;
mod mirror;
mod release;
