//! Walks through directory trees that somebody else may change meanwhile: by descriptors, never by paths, so that a
//! symbolic link put in place of a directory leads nowhere, and never over a mount point.
//!
//! No recursion: whoever fills a volume chooses how deep it is. No more than [`HELD`] directories are held open; those
//! further up are found again by `..`, and have to be the ones that they were.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, chmod, chownat, fstat, openat, openat2,
    unlinkat,
};
use rustix::io::Errno;

/// Directories held open in one walk.
const HELD: usize = 64;
/// Trees deeper than this are given up; what is remembered of each level would fill the memory.
const MAX_DEPTH: usize = 1_000_000;

/// What a walk does. Entries that vanish in between are passed over.
trait Visit {
    /// Something that is no directory.
    fn leaf(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()>;

    /// Something is mounted there. What it shows is not walked through.
    fn mount_point(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()>;

    /// Everything in this directory is done.
    fn leave(&mut self, directory: OwnedFd, above: Option<(BorrowedFd<'_>, &CStr)>) -> io::Result<()>;
}

/// A directory that the walk is in.
struct Level {
    /// Closed where the walk has gone far below it.
    fd: Option<OwnedFd>,
    /// Its device and inode.
    id: (u64, u64),
    name: CString,
    /// Directories in it that are still to do.
    pending: Vec<CString>,
}

impl Level {
    /// Looks at everything in a directory; directories are left for later.
    fn enter(fd: OwnedFd, name: CString, visit: &mut dyn Visit) -> io::Result<Self> {
        let id = identity(&fstat(&fd)?);
        let mut pending = Vec::new();
        for entry in Dir::read_from(&fd)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match entry.file_type() {
                // What it is shows when it is opened.
                FileType::Directory | FileType::Unknown => pending.push(name.to_owned()),
                _ => visit.leaf(fd.as_fd(), name)?,
            }
        }
        Ok(Self { fd: Some(fd), id, name, pending })
    }

    fn fd(&self) -> io::Result<BorrowedFd<'_>> {
        self.fd.as_ref().map(OwnedFd::as_fd).ok_or_else(|| io::Error::other("directory is not open"))
    }
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// How entries are opened: where they are, and nowhere else.
const STRICT: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

fn open_directory(above: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(above, name, flags, Mode::empty(), STRICT)
}

/// Visits everything below a directory, and the directory last.
fn walk(root: OwnedFd, visit: &mut dyn Visit) -> io::Result<()> {
    let mut levels = vec![Level::enter(root, CString::default(), visit)?];
    while !levels.is_empty() {
        if let Err(error) = step(&mut levels, visit) {
            let path: Vec<_> = levels.iter().skip(1).map(|level| level.name.to_string_lossy()).collect();
            return Err(io::Error::new(error.kind(), format!("below {:?}: {error}", path.join("/"))));
        }
    }
    Ok(())
}

/// Goes one directory down or up.
fn step(levels: &mut Vec<Level>, visit: &mut dyn Visit) -> io::Result<()> {
    let depth = levels.len();
    let Some(top) = levels.last_mut() else { return Ok(()) };
    let Some(name) = top.pending.pop() else { return up(levels, visit) };
    let fd = top.fd()?;
    match open_directory(fd, &name) {
        Ok(_) if depth >= MAX_DEPTH => return Err(io::Error::other(format!("deeper than {MAX_DEPTH} directories"))),
        Ok(child) => levels.push(Level::enter(child, name, visit)?),
        Err(Errno::NOENT) => {}
        Err(Errno::NOTDIR | Errno::LOOP) => visit.leaf(fd, &name)?,
        Err(Errno::XDEV) => visit.mount_point(fd, &name)?,
        Err(error) => return Err(error.into()),
    }
    if let Some(far) = levels.len().checked_sub(HELD + 1) {
        levels[far].fd = None;
    }
    Ok(())
}

fn up(levels: &mut Vec<Level>, visit: &mut dyn Visit) -> io::Result<()> {
    let Some(Level { fd: Some(done), name, .. }) = levels.pop() else { return Ok(()) };
    let Some(above) = levels.last_mut() else { return visit.leave(done, None) };
    if above.fd.is_none() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(&done, c"..", flags, Mode::empty())?;
        if identity(&fstat(&found)?) != above.id {
            return Err(io::Error::other("a directory was moved while it was walked through"));
        }
        above.fd = Some(found);
    }
    visit.leave(done, Some((above.fd()?, &name)))
}

/// Removes a directory with everything in it, or what else is there; nothing there is fine. Symbolic links are not
/// followed, and what is mounted in the tree is left alone, which fails.
///
/// # Errors
/// Something cannot be removed; `CrossesDevices` where something is mounted.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "path has no file name"))?;
    let name = CString::new(name.as_encoded_bytes())?;
    let above = match openat(CWD, above, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    match open_directory(above.as_fd(), &name) {
        Ok(root) => {
            walk(root, &mut Remove)?;
            gone(unlinkat(&above, &*name, AtFlags::REMOVEDIR))
        }
        Err(Errno::NOENT) => Ok(()),
        Err(Errno::NOTDIR | Errno::LOOP) => gone(unlinkat(&above, &*name, AtFlags::empty())),
        Err(Errno::XDEV) => Err(mounted()),
        Err(error) => Err(error.into()),
    }
}

fn gone(removed: Result<(), Errno>) -> io::Result<()> {
    match removed {
        Err(error) if error != Errno::NOENT => Err(error.into()),
        _ => Ok(()),
    }
}

fn mounted() -> io::Error {
    io::Error::new(io::ErrorKind::CrossesDevices, "something is mounted there")
}

struct Remove;

impl Visit for Remove {
    fn leaf(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        gone(unlinkat(directory, name, AtFlags::empty()))
    }

    fn mount_point(&mut self, _: BorrowedFd<'_>, _: &CStr) -> io::Result<()> {
        Err(mounted())
    }

    fn leave(&mut self, directory: OwnedFd, above: Option<(BorrowedFd<'_>, &CStr)>) -> io::Result<()> {
        drop(directory);
        let Some((above, name)) = above else { return Ok(()) };
        gone(unlinkat(above, name, AtFlags::REMOVEDIR))
    }
}

/// The permission bits that a group is given at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// On everything but directories and links.
    pub of_files: u32,
    pub of_directories: u32,
}

/// Gives a directory and everything below it to a group, with these bits beside those that are set. The directory
/// itself comes last, so that it marks completion. What is mounted below is left as it is. `given` counts what is done.
///
/// # Errors
/// Something does not take it.
pub fn give_to_group(root: &Path, group: u32, bits: Bits, given: &AtomicU64) -> io::Result<()> {
    if group == u32::MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no group has this number"));
    }
    walk(open_root(root)?, &mut Give { group: Gid::from_raw(group), bits, given })
}

/// Whether the directory itself is as [`give_to_group`] leaves it.
///
/// # Errors
/// It cannot be looked at.
pub fn is_given_to_group(root: &Path, group: u32, bits: Bits) -> io::Result<bool> {
    let stat = fstat(open_root(root)?)?;
    Ok(stat.st_gid == group && stat.st_mode & bits.of_directories == bits.of_directories)
}

fn open_root(root: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, root, flags, Mode::empty())?)
}

struct Give<'a> {
    group: Gid,
    bits: Bits,
    given: &'a AtomicU64,
}

impl Give<'_> {
    fn give(&self, held: &OwnedFd) -> io::Result<()> {
        self.given.fetch_add(1, Ordering::Relaxed);
        let stat = fstat(held)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let bits = if kind == FileType::Directory { self.bits.of_directories } else { self.bits.of_files };
        let had = stat.st_mode & 0o7777;
        let moves = stat.st_gid != self.group.as_raw();
        if moves {
            chownat(held, c"", None, Some(self.group), AtFlags::EMPTY_PATH)?;
        }
        // Changing the group takes the set-id bits away.
        if kind != FileType::Symlink && (moves || had | bits != had) {
            chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::from_raw_mode(had | bits))?;
        }
        Ok(())
    }
}

impl Visit for Give<'_> {
    fn leaf(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat2(directory, name, flags, Mode::empty(), STRICT) {
            Ok(held) => self.give(&held),
            // Someone else works here too.
            Err(Errno::NOENT) => Ok(()),
            Err(Errno::XDEV) => self.mount_point(directory, name),
            Err(error) => Err(error.into()),
        }
    }

    fn mount_point(&mut self, _: BorrowedFd<'_>, _: &CStr) -> io::Result<()> {
        Ok(())
    }

    fn leave(&mut self, directory: OwnedFd, _: Option<(BorrowedFd<'_>, &CStr)>) -> io::Result<()> {
        self.give(&directory)
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
