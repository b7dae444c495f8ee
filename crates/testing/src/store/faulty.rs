//! The built-in store on a disk that fills up and loses power.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{SharedClock, SharedRng, TaskGroup};
use parking_lot::Mutex;
use storage::{Backend, Embedded, EmbeddedOptions, FaultyDisk, StorageError};

/// How long a store may take to end.
const END: Duration = Duration::from_secs(10);

/// The disk, and the store that is open on it.
pub(crate) struct Faulty {
    directory: PathBuf,
    clock: SharedClock,
    rng: SharedRng,
    group: TaskGroup,
    now: Mutex<Option<(FaultyDisk, Arc<Embedded>)>>,
}

impl Faulty {
    pub(super) fn new(directory: &Path, clock: &SharedClock, rng: SharedRng, group: &TaskGroup) -> Self {
        let (clock, group) = (Arc::clone(clock), group.clone());
        Self { directory: directory.to_owned(), clock, rng, group, now: Mutex::default() }
    }

    pub(super) async fn open(&self, disk: FaultyDisk) -> Result<Arc<dyn Backend>, StorageError> {
        let options = EmbeddedOptions::new(&self.directory);
        let store = Embedded::open_on(&disk, options, Arc::clone(&self.clock), &self.group).await?;
        *self.now.lock() = Some((disk, Arc::clone(&store)));
        Ok(store)
    }

    /// Lets so many more writes through; `None` is endless.
    pub(crate) fn set_writes_left(&self, writes: Option<u64>) {
        if let Some((disk, _)) = &*self.now.lock() {
            disk.set_writes_left(writes);
        }
    }

    /// Lets no sync succeed any more, until the store is opened anew.
    pub(crate) fn fail_syncs(&self) {
        if let Some((disk, _)) = &*self.now.lock() {
            disk.fail_syncs();
        }
    }

    /// Opens what is left when the power fails now: of what was not synced, some is whole, some torn and some lost.
    pub(crate) async fn cut_power(&self) -> Result<Arc<dyn Backend>, StorageError> {
        let Some((disk, store)) = self.now.lock().take() else { return Err(StorageError::Closed) };
        let images = disk.images_after_power_cut(&self.rng);
        store.close(END).await;
        self.open(FaultyDisk::holding(images)).await
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Faulty").field("directory", &self.directory).finish_non_exhaustive()
    }
}
