//! The files of a store: the database and the two halves of its journal.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use redb::{Database, DatabaseError};

use super::directory::{self, open_private};

/// Pages kept by the engine. Values live in our own memory, so this only serves the inner pages of the tree.
const CACHE_BYTES: usize = 8 << 20;

/// Where a store's files are; tests have one that fails.
pub(super) trait Disk: Send + Sync + Debug {
    /// Opens the database, verifying every page; called again after the disk was full.
    fn database(&self) -> Result<Database, DatabaseError>;

    /// Opens one half of the journal, 0 or 1.
    fn journal(&self, half: usize) -> io::Result<Box<dyn JournalFile>>;
}

/// A file that is written in order and synced after every write.
pub(super) trait JournalFile: Send + Debug {
    /// All that is in the file.
    fn read_all(&self) -> io::Result<Vec<u8>>;

    /// Writes all bytes, extending the file where needed. What a failed write left is not whole.
    fn write_all(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Returns when everything written is on stable storage.
    fn sync(&self) -> io::Result<()>;
}

/// The files of a data directory.
#[derive(Debug)]
pub(super) struct FileDisk(PathBuf);

impl FileDisk {
    pub(super) fn new(directory: &Path) -> Self {
        Self(directory.to_owned())
    }
}

impl Disk for FileDisk {
    fn database(&self) -> Result<Database, DatabaseError> {
        builder().create(directory::database(&self.0))
    }

    fn journal(&self, half: usize) -> io::Result<Box<dyn JournalFile>> {
        Ok(Box::new(open_private(&directory::journal(&self.0, half))?))
    }
}

impl JournalFile for File {
    fn read_all(&self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.metadata()?.len()).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    fn write_all(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

pub(super) fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    builder
}
