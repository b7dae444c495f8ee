//! HMAC-SHA256 with a random key of this process, for cache keys: secrets are never kept in the clear, and nobody outside can
//! compute which of them collide.

use aws_lc_rs::hmac;
use base::Rng;

const KEY_BYTES: usize = 32;

/// A keyed hash function.
pub struct KeyedDigest {
    key: hmac::Key,
}

impl std::fmt::Debug for KeyedDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyedDigest").finish_non_exhaustive()
    }
}

impl KeyedDigest {
    /// A function with a fresh random key.
    #[must_use]
    pub fn new(rng: &Rng) -> Self {
        let mut bytes = [0; KEY_BYTES];
        rng.fill(&mut bytes);
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &bytes) }
    }

    /// The digest of a list of parts; each part's length counts, so moving bytes between parts changes the result.
    #[must_use]
    pub fn of<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(&part.len().to_be_bytes());
            context.update(part);
        }
        let mut out = [0; 32];
        for (to, from) in out.iter_mut().zip(context.sign().as_ref()) {
            *to = *from;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_key_matter() {
        let one = KeyedDigest::new(&Rng::seeded(1));
        let digest = |parts: &[&str]| one.of(parts.iter().map(|part| part.as_bytes()));
        assert_eq!(digest(&["a", "b"]), digest(&["a", "b"]));
        assert_ne!(digest(&["ab", ""]), digest(&["a", "b"]));
        assert_ne!(KeyedDigest::new(&Rng::seeded(2)).of([&b"a"[..]]), one.of([&b"a"[..]]));
    }
}
