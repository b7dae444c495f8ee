//! Project quotas by the kernel's own calls: ioctl_fs (`FS_IOC_FSGETXATTR`) for the projects of directories, and
//! `quotactl_fd` for what is counted, which takes any file of the file system and no device. That one came with Linux 5.14.

use std::ffi::{c_int, c_long, c_uint};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Getter, Opcode, Setter, ioctl, opcode};

use super::{ProjectId, ProjectLimit, ProjectQuotas, ProjectUse};

/// The project quotas of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinuxProjectQuotas;

impl ProjectQuotas for LinuxProjectQuotas {
    fn counts(&self, path: &Path) -> io::Result<bool> {
        let directory = open(path)?;
        if kind(&directory)?.is_none() {
            return Ok(false);
        }
        let mut state = State { version: STATE_VERSION, ..State::default() };
        // Whatever the reason is: it does not count.
        let told = control(&directory, Command::State(&mut state));
        Ok(told.is_ok() && state.flags & PROJECTS_COUNTED != 0)
    }

    fn project(&self, directory: &Path) -> io::Result<ProjectId> {
        Ok(attributes(&open(directory)?)?.project)
    }

    fn assign(&self, directory: &Path, project: ProjectId) -> io::Result<()> {
        let directory = open(directory)?;
        let mut attributes = attributes(&directory)?;
        attributes.project = project;
        attributes.flags |= PASSED_ON;
        set_attributes(&directory, attributes)
    }

    fn used(&self, path: &Path, project: ProjectId) -> io::Result<ProjectUse> {
        let mut quota = Quota::default();
        match control(&open(path)?, Command::Quota(project, &mut quota)) {
            Ok(()) => {
                Ok(ProjectUse { bytes: quota.blocks_used.saturating_mul(BLOCK_BYTES), inodes: quota.inodes_used })
            }
            // XFS has no record of a project until there is something of it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ProjectUse::default()),
            Err(error) => Err(error),
        }
    }

    fn limit(&self, path: &Path, project: ProjectId, limit: ProjectLimit) -> io::Result<()> {
        let directory = open(path)?;
        let bytes = match limit {
            ProjectLimit::None => 0,
            ProjectLimit::Highest => kind(&directory)?.ok_or(io::ErrorKind::Unsupported)?.highest_limit_bytes(),
        };
        let blocks = bytes / BLOCK_BYTES;
        let quota = Quota {
            version: QUOTA_VERSION,
            flags: OF_PROJECT,
            fields: SOFT_BLOCKS | HARD_BLOCKS,
            id: project,
            hard_blocks: blocks,
            soft_blocks: blocks,
            ..Quota::default()
        };
        control(&directory, Command::Limit(&quota))
    }
}

fn open(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(directory, flags, Mode::empty())?)
}

/// A kind of file system that can count by project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Xfs,
    Ext4,
}

impl Kind {
    fn highest_limit_bytes(self) -> u64 {
        match self {
            Self::Xfs => (1 << 63) - 1,
            Self::Ext4 => (1 << 58) - 1,
        }
    }
}

/// By the number that statfs(2) tells them by.
fn kind(directory: &OwnedFd) -> io::Result<Option<Kind>> {
    Ok(match rustix::fs::fstatfs(directory)?.f_type {
        0x5846_5342 => Some(Kind::Xfs),
        // ext2 and ext3 have the same number and no projects.
        0xef53 => Some(Kind::Ext4),
        _ => None,
    })
}

/// `struct fsxattr` of linux/fs.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    copied_extent_size: u32,
    pad: [u8; 8],
}

/// `FS_XFLAG_PROJINHERIT`: what is made in the directory belongs to its project.
const PASSED_ON: u32 = 0x200;

const GET_ATTRIBUTES: Opcode = opcode::read::<Attributes>(b'X', 31);
const SET_ATTRIBUTES: Opcode = opcode::write::<Attributes>(b'X', 32);

#[expect(unsafe_code, reason = "rustix has no wrapper for this ioctl")]
fn attributes(directory: &OwnedFd) -> io::Result<Attributes> {
    // SAFETY: the opcode is that of FS_IOC_FSGETXATTR, which fills in one `struct fsxattr` and reads nothing.
    let told = unsafe { ioctl(directory.as_fd(), Getter::<GET_ATTRIBUTES, Attributes>::new()) };
    Ok(told?)
}

#[expect(unsafe_code, reason = "rustix has no wrapper for this ioctl")]
fn set_attributes(directory: &OwnedFd, attributes: Attributes) -> io::Result<()> {
    // SAFETY: the opcode is that of FS_IOC_FSSETXATTR, which reads one `struct fsxattr` and writes nothing.
    let done = unsafe { ioctl(directory.as_fd(), Setter::<SET_ATTRIBUTES, Attributes>::new(attributes)) };
    Ok(done?)
}

/// What is counted in, whatever the blocks of the file system are.
const BLOCK_BYTES: u64 = 512;

/// `struct fs_disk_quota` of linux/dqblk_xfs.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Quota {
    version: i8,
    flags: i8,
    /// Which of the limits are to change.
    fields: u16,
    id: u32,
    hard_blocks: u64,
    soft_blocks: u64,
    hard_inodes: u64,
    soft_inodes: u64,
    blocks_used: u64,
    inodes_used: u64,
    /// Times, warnings, and what files in real time have.
    rest: [u64; 7],
}

/// `FS_DQUOT_VERSION`, `FS_PROJ_QUOTA`, `FS_DQ_BSOFT` and `FS_DQ_BHARD`.
const QUOTA_VERSION: i8 = 1;
const OF_PROJECT: i8 = 2;
const SOFT_BLOCKS: u16 = 4;
const HARD_BLOCKS: u16 = 8;

/// `struct fs_quota_statv` of linux/dqblk_xfs.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct State {
    version: i8,
    pad: u8,
    flags: u16,
    records: u32,
    rest: [u64; 19],
}

/// `FS_QSTATV_VERSION1` and `FS_QUOTA_PDQ_ACCT`.
const STATE_VERSION: i8 = 1;
const PROJECTS_COUNTED: u16 = 1 << 4;

/// What may be asked of [`control`], with what it is answered in.
enum Command<'a> {
    State(&'a mut State),
    Quota(ProjectId, &'a mut Quota),
    Limit(&'a Quota),
}

/// The number of `quotactl_fd`, the same on all machines that this is built for.
const QUOTACTL_FD: c_long = 443;
/// `PRJQUOTA`: of the three kinds of quotas, that of projects.
const PROJECTS: c_uint = 2;
const XFS_GET_QUOTA: c_uint = (b'X' as c_uint) << 8 | 3;
const XFS_SET_LIMIT: c_uint = (b'X' as c_uint) << 8 | 4;
const XFS_GET_STATE: c_uint = (b'X' as c_uint) << 8 | 8;

#[expect(unsafe_code, reason = "the C library has no wrapper for this call")]
fn control(directory: &OwnedFd, command: Command<'_>) -> io::Result<()> {
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    let (name, id, at) = match command {
        Command::State(state) => (XFS_GET_STATE, 0, std::ptr::from_mut(state).cast::<u8>()),
        Command::Quota(id, quota) => (XFS_GET_QUOTA, id, std::ptr::from_mut(quota).cast()),
        // The kernel only reads it.
        Command::Limit(quota) => (XFS_SET_LIMIT, quota.id, std::ptr::from_ref(quota).cast_mut().cast()),
    };
    let descriptor: c_int = directory.as_raw_fd();
    // SAFETY: the descriptor is open as long as the borrow. `at` comes from a borrow that outlives the call, to the structure
    // that goes with each command: the kernel writes one `fs_quota_statv` for the first, one `fs_disk_quota` for the second, and
    // for the third reads one of those. The sizes are checked below.
    let result = unsafe { syscall(QUOTACTL_FD, descriptor, name << 8 | PROJECTS, id, at) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

const _: () = assert!(size_of::<Attributes>() == 28);
const _: () = assert!(size_of::<Quota>() == 112);
const _: () = assert!(size_of::<State>() == 160);

#[cfg(test)]
#[path = "linux_tests.rs"]
mod tests;
