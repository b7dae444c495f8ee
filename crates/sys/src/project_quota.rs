//! Project quotas: what a file system that can do it (XFS, ext4) counts for all files of a project, which is a number that
//! directories pass on to what is made in them. Asking costs the same however much there is.
//!
//! The calls are those that XFS brought and that the kernel answers for ext4, too (quotactl(2)). Not here: which number is
//! whose; nothing of the kernel says that.

mod fake;
mod linux;

use std::io;
use std::path::Path;

pub use fake::FakeProjectQuotas;
pub use linux::LinuxProjectQuotas;

/// The number of a project.
pub type ProjectId = u32;

/// What the files of a project take up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProjectUse {
    pub bytes: u64,
    pub inodes: u64,
}

/// How much a project may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectLimit {
    /// Nothing is said about it.
    None,
    /// The most that the file system can write down, which nobody reaches: tools list the project, and nothing is refused.
    Highest,
}

/// The file systems of a machine, as far as they count by project. Paths are of directories; links in the last place are
/// not followed. Every call may block as long as the file system does.
pub trait ProjectQuotas: Send + Sync {
    /// Whether the file system that `path` lies on can do it and does it now.
    ///
    /// # Errors
    /// The path cannot be opened.
    fn counts(&self, path: &Path) -> io::Result<bool>;

    /// The project of a directory; 0 where it has none.
    ///
    /// # Errors
    /// The path cannot be opened, or the file system knows no projects.
    fn project(&self, directory: &Path) -> io::Result<ProjectId>;

    /// Makes a directory one of the project's, and whatever is made in it from now on. What is in it stays what it is.
    ///
    /// # Errors
    /// The path cannot be opened, or the file system knows no projects, or this process may not do it.
    fn assign(&self, directory: &Path, project: ProjectId) -> io::Result<()>;

    /// What a project has on the file system that `path` lies on; nothing where it was never heard of.
    ///
    /// # Errors
    /// The path cannot be opened, or the file system does not count, or this process may not know.
    fn used(&self, path: &Path, project: ProjectId) -> io::Result<ProjectUse>;

    /// How many bytes a project may have there.
    ///
    /// # Errors
    /// As for [`Self::used`].
    fn limit(&self, path: &Path, project: ProjectId, limit: ProjectLimit) -> io::Result<()>;
}
