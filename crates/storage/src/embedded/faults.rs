//! A disk in memory that fills up, fails to sync and loses power, for tests. It holds a store's three files.

use std::io::{Error, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base::SharedRng;
use parking_lot::Mutex;

use super::disk::{Disk, JournalFile, builder};

/// Power may fail between any two of these.
const SECTOR_BYTES: usize = 512;

#[derive(Debug, Clone)]
enum Operation {
    Length(u64),
    Write(u64, Vec<u8>),
}

/// What was left when the power failed.
#[derive(Debug)]
pub struct Wreck {
    /// The files.
    pub images: Images,
    /// The newest revision that had been acknowledged.
    pub acknowledged: i64,
    /// The witness file.
    pub anchor: Vec<u8>,
}

#[derive(Debug)]
struct PowerCut {
    after_operations: u64,
    rng: SharedRng,
    acknowledged: Arc<AtomicI64>,
    anchor: PathBuf,
}

/// The database and the two halves of the journal.
pub type Images = [Vec<u8>; 3];

const DATABASE: usize = 0;

#[derive(Debug, Default)]
struct Medium {
    content: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Operation>,
}

#[derive(Debug, Default)]
struct Inner {
    files: [Medium; 3],
    capacity: Option<u64>,
    /// How many more writes fit; `None` is endless.
    writes_left: Option<u64>,
    sync_fails: bool,
    power_cut: Option<PowerCut>,
    wreck: Option<Wreck>,
}

/// The disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct FaultyDisk(Arc<Mutex<Inner>>);

impl FaultyDisk {
    /// A disk with these files.
    #[must_use]
    pub fn holding(images: Images) -> Self {
        let files = images.map(|image| Medium { content: image.clone(), durable: image, unsynced: Vec::new() });
        Self(Arc::new(Mutex::new(Inner { files, ..Inner::default() })))
    }

    fn file(&self, number: usize) -> FaultyFile {
        FaultyFile { disk: self.clone(), number }
    }

    /// Bounds the disk; `None` is endless.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.0.lock().capacity = bytes;
    }

    /// Lets so many more writes through, as a sparse file does on a disk that fills up; `None` is endless.
    pub fn set_writes_left(&self, writes: Option<u64>) {
        self.0.lock().writes_left = writes;
    }

    /// How many bytes the files have.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0.lock().used()
    }

    /// From now on nothing can be brought to stable storage any more.
    pub fn fail_syncs(&self) {
        self.0.lock().sync_fails = true;
    }

    /// Keeps what a power cut after so many operations would leave; the disk itself goes on.
    pub fn cut_power(&self, after: u64, rng: SharedRng, acknowledged: Arc<AtomicI64>, anchor: PathBuf) {
        self.0.lock().power_cut = Some(PowerCut { after_operations: after, rng, acknowledged, anchor });
    }

    /// What the power cut left, once it has happened.
    #[must_use]
    pub fn take_wreck(&self) -> Option<Wreck> {
        self.0.lock().wreck.take()
    }

    /// The disk as it would be if the power failed now, with all unsynced writes lost or kept at random.
    #[must_use]
    pub fn images_after_power_cut(&self, rng: &SharedRng) -> Images {
        self.0.lock().images(rng)
    }
}

impl Inner {
    fn used(&self) -> u64 {
        self.files.iter().map(|file| file.content.len() as u64).sum()
    }

    /// Refuses a file's growth beyond the disk.
    fn check_room(&self, number: usize, length: u64) -> Result<(), Error> {
        let growth = length.saturating_sub(self.files[number].content.len() as u64);
        match self.capacity.is_some_and(|capacity| growth > 0 && self.used() + growth > capacity) {
            true => Err(ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn record(&mut self, number: usize, operation: Operation) {
        let file = &mut self.files[number];
        apply(&mut file.content, &operation, |_| true);
        file.unsynced.push(operation);
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
            self.wreck = Some(Wreck { images: self.images(&cut.rng), acknowledged, anchor });
        }
    }

    fn images(&self, rng: &SharedRng) -> Images {
        self.files.each_ref().map(|file| file.image(rng))
    }
}

impl Medium {
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

/// One file of the disk.
#[derive(Debug)]
struct FaultyFile {
    disk: FaultyDisk,
    number: usize,
}

impl FaultyFile {
    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut inner = self.disk.0.lock();
        match inner.writes_left.as_mut() {
            Some(0) => return Err(ErrorKind::StorageFull.into()),
            Some(left) => *left -= 1,
            None => {}
        }
        inner.check_room(self.number, offset + data.len() as u64)?;
        inner.record(self.number, Operation::Write(offset, data.to_vec()));
        Ok(())
    }

    fn sync(&self) -> Result<(), Error> {
        let mut inner = self.disk.0.lock();
        if inner.sync_fails {
            return Err(Error::other("Input/output error"));
        }
        inner.count_down();
        let file = &mut inner.files[self.number];
        file.durable = file.content.clone();
        file.unsynced.clear();
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn database(&self) -> Result<redb::Database, redb::DatabaseError> {
        builder().create_with_backend(self.file(DATABASE))
    }

    fn journal(&self, half: usize) -> Result<Box<dyn JournalFile>, Error> {
        Ok(Box::new(self.file(DATABASE + 1 + half)))
    }
}

impl JournalFile for FaultyFile {
    fn read_all(&self) -> Result<Vec<u8>, Error> {
        Ok(self.disk.0.lock().files[self.number].content.clone())
    }

    fn write_all(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        self.write(offset, bytes)
    }

    fn sync(&self) -> Result<(), Error> {
        self.sync()
    }
}

impl redb::StorageBackend for FaultyFile {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.disk.0.lock().files[self.number].content.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let inner = self.disk.0.lock();
        let start = usize::try_from(offset).map_err(Error::other)?;
        let found = inner.files[self.number].content.get(start..start + out.len()).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        let mut inner = self.disk.0.lock();
        inner.check_room(self.number, len)?;
        inner.record(self.number, Operation::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.write(offset, data)
    }
}
