//! Writing key material so that a crash leaves either the old file or the new one, never half of one, and so that the
//! bytes are never readable by others even for a moment.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Mode of private keys: the owner only.
pub const PRIVATE_MODE: u32 = 0o600;
/// Mode of certificates: readable by all.
pub const PUBLIC_MODE: u32 = 0o644;

static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// Replaces `path` with `bytes` atomically: a temporary file in the same directory with `mode` from the start, synced,
/// renamed over the target, and the directory synced.
///
/// # Errors
/// Any I/O error; the target is then unchanged.
pub fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let directory = parent(path);
    let name = path.file_name().ok_or_else(|| io::Error::other("the path names no file"))?;
    let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    let temporary = directory.join(format!(".{}.{}.{sequence}.tmp", name.to_string_lossy(), std::process::id()));
    let result = write_new(&temporary, bytes, mode).and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // Nothing more can be done about the leftover; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
        return result;
    }
    File::open(directory)?.sync_all()
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Creates the directory that holds `path` (and its parents) with mode 0755 where it is missing.
pub(crate) fn create_parent(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o755).create(parent(path))
}

/// Reads a file; `None` when it does not exist.
pub(crate) fn read_optional(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn replaces_with_the_asked_mode_and_leaves_no_litter() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key.pem");
        write_atomically(&path, b"one", PUBLIC_MODE).unwrap();
        write_atomically(&path, b"two", PRIVATE_MODE).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, PRIVATE_MODE);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(write_atomically(&directory.path().join("missing/key.pem"), b"x", PRIVATE_MODE).is_err());
    }
}
