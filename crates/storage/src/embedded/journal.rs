//! The journal: every commit, in order, in one write and one sync. Two files take turns; when the database has caught
//! up with one of them it is written over from its beginning, which is cheaper to sync than a file that grows.
//!
//! A frame begins at a sector: `mark` (8 bytes) `payload length` (4) `sequence` (8) `digest` (16), then the payload;
//! numbers are big-endian, and zeros fill the last sector. The mark is the store's own and nobody else's to know, so that
//! no value can pass for a frame; the digest is of all before it and the payload ([`Seal`]). Sequences count commits without a gap,
//! so that what is left of an earlier turn is told from what continues the journal. A frame that is broken was never
//! acknowledged if it is the last one; if a later one is whole, the file is damaged.

use super::commit_error::CommitError;
use super::disk::JournalFile;
use super::seal::{DIGEST_BYTES, Mark, Numbers, Seal};

const HEAD_BYTES: usize = size_of::<Mark>() + Numbers::BYTES + DIGEST_BYTES;
/// Disks write this much whole or not at all, so no write endangers a frame before it.
const SECTOR_BYTES: usize = 512;
/// By how much a file grows at a time.
const GROWTH_BYTES: usize = 1 << 20;
/// How many times its usual length a file may become while the database cannot catch up.
const MAX_TIMES: u64 = 8;

/// The journal, open for appending.
#[derive(Debug)]
pub(super) struct Journal {
    files: [Box<dyn JournalFile>; 2],
    /// How long each file is.
    lengths: [u64; 2],
    seal: Seal,
    /// Which of them is being written, and where the next frame goes.
    active: usize,
    offset: u64,
    /// The sequence of the newest commit.
    sequence: u64,
    /// The other file holds nothing that the database lacks.
    other_is_free: bool,
    /// From this length on the database should catch up.
    long_bytes: u64,
}

/// A frame that is whole.
#[derive(Debug, PartialEq, Eq)]
struct Frame<'a> {
    sequence: u64,
    payload: &'a [u8],
    end: usize,
}

/// Why a journal cannot be followed.
#[derive(Debug, thiserror::Error)]
pub(super) enum JournalError {
    #[error("the journal: {0}")]
    Read(std::io::Error),
    #[error("the journal lacks commit {0}")]
    Lacks(u64),
    #[error("the journal has commit {has}, but not {lacks}")]
    Gap { has: u64, lacks: u64 },
}

impl Journal {
    /// Reads what follows the commit with the sequence `after`: the payloads in order.
    ///
    /// # Errors
    /// A description of the damage where a commit is missing.
    pub(super) fn open(
        files: [Box<dyn JournalFile>; 2],
        mark: Mark,
        after: u64,
        long_bytes: u64,
    ) -> Result<(Self, Vec<Vec<u8>>), JournalError> {
        let read = |file: &dyn JournalFile| file.read_all().map_err(JournalError::Read);
        let images = [read(files[0].as_ref())?, read(files[1].as_ref())?];
        let seal = Seal::new(mark);
        let runs = [frames(&images[0], &seal), frames(&images[1], &seal)];
        let mut live: Vec<(usize, &Frame<'_>)> = Vec::new();
        for (half, run) in runs.iter().enumerate() {
            live.extend(run.iter().filter(|frame| frame.sequence > after).map(|frame| (half, frame)));
        }
        live.sort_by_key(|(_, frame)| frame.sequence);
        for ((_, frame), expected) in live.iter().zip(after + 1..) {
            if frame.sequence != expected {
                return Err(JournalError::Lacks(expected));
            }
        }
        let sequence = live.last().map_or(after, |(_, frame)| frame.sequence);
        for (image, run) in images.iter().zip(&runs) {
            let beyond = newest_beyond(image, &seal, run.last().map_or(0, |frame| frame.end));
            if beyond > sequence {
                return Err(JournalError::Gap { has: beyond, lacks: sequence + 1 });
            }
        }
        let (active, offset) = live.last().map_or((0, 0), |(half, frame)| (*half, frame.end as u64));
        let other_is_free = live.iter().all(|(half, _)| *half == active);
        let payloads = live.iter().map(|(_, frame)| frame.payload.to_vec()).collect();
        let lengths = [images[0].len() as u64, images[1].len() as u64];
        Ok((Self { files, lengths, seal, active, offset, sequence, other_is_free, long_bytes }, payloads))
    }

    /// The sequence of the newest commit.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether the database should catch up.
    pub(super) fn is_long(&self) -> bool {
        self.offset >= self.long_bytes
    }

    /// Whether the database must catch up before there is room for more.
    pub(super) fn is_full(&self) -> bool {
        self.offset >= self.long_bytes * MAX_TIMES
    }

    /// Appends a commit and returns when it is durable.
    pub(super) fn append(&mut self, payload: &[u8]) -> Result<(), CommitError> {
        let frame = frame(&self.seal, self.sequence + 1, payload)
            .ok_or_else(|| CommitError::Full("a commit is too large for the journal".to_owned()))?;
        let end = self.offset + frame.len() as u64;
        let (file, length) = (&self.files[self.active], &mut self.lengths[self.active]);
        // Zeros first, many at once: a sync of blocks that were written before changes no metadata.
        while *length < end {
            file.write_all(&vec![0; GROWTH_BYTES], *length)?;
            *length += GROWTH_BYTES as u64;
        }
        file.write_all(&frame, self.offset)?;
        // After a failed sync nobody knows what is on disk, a full one included.
        file.sync().map_err(|error| CommitError::Broken(error.to_string()))?;
        self.offset = end;
        self.sequence += 1;
        Ok(())
    }

    /// The database begins to catch up: what comes now goes to the other file, if that is free.
    pub(super) fn turn(&mut self) {
        if self.other_is_free {
            self.active = 1 - self.active;
            self.offset = 0;
            self.other_is_free = false;
        }
    }

    /// The database has caught up with everything before the last turn.
    pub(super) fn free_other(&mut self) {
        self.other_is_free = true;
    }
}

/// The bytes of a frame; `None` where the payload is too long for one.
fn frame(seal: &Seal, sequence: u64, payload: &[u8]) -> Option<Vec<u8>> {
    let numbers = Numbers { length: u32::try_from(payload.len()).ok()?, sequence };
    let mut bytes = Vec::with_capacity((HEAD_BYTES + payload.len()).next_multiple_of(SECTOR_BYTES));
    bytes.extend_from_slice(&seal.mark());
    bytes.extend_from_slice(&numbers.to_bytes());
    bytes.extend_from_slice(&seal.digest(numbers, payload)?);
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(SECTOR_BYTES), 0);
    Some(bytes)
}

/// The frame at an offset, if there is a whole one.
fn frame_at<'i>(image: &'i [u8], seal: &Seal, offset: usize) -> Option<Frame<'i>> {
    let (head, rest) = image.get(offset..)?.split_at_checked(HEAD_BYTES)?;
    let (numbers, digest) = head.strip_prefix(&seal.mark())?.split_last_chunk::<DIGEST_BYTES>()?;
    let numbers = Numbers::from_bytes(numbers.first_chunk()?);
    let length = usize::try_from(numbers.length).ok()?;
    let payload = rest.get(..length)?;
    let end = offset + (HEAD_BYTES + length).next_multiple_of(SECTOR_BYTES);
    seal.is_whole(numbers, payload, digest).then_some(Frame { sequence: numbers.sequence, payload, end })
}

/// The frames from the beginning of a file on, as far as each continues the one before.
fn frames<'i>(image: &'i [u8], seal: &Seal) -> Vec<Frame<'i>> {
    let mut found: Vec<Frame<'_>> = Vec::new();
    while let Some(frame) = frame_at(image, seal, found.last().map_or(0, |frame| frame.end)) {
        if found.last().is_some_and(|last| frame.sequence != last.sequence + 1) {
            break;
        }
        found.push(frame);
    }
    found
}

/// The newest sequence of a frame behind an offset; 0 where there is none.
fn newest_beyond(image: &[u8], seal: &Seal, offset: usize) -> u64 {
    let starts = (offset..image.len()).step_by(SECTOR_BYTES);
    starts.filter_map(|start| frame_at(image, seal, start)).map(|frame| frame.sequence).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
