//! How full a driver's volume is, by the driver's word.

use std::path::Path;

use node_api::csi::v1::NodeGetVolumeStatsRequest;
use node_api::csi::v1::node_service_capability::rpc::Type as Capability;
use node_api::csi::v1::volume_usage::Unit;

use super::{Csi, parts};
use crate::node::FileSystem;
use crate::volumes::world::VolumeName;

/// What a driver tells of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::volumes) struct VolumeReport {
    pub room: FileSystem,
    /// How the volume is, of drivers that watch over that.
    pub condition: Option<VolumeCondition>,
}

/// How a volume is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeCondition {
    pub is_abnormal: bool,
    /// The driver's own words.
    pub message: String,
}

impl Csi {
    /// The same of a volume that is mounted.
    pub(in crate::volumes) async fn usage_mounted(&self, name: &VolumeName, path: &Path) -> Option<VolumeReport> {
        let (driver, handle) = parts(name).ok()?;
        self.usage(name, path, &self.device(driver, handle).0).await
    }

    /// What a volume has that is published at `path`, and at `staging` if it is staged at all; `None` where its driver does
    /// not tell.
    pub(in crate::volumes) async fn usage(
        &self,
        name: &VolumeName,
        path: &Path,
        staging: &Path,
    ) -> Option<VolumeReport> {
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
        let told = told.ok()?;
        let mut room = FileSystem::default();
        for usage in told.usage {
            // A driver that lies cannot make less than nothing.
            let at_least_none = |amount: i64| u64::try_from(amount).unwrap_or_default();
            let (total, available) = (at_least_none(usage.total), at_least_none(usage.available));
            match usage.unit() {
                Unit::Bytes => (room.capacity, room.available) = (total, available),
                Unit::Inodes => (room.inodes, room.inodes_free) = (total, available),
                Unit::Unknown => {}
            }
        }
        let condition = told.volume_condition.filter(|_| driver.can(Capability::VolumeCondition));
        let condition = condition.map(|told| VolumeCondition { is_abnormal: told.abnormal, message: told.message });
        Some(VolumeReport { room, condition })
    }
}
