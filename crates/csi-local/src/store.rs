//! Volumes and snapshots on disk.
//!
//! ```text
//! ROOT/volumes/ID/record.json    what it is
//! ROOT/volumes/ID/data           what it holds: a directory, or an image
//! ROOT/snapshots/ID/...          likewise
//! ROOT/building/ID               what is not finished
//! ROOT/removed/ID.N              what is not wholly gone
//! ```
//! What is finished comes by one rename, and what goes leaves by one. What is found half built or half removed at the
//! start goes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sys::fs::{remove_tree, write_atomic};

use crate::record::{Record, Snapshot, Volume};

const RECORD: &str = "record.json";
const DATA: &str = "data";
const BUILDING: &str = "building";
const REMOVED: &str = "removed";
/// Nobody but root looks into volumes that are not mounted.
const PRIVATE: u32 = 0o600;

/// The directory of everything.
pub(crate) struct Store {
    root: PathBuf,
    removals: AtomicU64,
}

/// Why what is on disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A driver that forgot the volume would tell everybody that it is gone.
    #[error("{} is no record of what is beside it", path.display())]
    Record { path: PathBuf },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError + '_ {
    |source| StoreError::Io { path: path.to_owned(), source }
}

impl Store {
    /// Opens a directory, which is made where there is none, and clears what an earlier process left half done.
    pub(crate) fn open(root: &Path) -> Result<Self, StoreError> {
        for folder in [BUILDING, REMOVED] {
            let path = root.join(folder);
            remove_tree(&path).or_else(ignore_missing).map_err(at(&path))?;
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        for folder in [Volume::FOLDER, Snapshot::FOLDER] {
            let path = root.join(folder);
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        // The canonical path is what the table of mounts shows.
        let root = root.canonicalize().map_err(at(root))?;
        Ok(Self { root, removals: AtomicU64::new(0) })
    }

    /// All records of a kind.
    pub(crate) fn load<R: Record>(&self) -> Result<BTreeMap<String, R>, StoreError> {
        let folder = self.root.join(R::FOLDER);
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(&folder).map_err(at(&folder))? {
            let entry = entry.map_err(at(&folder))?;
            let path = entry.path().join(RECORD);
            let content = fs::read(&path).map_err(at(&path))?;
            let record = serde_json::from_slice(&content).ok().and_then(|value| R::from_json(&value));
            let record = record.filter(|record| entry.file_name() == record.id());
            let record = record.ok_or(StoreError::Record { path })?;
            found.insert(record.id().to_owned(), record);
        }
        Ok(found)
    }

    /// An empty place to build something at; what was begun there before goes.
    pub(crate) fn begin(&self, id: &str) -> Result<PathBuf, StoreError> {
        let path = self.root.join(BUILDING).join(id);
        remove_tree(&path).or_else(ignore_missing).map_err(at(&path))?;
        fs::create_dir(&path).map_err(at(&path))?;
        Ok(path.join(DATA))
    }

    /// What was built becomes what the record says.
    pub(crate) fn finish<R: Record>(&self, record: &R) -> Result<(), StoreError> {
        let built = self.root.join(BUILDING).join(record.id());
        write_record(&built, record)?;
        // What was copied must not be lost behind a record that promises it.
        let directory = File::open(&built).map_err(at(&built))?;
        rustix::fs::syncfs(&directory).map_err(|error| at(&built)(error.into()))?;
        let folder = self.root.join(R::FOLDER);
        rename(&built, &folder.join(record.id()))
    }

    /// Replaces a record.
    pub(crate) fn update<R: Record>(&self, record: &R) -> Result<(), StoreError> {
        write_record(&self.root.join(R::FOLDER).join(record.id()), record)
    }

    /// Takes something out of the way; the path is what is left to be cleared.
    pub(crate) fn remove<R: Record>(&self, record: &R) -> Result<PathBuf, StoreError> {
        let number = self.removals.fetch_add(1, Ordering::Relaxed);
        let removed = self.root.join(REMOVED).join(format!("{}.{number}", record.id()));
        rename(&self.root.join(R::FOLDER).join(record.id()), &removed)?;
        Ok(removed)
    }

    /// What something holds.
    pub(crate) fn data<R: Record>(&self, record: &R) -> PathBuf {
        self.root.join(R::FOLDER).join(record.id()).join(DATA)
    }

    /// The directory itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

fn write_record<R: Record>(directory: &Path, record: &R) -> Result<(), StoreError> {
    let path = directory.join(RECORD);
    write_atomic(&path, record.to_json().to_string().as_bytes(), PRIVATE).map_err(at(&path))
}

/// Renames, so that it stays so after a crash of the machine.
fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(at(from))?;
    for parent in [from.parent(), to.parent()].into_iter().flatten() {
        File::open(parent).and_then(|directory| directory.sync_all()).map_err(at(parent))?;
    }
    Ok(())
}

fn ignore_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Kind, snapshot_id};

    fn snapshot(name: &str) -> Snapshot {
        Snapshot {
            id: snapshot_id(name),
            name: name.into(),
            volume_id: "vol-1".into(),
            kind: Kind::Directory,
            size_bytes: 1,
            made_seconds: 2,
        }
    }

    #[test]
    fn what_was_not_finished_is_gone_and_what_was_is_there() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        fs::create_dir(store.begin(&snapshot_id("half")).unwrap()).unwrap();
        let whole = snapshot("whole");
        fs::create_dir(store.begin(&whole.id).unwrap()).unwrap();
        assert!(store.load::<Snapshot>().unwrap().is_empty(), "nothing is finished");
        store.finish(&whole).unwrap();
        let removed = snapshot("removed");
        store.begin(&removed.id).unwrap();
        store.finish(&removed).unwrap();
        let left = store.remove(&removed).unwrap();

        let store = Store::open(root.path()).unwrap();
        let found: Vec<_> = store.load::<Snapshot>().unwrap().into_values().collect();
        assert_eq!(found, std::slice::from_ref(&whole));
        assert!(store.data(&whole).is_dir() && !left.exists());
        assert_eq!(fs::read_dir(root.path().join(BUILDING)).unwrap().count(), 0);
    }

    #[test]
    fn building_again_begins_with_nothing() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        fs::write(store.begin("a").unwrap(), "left over").unwrap();
        assert!(!store.begin("a").unwrap().exists());
    }

    #[test]
    fn a_broken_record_is_named_and_not_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        let good = snapshot("good");
        store.begin(&good.id).unwrap();
        store.finish(&good).unwrap();
        let path = root.path().join("snapshots").join(&good.id).join(RECORD);
        for content in ["", "{}", &snapshot("another").to_json().to_string()] {
            fs::write(&path, content).unwrap();
            let error = store.load::<Snapshot>().unwrap_err().to_string();
            assert!(error.contains(&good.id), "{error}");
        }
    }
}
