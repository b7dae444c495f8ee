//! How full a driver's volume is, by the driver's word.

use std::path::Path;

use node_api::csi::v1::NodeGetVolumeStatsRequest;
use node_api::csi::v1::node_service_capability::rpc::Type as Capability;
use node_api::csi::v1::volume_usage::Unit;

use super::{Csi, parts};
use crate::node::FileSystem;
use crate::volumes::world::VolumeName;

impl Csi {
    /// The same of a volume that is mounted.
    pub(in crate::volumes) async fn usage_mounted(&self, name: &VolumeName, path: &Path) -> Option<FileSystem> {
        let (driver, handle) = parts(name).ok()?;
        self.usage(name, path, &self.device(driver, handle).0).await
    }

    /// What a volume has that is published at `path`, and at `staging` if it is staged at all; `None` where its driver does
    /// not tell.
    pub(in crate::volumes) async fn usage(&self, name: &VolumeName, path: &Path, staging: &Path) -> Option<FileSystem> {
        let (driver, handle) = parts(name).ok()?;
        let driver = self.driver(driver, "metrics failed to get CSI client").await.ok()?;
        if !driver.can(Capability::GetVolumeStats) {
            return None;
        }
        let staged = driver.can(Capability::StageUnstageVolume);
        let request = NodeGetVolumeStatsRequest {
            volume_id: handle.to_owned(),
            volume_path: path.display().to_string(),
            staging_target_path: if staged { staging.display().to_string() } else { String::new() },
        };
        let told = driver.client.stats(request).await;
        let told = told.inspect_err(
            |error| tracing::debug!(volume = %name, %error, "A driver does not tell how full a volume is"),
        );
        let mut room = FileSystem::default();
        for usage in told.ok()?.usage {
            // A driver that lies cannot make less than nothing.
            let at_least_none = |amount: i64| u64::try_from(amount).unwrap_or_default();
            let (total, available) = (at_least_none(usage.total), at_least_none(usage.available));
            match usage.unit() {
                Unit::Bytes => (room.capacity, room.available) = (total, available),
                Unit::Inodes => (room.inodes, room.inodes_free) = (total, available),
                Unit::Unknown => {}
            }
        }
        Some(room)
    }
}
