//! Files written so that a reader sees the old or the new content and never half of it, and paths that cannot leave the
//! directory they are meant to stay in.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

pub use crate::tree::remove_tree;

/// Tells apart the temporary files of one process.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// Replaces a file's content in one step and flushes it to disk. `mode` is exact, whatever the umask.
///
/// # Errors
/// The directory does not exist or does not take the file.
pub fn write_atomic(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "path has no file name"))?;
    let number = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    let temporary = directory.join(format!(".{}.{}.{number}", name.to_string_lossy(), std::process::id()));
    let written = write_and_rename(&temporary, path, content, mode);
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written?;
    // Without this a crash may bring the old content back.
    File::open(directory)?.sync_all()
}

fn write_and_rename(temporary: &Path, path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let _ = std::fs::remove_file(temporary);
    // Made with no more than the final permissions, so that a secret is never readable in between.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode & 0o700).open(temporary)?;
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()?;
    std::fs::rename(temporary, path)
}

/// Joins a relative path that must not climb: no `..`, no leading slash. This is about the text only; where someone else
/// may put symbolic links below `root`, use [`open_beneath`].
#[must_use]
pub fn join_below(root: &Path, relative: &Path) -> Option<PathBuf> {
    let stays = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    stays.then(|| root.join(relative))
}

/// A place below a directory, held open so that it cannot be swapped for another afterwards.
#[derive(Debug)]
pub struct Beneath {
    fd: OwnedFd,
}

impl Beneath {
    /// A path that leads to exactly what was opened, for as long as this lives and for this process only: what to hand
    /// to a mount.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }

    /// The path at which it was found.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn resolved(&self) -> io::Result<PathBuf> {
        std::fs::read_link(self.path())
    }
}

/// Opens what `relative` names below `root`, without ever leaving `root`: links and `..` that would lead out fail, even
/// if someone changes the tree meanwhile. What a volume's `subPath` needs.
///
/// # Errors
/// It does not exist, leads out (`EXDEV`), or is a magic link.
pub fn open_beneath(root: &Path, relative: &Path) -> io::Result<Beneath> {
    let directory = File::open(root)?;
    let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // The kernel answers EAGAIN where a rename elsewhere raced with `..`; a few tries settle it.
    for _ in 0..OPEN_TRIES {
        match openat2(&directory, relative, flags, Mode::empty(), resolve) {
            Ok(fd) => return Ok(Beneath { fd }),
            Err(rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// How often a race with a rename is retried.
const OPEN_TRIES: usize = 16;

/// Makes the directories of `relative` below `root` that do not exist yet, without ever leaving `root`, and opens the
/// last one.
///
/// # Errors
/// As [`open_beneath`], or a part cannot be made.
pub fn create_beneath(root: &Path, relative: &Path, mode: u32) -> io::Result<Beneath> {
    let mut current = open_beneath(root, Path::new(""))?;
    for part in relative.components() {
        let Component::Normal(name) = part else {
            if part == Component::CurDir {
                continue;
            }
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "path climbs out of its directory"));
        };
        match rustix::fs::mkdirat(&current.fd, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        current = Beneath { fd: openat2(&current.fd, name, flags, Mode::empty(), resolve)? };
    }
    Ok(current)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn writing_replaces_with_the_exact_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        write_atomic(&path, b"one", 0o644).unwrap();
        write_atomic(&path, b"two", 0o600).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("is-a-directory");
        std::fs::create_dir(&path).unwrap();
        assert!(write_atomic(&path, b"x", 0o600).is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn joined_paths_stay_below() {
        let root = Path::new("/r");
        for bad in ["../a", "a/../../b", "/etc", ".."] {
            assert_eq!(join_below(root, Path::new(bad)), None, "{bad}");
        }
        assert_eq!(join_below(root, Path::new("a/./b")), Some("/r/a/./b".into()));
    }

    #[test]
    fn links_do_not_lead_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("volume");
        std::fs::create_dir_all(root.join("inside")).unwrap();
        symlink("/etc", root.join("absolute")).unwrap();
        symlink("../..", root.join("inside/up")).unwrap();
        symlink("inside", root.join("fine")).unwrap();
        for bad in ["absolute", "absolute/passwd", "inside/up", "..", "inside/../..", "/etc/passwd"] {
            assert!(open_beneath(&root, Path::new(bad)).is_err(), "{bad}");
        }
        for good in ["fine", "inside", "inside/..", ""] {
            assert!(open_beneath(&root, Path::new(good)).is_ok(), "{good}");
        }
        assert!(create_beneath(&root, Path::new("absolute/x"), 0o755).is_err());
        let made = create_beneath(&root, Path::new("new/deep"), 0o750).unwrap();
        assert_eq!(made.resolved().unwrap(), root.canonicalize().unwrap().join("new/deep"));
    }
}

#[cfg(test)]
#[path = "fs_hostile_tests.rs"]
mod hostile_tests;
