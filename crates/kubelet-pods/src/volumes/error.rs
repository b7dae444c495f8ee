//! Why a volume is not in place, or not gone. Every step is taken again, each time after a longer pause: what is missing
//! may come, what is held may be let go, and a pod that is wrong is deleted sooner or later.

use std::io;
use std::path::PathBuf;

use sys::mounts::MountError;

use super::csi::CsiError;
use super::file_error::FileError;
use super::host_path::HostPathError;
use super::local::DeviceError;
use super::loop_device::LoopError;
use super::mount_program::ProgramError;
use super::payload::PayloadError;
use super::sub_path::SubPathError;
use super::writer::WriteError;
use crate::file_calls::CallError;
use crate::interfaces::SideError;

/// Why a step of a volume failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum VolumeError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}", SideError::of(.0))]
    Mount(#[from] MountError),
    /// Nothing is removed below it: it may be someone's data.
    #[error("{} is still mounted", .0.display())]
    StillMounted(PathBuf),
    /// Files that cannot be given to the pod's group.
    #[error(transparent)]
    Owner(io::Error),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error(transparent)]
    HostPath(#[from] HostPathError),
    #[error(transparent)]
    SubPath(#[from] SubPathError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Csi(Box<CsiError>),
    #[error("path {path:?} does not exist: {source}")]
    NoLocalPath { path: PathBuf, source: io::Error },
    #[error("only directory and block device are supported")]
    NoDirectory,
    #[error(transparent)]
    LocalDevice(Box<DeviceError>),
    #[error("nothing is mounted at {}", .0.display())]
    NotMounted(PathBuf),
    #[error("{} is not a block device", .0.display())]
    NoBlockDevice(PathBuf),
    #[error("blkUtil.AttachFileDevice failed: {0}")]
    Loop(#[from] LoopError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("unknown storage medium {0:?}")]
    Medium(String),
    #[error("medium {0}: hugePages storage requested, but there is no resource request for huge pages")]
    NoHugePages(String),
    #[error("medium: HugePages can't be used if container requests multiple huge page sizes")]
    SeveralPageSizes,
    /// The volume is not of the plugin's kind.
    #[error("no volume plugin matched")]
    Unmatched,
    #[error("a local volume needs a claim")]
    NoClaim,
    #[error("nobody found out what the volume is made from")]
    Unprocessed,
}

impl From<CsiError> for VolumeError {
    fn from(error: CsiError) -> Self {
        Self::Csi(Box::new(error))
    }
}

impl From<VolumeError> for SideError {
    fn from(error: VolumeError) -> Self {
        Self::new(error.to_string())
    }
}
