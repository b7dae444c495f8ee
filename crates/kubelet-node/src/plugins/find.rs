//! Which sockets there are below the directory that plugins register in.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use inotify::{Inotify, WatchMask};

/// Sockets that are looked at; a node has a few dozen plugins at most.
const MAX_SOCKETS: usize = 1000;
/// Directories below each other, and all together.
const MAX_DEPTH: usize = 8;
const MAX_DIRECTORIES: usize = 1000;

/// Which socket it is: one made anew at the same path is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    /// When it was made. Connecting, or a change of its mode, does not change it.
    made: (i64, i64),
}

impl Identity {
    #[cfg(test)]
    pub(super) fn numbered(inode: u64) -> Self {
        Self { device: 0, inode, made: (0, 0) }
    }
}

/// What there is at one look.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) sockets: BTreeMap<PathBuf, Identity>,
    pub(super) directories: Vec<PathBuf>,
}

/// Looks at everything below `root`; what vanishes meanwhile is not there, and hidden names do not count.
///
/// # Errors
/// The directory itself cannot be read.
pub(super) fn look(root: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    let mut open = vec![(root.to_owned(), 0)];
    std::fs::read_dir(root)?;
    while let Some((directory, depth)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        found.directories.push(directory);
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            // Links are followed by nobody: what a plugin registers stands in the directory itself.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() && depth < MAX_DEPTH && found.directories.len() + open.len() < MAX_DIRECTORIES {
                open.push((entry.path(), depth + 1));
            } else if meta.file_type().is_socket() && found.sockets.len() < MAX_SOCKETS {
                let made = (meta.mtime(), meta.mtime_nsec());
                let identity = Identity { device: meta.dev(), inode: meta.ino(), made };
                found.sockets.insert(entry.path(), identity);
            }
        }
    }
    Ok(found)
}

/// Has changes in these directories told, beside those that are told already.
pub(super) fn watch(inotify: &Inotify, directories: &[PathBuf]) {
    let mask = WatchMask::CREATE | WatchMask::MOVED_FROM | WatchMask::MOVED_TO | WatchMask::DELETE;
    for directory in directories {
        if let Err(error) = inotify.watches().add(directory, mask) {
            tracing::warn!(path = %directory.display(), %error, "Watching a directory of plugins failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_count_wherever_they_are_and_files_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::create_dir_all(at(".c")).unwrap();
        std::fs::write(at("file.sock"), "").unwrap();
        let names = ["top.sock", ".hidden.sock", "a/b/deep.sock", ".c/inside.sock"];
        let bound: Vec<UnixListener> = names.iter().map(|name| UnixListener::bind(at(name)).unwrap()).collect();
        std::os::unix::fs::symlink(at("top.sock"), at("link.sock")).unwrap();
        let found = look(dir.path()).unwrap();
        let paths: Vec<_> = found.sockets.keys().cloned().collect();
        assert_eq!(paths, [at("a/b/deep.sock"), at("top.sock")]);
        assert_eq!(found.directories.len(), 3, "{:?}", found.directories);
        drop(bound);

        let before = found.sockets[&at("top.sock")];
        std::fs::remove_file(at("top.sock")).unwrap();
        let _again = UnixListener::bind(at("top.sock")).unwrap();
        assert_ne!(look(dir.path()).unwrap().sockets[&at("top.sock")], before, "made anew, it is another");
        assert!(look(&at("nowhere")).is_err());
    }
}
