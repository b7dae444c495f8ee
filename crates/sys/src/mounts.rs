//! Mounting and unmounting, and the table of what is mounted.

mod fake;
mod linux;
mod mountinfo;

use std::io;
use std::path::{Path, PathBuf};

pub use fake::FakeMounts;
pub use linux::LinuxMounts;
pub use mountinfo::{MountInfo, parse_mountinfo};

/// Something to mount. The target must exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub target: PathBuf,
    pub what: Source,
    pub read_only: bool,
    /// Whether programs in it may run and set-id bits count; off for volumes that hold data only.
    pub restrictions: Restrictions,
    pub propagation: Propagation,
}

/// What a mount shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Files in memory.
    Tmpfs { size_bytes: Option<u64>, mode: u32, swap: Swap },
    /// Another place of the tree, alone or with what is mounted below it.
    Bind { source: PathBuf, depth: Depth },
    /// A filesystem by the kernel's own name for its kind, with options that the kernel understands.
    Filesystem { kind: String, source: PathBuf, options: String },
}

/// Whether files in memory may be moved to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Swap {
    /// As the kernel likes.
    #[default]
    Allowed,
    /// Not at all; the kernel must know how ([`Mounts::can_refuse_swap`]).
    Refused,
}

/// Whether a bind mount takes the mounts below its source along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    One,
    Recursive,
}

/// What is not allowed on a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restrictions {
    pub no_exec: bool,
    pub no_suid: bool,
    pub no_dev: bool,
}

/// Whether later mounts below a mount travel to and from its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Propagation {
    /// As the place it is mounted on has it.
    #[default]
    Inherit,
    /// In neither direction (`None` in a container's volume mounts).
    Private,
    /// Into it only (`HostToContainer`).
    Slave,
    /// Both ways (`Bidirectional`).
    Shared,
}

impl Mount {
    /// Files in memory at `target`.
    pub fn tmpfs(target: impl Into<PathBuf>, size_bytes: Option<u64>, mode: u32) -> Self {
        Self::new(target, Source::Tmpfs { size_bytes, mode, swap: Swap::Allowed })
    }

    /// Files in memory stay there, where `swap` says so. Nothing changes for other mounts.
    #[must_use]
    pub fn swap(mut self, wanted: Swap) -> Self {
        if let Source::Tmpfs { swap, .. } = &mut self.what {
            *swap = wanted;
        }
        self
    }

    /// `source` seen at `target` too.
    pub fn bind(source: impl Into<PathBuf>, target: impl Into<PathBuf>, depth: Depth) -> Self {
        Self::new(target, Source::Bind { source: source.into(), depth })
    }

    /// A mount with no restriction.
    pub fn new(target: impl Into<PathBuf>, what: Source) -> Self {
        let (restrictions, propagation) = (Restrictions::default(), Propagation::Inherit);
        Self { target: target.into(), what, read_only: false, restrictions, propagation }
    }

    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    #[must_use]
    pub fn restricted(mut self, restrictions: Restrictions) -> Self {
        self.restrictions = restrictions;
        self
    }

    #[must_use]
    pub fn propagation(mut self, propagation: Propagation) -> Self {
        self.propagation = propagation;
        self
    }
}

/// How a mount is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmount {
    /// Only if nothing uses it.
    IfUnused,
    /// At once from the tree; the filesystem goes when the last user is gone.
    Lazy,
}

/// Mounts and unmounts.
pub trait Mounts: Send + Sync {
    /// Mounts. If a later step fails (such as making it read-only), the mount is undone.
    fn mount(&self, mount: &Mount) -> Result<(), MountError>;

    /// Takes the topmost mount at `target` away; fine if there is none.
    fn unmount(&self, target: &Path, how: Unmount) -> Result<(), MountError>;

    /// Whether the kernel can keep files in memory off the disk (`noswap`, since Linux 6.4, and not in a user namespace).
    fn can_refuse_swap(&self) -> bool;

    /// Everything that is mounted, in the order in which it was mounted.
    fn list(&self) -> Result<Vec<MountInfo>, MountError>;

    /// Whether something is mounted exactly at `target`. The path is compared as text after resolving links.
    fn is_mount_point(&self, target: &Path) -> Result<bool, MountError> {
        let target = target.canonicalize().unwrap_or_else(|_| target.to_owned());
        Ok(self.list()?.iter().any(|mount| mount.target == target))
    }

    /// Takes away every mount at or below `root`, the innermost first.
    fn unmount_below(&self, root: &Path, how: Unmount) -> Result<usize, MountError> {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut targets: Vec<_> = self.list()?.into_iter().map(|mount| mount.target).collect();
        targets.retain(|target| target.starts_with(&root));
        for target in targets.iter().rev() {
            self.unmount(target, how)?;
        }
        Ok(targets.len())
    }
}

/// Why mounting failed.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    #[error("mounting {}: {step}", target.display())]
    Mount {
        target: PathBuf,
        step: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("unmounting {}", target.display())]
    Unmount {
        target: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("listing mounts")]
    List(#[source] io::Error),
}
