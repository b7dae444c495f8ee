//! The data directory: private to its owner, and to one process at a time.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::StorageError;

const LOCK_FILE: &str = "lock";
const DATABASE_FILE: &str = "store.redb";
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The database file of a data directory.
pub(super) fn database(directory: &Path) -> PathBuf {
    directory.join(DATABASE_FILE)
}

/// One half of the journal of a data directory.
pub(super) fn journal(directory: &Path, half: usize) -> PathBuf {
    directory.join(format!("journal.{half}"))
}

/// The files that grow with the data.
pub(super) fn files(directory: &Path) -> [PathBuf; 3] {
    [database(directory), journal(directory, 0), journal(directory, 1)]
}

/// A data directory that this process has to itself until the value is dropped.
#[derive(Debug)]
pub(super) struct DataDirectory {
    path: PathBuf,
    _lock: File,
}

impl DataDirectory {
    /// Makes the directory where needed, closes it to other users and locks it.
    pub(super) fn claim(path: &Path) -> Result<Self, StorageError> {
        DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(path)
            .map_err(|error| StorageError::io("create", path, &error))?;
        std::fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE))
            .map_err(|error| StorageError::io("restrict", path, &error))?;
        let lock_path = path.join(LOCK_FILE);
        let lock = open_private(&lock_path).map_err(|error| StorageError::io("open", &lock_path, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StorageError::Locked(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(StorageError::io("lock", &lock_path, &error)),
        }
        let claimed = Self { path: path.to_owned(), _lock: lock };
        for file in files(path) {
            open_private(&file).map_err(|error| StorageError::io("open", &file, &error))?;
        }
        claimed.sync()?;
        Ok(claimed)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn database(&self) -> PathBuf {
        database(&self.path)
    }

    /// What is said when a half of the journal cannot be opened.
    pub(super) fn journal_error(&self, half: usize, error: &std::io::Error) -> StorageError {
        StorageError::io("open", journal(&self.path, half), error)
    }

    /// Makes the names in the directory survive a power cut.
    fn sync(&self) -> Result<(), StorageError> {
        let synced = File::open(&self.path).and_then(|directory| directory.sync_all());
        synced.map_err(|error| StorageError::io("sync", &self.path, &error))
    }
}

/// Opens a file for reading and writing, made with mode 0600 where it does not exist.
pub(super) fn open_private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path)
}
