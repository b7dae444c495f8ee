//! The volumes of pods: brought into place before containers start, refreshed while they run, taken away after.
//!
//! [`world`] holds what pods want and what there is, [`reconcile`] the next steps from one to the other, [`plugin`] what a
//! kind of volume can do; [`set`] has the steps taken. Everything is idempotent and found again on disk, so that a kubelet
//! that was restarted goes on where the last one stopped. Why it is so: `docs/adr/0015-volumes.md`. Volumes of drivers are
//! in [`csi`], those that are block devices in [`block`], places of the machine in
//! [`local`], exports of NFS servers in [`nfs`]. Not here: disks of iSCSI and
//! Fibre Channel.

mod block;
mod claim_stats;
mod claims;
mod csi;
mod disk;
mod empty_dir;
mod error;
mod failure;
mod file_error;
mod format;
mod host_path;
mod layout;
mod local;
mod loop_device;
mod mount_list;
mod mount_program;
mod nfs;
mod ownership;
mod payload;
mod plugin;
mod plugins;
mod project_files;
mod reconcile;
mod scratch_quota;
mod selinux;
mod set;
mod spec;
mod sub_path;
mod world;
mod writer;

pub use claim_stats::ClaimRoom;
pub use csi::{CsiDeps, VolumeCondition};
pub use layout::{Layout, Plugin};
pub use mount_list::{MountRequest, devices_of, mounts_of};
pub use scratch_quota::ScratchQuotas;
pub use selinux::Labels;
pub use set::{VolumeDeps, VolumeSet};
