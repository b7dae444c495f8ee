//! One hierarchy: a directory tree of groups and the small files in them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use super::{CgroupError, CgroupPath};

/// What most files fit in, so that they are read at once.
const TYPICAL_BYTES: usize = 2048;
/// More is not read: lists of processes are the longest, and a machine has at most four million.
const MAX_BYTES: u64 = 64 << 20;
/// Deeper trees than this are not followed.
const DEPTH_MAX: usize = 32;

/// A hierarchy by its mount point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) root: PathBuf,
}

impl Hierarchy {
    pub(super) fn directory(&self, group: &CgroupPath) -> PathBuf {
        self.root.join(group.relative())
    }

    pub(super) fn create(&self, group: &CgroupPath) -> Result<PathBuf, CgroupError> {
        let directory = self.directory(group);
        match fs::create_dir(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(file_error("creating", &directory)(error))
            }
            _ => Ok(directory),
        }
    }

    /// The group's directory and all below it, parents before children.
    pub(super) fn tree(&self, group: &CgroupPath) -> Vec<PathBuf> {
        let mut found = vec![(self.directory(group), 0)];
        let mut next = 0;
        while let Some((directory, depth)) = found.get(next).cloned() {
            next += 1;
            if depth < DEPTH_MAX {
                found.extend(directories(&directory).map(|child| (child, depth + 1)));
            }
        }
        found.into_iter().map(|(directory, _)| directory).filter(|directory| directory.is_dir()).collect()
    }

    /// Removes the group with those below it, children first.
    pub(super) fn remove(&self, group: &CgroupPath) -> Result<(), CgroupError> {
        for directory in self.tree(group).iter().rev() {
            match fs::remove_dir(directory) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    return Err(CgroupError::Busy { group: group.clone() });
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(file_error("removing", directory)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The processes in the group and below it. A group that vanishes meanwhile has none.
    pub(super) fn processes(&self, group: &CgroupPath) -> Result<BTreeSet<u32>, CgroupError> {
        let mut pids = BTreeSet::new();
        for directory in self.tree(group) {
            match read(&directory.join("cgroup.procs")) {
                Ok(text) => pids.extend(text.lines().filter_map(|line| line.trim().parse::<u32>().ok())),
                // ENODEV: removed between open and read.
                Err(CgroupError::File { source, .. })
                    if source.kind() == io::ErrorKind::NotFound || source.raw_os_error() == Some(19) => {}
                Err(error) => return Err(error),
            }
        }
        // 0 stands for a process of another namespace, which has no number here.
        pids.remove(&0);
        Ok(pids)
    }
}

pub(super) fn directories(parent: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

pub(super) fn read(path: &Path) -> Result<String, CgroupError> {
    read_text(path).map_err(file_error("reading", path))
}

/// The size of such a file says nothing, so that the kernel is not asked for it: there are many to read.
fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::with_capacity(TYPICAL_BYTES);
    fs::File::open(path)?.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

pub(super) fn write(path: &Path, value: &str) -> Result<(), CgroupError> {
    // Not `fs::write`, which would create a missing file when a test lays the tree out in a plain directory.
    let written = fs::OpenOptions::new().write(true).truncate(true).open(path);
    written.and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes())).map_err(file_error("writing", path))
}

pub(super) fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CgroupError {
    let path = path.display().to_string();
    move |source| CgroupError::File { action, path, source }
}

/// The number after `name` in a file of lines `name number`.
pub(super) fn keyed(text: &str, name: &str) -> u64 {
    let value = text.lines().filter_map(|line| line.split_once(' ')).find(|(key, _)| *key == name);
    value.and_then(|(_, number)| number.trim().parse().ok()).unwrap_or(0)
}

/// The number in a file of one number; 0 if there is none.
pub(super) fn number(path: &Path) -> u64 {
    read_text(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

pub(super) fn kill(pids: &BTreeSet<u32>) -> usize {
    let known = pids.iter().filter_map(|pid| i32::try_from(*pid).ok()).filter_map(Pid::from_raw);
    known.filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count()
}
