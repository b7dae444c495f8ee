//! A disk so small that a test can fill it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use sys::mounts::{LinuxMounts, Mount, Mounts as _, Unmount};

const SIZE: u64 = 128 << 10;
/// The bit of the capability to mount.
const SYS_ADMIN: u32 = 21;

/// A file system of its own; it goes with this value.
pub(crate) struct SmallDisk {
    root: PathBuf,
    _dir: tempfile::TempDir,
}

impl SmallDisk {
    /// Nothing, and a word about it, where this process may not mount.
    pub(crate) fn new() -> Option<Self> {
        let capabilities = sys::proc::Proc::system().effective_capabilities().unwrap_or_default();
        if capabilities >> SYS_ADMIN & 1 == 0 {
            test_facts::skipped("a file system can only be mounted as root");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("disk");
        std::fs::create_dir(&root).unwrap();
        LinuxMounts.mount(&Mount::tmpfs(&root, Some(SIZE), 0o755)).unwrap();
        Some(Self { root, _dir: dir })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    fn filler(&self) -> PathBuf {
        self.root.join("filler")
    }

    /// Not one more byte fits.
    pub(crate) fn fill(&self) {
        let mut file = std::fs::File::create(self.filler()).unwrap();
        let zeros = vec![0; usize::try_from(SIZE).unwrap()];
        let error = file.write_all(&zeros).and_then(|()| file.write_all(&zeros)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    }

    /// There is room again.
    pub(crate) fn make_room(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = LinuxMounts.unmount(&self.root, Unmount::Lazy);
    }
}
