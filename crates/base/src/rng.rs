//! Randomness as a dependency: seeded in tests, from the operating system in production.

use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// A shared source of random numbers. Not for keys: those come from the crypto library.
#[derive(Debug)]
pub struct Rng(Mutex<StdRng>);

/// A random source that many tasks share.
pub type SharedRng = Arc<Rng>;

impl Rng {
    /// A source seeded by the operating system.
    #[must_use]
    pub fn from_os() -> SharedRng {
        Arc::new(Self(Mutex::new(StdRng::from_rng(&mut rand::rng()))))
    }

    /// A source that yields the same numbers for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> SharedRng {
        Arc::new(Self(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// A number in `0..bound`; 0 where `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.0.lock().random_range(0..bound) }
    }

    /// A number in `0.0..1.0`.
    pub fn unit(&self) -> f64 {
        self.0.lock().random()
    }

    /// Fills `buffer` with random bytes.
    pub fn fill(&self, buffer: &mut [u8]) {
        self.0.lock().fill(buffer);
    }

    /// A random version 4 UUID in its usual text form, as object uids are.
    pub fn uuid(&self) -> String {
        let mut bytes = [0_u8; 16];
        self.fill(&mut bytes);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let mut text = String::with_capacity(36);
        for (at, byte) in bytes.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            text.extend([byte >> 4, byte & 0x0f].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays() {
        let (one, two) = (Rng::seeded(7), Rng::seeded(7));
        assert_eq!(one.uuid(), two.uuid());
        assert_ne!(one.uuid(), Rng::seeded(8).uuid());
    }

    #[test]
    fn uuids_have_version_and_variant() {
        let uuid = Rng::seeded(1).uuid();
        assert_eq!((uuid.len(), uuid.as_bytes()[14]), (36, b'4'));
        assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'));
    }
}
