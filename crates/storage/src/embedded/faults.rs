//! A disk in memory that fills up, fails to sync and loses power, for tests.

use std::io::{Error, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base::SharedRng;
use parking_lot::Mutex;

use super::engine::{Opener, builder};

/// Power may fail between any two of these.
const SECTOR_BYTES: usize = 512;

#[derive(Debug, Clone)]
enum Operation {
    Length(u64),
    Write(u64, Vec<u8>),
}

/// What was left when the power failed.
#[derive(Debug)]
pub(super) struct Wreck {
    pub(super) image: Vec<u8>,
    /// The newest revision that had been acknowledged.
    pub(super) acknowledged: i64,
    /// The witness file.
    pub(super) anchor: Vec<u8>,
}

#[derive(Debug)]
struct PowerCut {
    after_operations: u64,
    rng: SharedRng,
    acknowledged: Arc<AtomicI64>,
    anchor: PathBuf,
}

#[derive(Debug, Default)]
struct Inner {
    content: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Operation>,
    capacity: Option<u64>,
    /// How many more writes fit; `None` is endless.
    writes_left: Option<u64>,
    sync_fails: bool,
    power_cut: Option<PowerCut>,
    wreck: Option<Wreck>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct FaultyDisk(Arc<Mutex<Inner>>);

impl FaultyDisk {
    pub(super) fn holding(image: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Inner { content: image.clone(), durable: image, ..Inner::default() })))
    }

    pub(super) fn opener(&self) -> Opener {
        let disk = self.clone();
        Arc::new(move || builder().create_with_backend(disk.clone()))
    }

    /// Bounds the disk; `None` is endless.
    pub(super) fn set_capacity(&self, bytes: Option<u64>) {
        self.0.lock().capacity = bytes;
    }

    /// Lets so many more writes through, as a sparse file does on a disk that fills up; `None` is endless.
    pub(super) fn set_writes_left(&self, writes: Option<u64>) {
        self.0.lock().writes_left = writes;
    }

    pub(super) fn used(&self) -> u64 {
        self.0.lock().content.len() as u64
    }

    pub(super) fn fail_syncs(&self) {
        self.0.lock().sync_fails = true;
    }

    /// Keeps what a power cut after so many operations would leave; the disk itself goes on.
    pub(super) fn cut_power(&self, after: u64, rng: SharedRng, acknowledged: Arc<AtomicI64>, anchor: PathBuf) {
        self.0.lock().power_cut = Some(PowerCut { after_operations: after, rng, acknowledged, anchor });
    }

    pub(super) fn take_wreck(&self) -> Option<Wreck> {
        self.0.lock().wreck.take()
    }

    /// The disk as it would be if the power failed now, with all unsynced writes lost or kept at random.
    pub(super) fn image_after_power_cut(&self, rng: &SharedRng) -> Vec<u8> {
        self.0.lock().image(rng)
    }
}

impl Inner {
    fn record(&mut self, operation: Operation) {
        apply(&mut self.content, &operation, |_| true);
        self.unsynced.push(operation);
        self.count_down();
    }

    fn count_down(&mut self) {
        let Some(cut) = self.power_cut.as_mut() else { return };
        if cut.after_operations > 0 {
            cut.after_operations -= 1;
            return;
        }
        if let Some(cut) = self.power_cut.take() {
            let acknowledged = cut.acknowledged.load(Ordering::SeqCst);
            let anchor = std::fs::read(&cut.anchor).unwrap_or_default();
            self.wreck = Some(Wreck { image: self.image(&cut.rng), acknowledged, anchor });
        }
    }

    fn image(&self, rng: &SharedRng) -> Vec<u8> {
        let mut image = self.durable.clone();
        for operation in &self.unsynced {
            // Some writes arrive whole, some not at all, some in part.
            match rng.below(3) {
                0 => apply(&mut image, operation, |_| true),
                1 => {}
                _ => apply(&mut image, operation, |_| rng.below(2) == 0),
            }
        }
        image
    }
}

fn apply(image: &mut Vec<u8>, operation: &Operation, mut arrives: impl FnMut(usize) -> bool) {
    match operation {
        Operation::Length(length) => image.resize(usize::try_from(*length).expect("a small disk"), 0),
        Operation::Write(offset, data) => {
            let offset = usize::try_from(*offset).expect("a small disk");
            if image.len() < offset + data.len() {
                image.resize(offset + data.len(), 0);
            }
            for (index, sector) in data.chunks(SECTOR_BYTES).enumerate() {
                if arrives(index) {
                    let start = offset + index * SECTOR_BYTES;
                    image[start..start + sector.len()].copy_from_slice(sector);
                }
            }
        }
    }
}

impl redb::StorageBackend for FaultyDisk {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.used())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let inner = self.0.lock();
        let start = usize::try_from(offset).map_err(Error::other)?;
        let found = inner.content.get(start..start + out.len()).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        let mut inner = self.0.lock();
        if inner.capacity.is_some_and(|capacity| len > capacity) {
            return Err(ErrorKind::StorageFull.into());
        }
        inner.record(Operation::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        let mut inner = self.0.lock();
        if inner.sync_fails {
            return Err(Error::other("Input/output error"));
        }
        inner.count_down();
        inner.durable = inner.content.clone();
        inner.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut inner = self.0.lock();
        match inner.writes_left.as_mut() {
            Some(0) => return Err(ErrorKind::StorageFull.into()),
            Some(left) => *left -= 1,
            None => {}
        }
        inner.record(Operation::Write(offset, data.to_vec()));
        Ok(())
    }
}
