//! How full a directory and a filesystem are.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Entries that are looked at; what a volume has beyond is not counted.
const MOST_ENTRIES: i64 = 1_000_000;
/// The unit of a file's blocks, whatever the filesystem's.
const BLOCK_BYTES: u64 = 512;

/// What is in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Usage {
    pub(crate) bytes: i64,
    pub(crate) inodes: i64,
}

/// What a filesystem has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) total_bytes: i64,
    pub(crate) available_bytes: i64,
    pub(crate) total_inodes: i64,
    pub(crate) available_inodes: i64,
}

/// Adds up what is in a directory, without following links. What goes meanwhile is not counted.
pub(crate) fn of_directory(root: &Path) -> io::Result<Usage> {
    let mut usage = Usage::default();
    let mut waiting = vec![root.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound && path != root => continue,
            Err(error) => return Err(error),
        };
        usage.inodes += 1;
        usage.bytes = usage.bytes.saturating_add_unsigned(metadata.blocks().saturating_mul(BLOCK_BYTES));
        if metadata.is_dir() && usage.inodes < MOST_ENTRIES {
            let left = MOST_ENTRIES - usage.inodes;
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.take(usize::try_from(left).unwrap_or(0)).map(|entry| entry.path()));
        }
    }
    Ok(usage)
}

/// What the filesystem of a directory has.
pub(crate) fn of_filesystem(path: &Path) -> io::Result<Room> {
    let found = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(found.f_frsize)).unwrap_or(i64::MAX);
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    Ok(Room {
        total_bytes: bytes(found.f_blocks),
        available_bytes: bytes(found.f_bavail),
        total_inodes: count(found.f_files),
        available_inodes: count(found.f_favail),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_counted_and_not_followed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("a")).unwrap();
        fs::write(root.path().join("a/b"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/", root.path().join("link")).unwrap();
        let usage = of_directory(root.path()).unwrap();
        assert_eq!(usage.inodes, 4);
        assert!((100_000..200_000).contains(&usage.bytes), "{usage:?}");
        assert!(of_directory(&root.path().join("none")).is_err());
    }
}
