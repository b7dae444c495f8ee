//! A second witness of how far the store has come.
//!
//! The database falls back to an older commit when the newest one does not verify. After a crash that is right,
//! because the newest one was never acknowledged; after damage it would silently undo acknowledged writes. This small
//! file is written (not synced) after every durable commit, so it never names a revision that was not durable, and a
//! database that is older than it has lost something.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::directory::open_private;
use crate::{Revision, StorageError};

const ANCHOR_FILE: &str = "revision";

#[derive(Debug)]
pub(super) struct Anchor(File);

impl Anchor {
    /// Opens the file and returns what it says; `None` where it says nothing that can be trusted.
    pub(super) fn open(directory: &Path) -> Result<(Self, Option<Revision>), StorageError> {
        let path = directory.join(ANCHOR_FILE);
        let file = open_private(&path).map_err(|error| StorageError::io("open", &path, &error))?;
        let mut bytes = [0; 16];
        let said = match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => decode(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(StorageError::io("read", &path, &error)),
        };
        Ok((Self(file), said))
    }

    /// Notes a durable revision. A failure is only logged: the file is a check, not the truth.
    pub(super) fn note(&self, revision: Revision) {
        if let Err(error) = self.0.write_all_at(&encode(revision), 0) {
            tracing::debug!(%error, "cannot note the durable revision");
        }
    }
}

fn encode(revision: Revision) -> [u8; 16] {
    let value = revision.0.to_be_bytes();
    let check = checksum(revision).to_be_bytes();
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&value);
    bytes[8..].copy_from_slice(&check);
    bytes
}

fn decode(bytes: [u8; 16]) -> Option<Revision> {
    let number = u128::from_be_bytes(bytes);
    let revision = Revision(i64::from_be_bytes(number.to_be_bytes().first_chunk().copied()?));
    (encode(revision) == bytes).then_some(revision)
}

/// Spreads every bit of the revision over the whole word (the finalizer of splitmix64).
fn checksum(revision: Revision) -> u64 {
    let mut word = revision.0.cast_unsigned() ^ 0x9e37_79b9_7f4a_7c15;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_single_flipped_bit_is_noticed() {
        let good = encode(Revision(123_456_789));
        assert_eq!(decode(good), Some(Revision(123_456_789)));
        for bit in 0..128 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(bad), None, "bit {bit}");
        }
    }
}
