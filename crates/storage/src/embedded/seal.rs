//! What tells a frame of the journal that is whole from one that is not.
//!
//! The digest is the tag of AES-GCM over the payload, under the store's mark as the key and the frame's numbers as the nonce:
//! nothing has to be kept secret from anybody, but of what processors do in hardware nothing else is as fast. Until format 2
//! of the store it was half a SHA-256, some thirty times the instructions on a processor without any for that.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest;

/// What a store's frames begin with; random.
pub(super) type Mark = [u8; 8];

pub(super) const DIGEST_BYTES: usize = 16;

/// The numbers of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    /// Bytes of the payload.
    pub(super) length: u32,
    pub(super) sequence: u64,
}

impl Numbers {
    pub(super) const BYTES: usize = 12;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (length, sequence) = bytes.split_at_mut(4);
        length.copy_from_slice(&self.length.to_be_bytes());
        sequence.copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let [a, b, c, d, sequence @ ..] = *bytes;
        Self { length: u32::from_be_bytes([a, b, c, d]), sequence: u64::from_be_bytes(sequence) }
    }
}

/// Makes and checks the digests of a store.
#[derive(Debug)]
pub(super) struct Seal {
    mark: Mark,
    /// Nothing only where the library does not know its own keys.
    key: Option<LessSafeKey>,
}

impl Seal {
    pub(super) fn new(mark: Mark) -> Self {
        let key = UnboundKey::new(&AES_128_GCM, &[mark, mark].concat());
        Self { mark, key: key.ok().map(LessSafeKey::new) }
    }

    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    /// The digest of a frame.
    pub(super) fn digest(&self, numbers: Numbers, payload: &[u8]) -> Option<[u8; DIGEST_BYTES]> {
        let nonce = Nonce::assume_unique_for_key(numbers.to_bytes());
        let tag = self.key.as_ref()?.seal_in_place_separate_tag(nonce, Aad::from(payload), &mut []).ok()?;
        tag.as_ref().try_into().ok()
    }

    /// Whether the digest is that of the frame.
    pub(super) fn is_whole(&self, numbers: Numbers, payload: &[u8], digest: &[u8; DIGEST_BYTES]) -> bool {
        self.digest(numbers, payload).as_ref() == Some(digest) || self.former_digest(numbers, payload) == *digest
    }

    /// The digest as it was until format 2.
    pub(super) fn former_digest(&self, numbers: Numbers, payload: &[u8]) -> [u8; DIGEST_BYTES] {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in [&self.mark, numbers.to_bytes().as_slice(), payload] {
            context.update(part);
        }
        let mut short = [0; DIGEST_BYTES];
        short.copy_from_slice(&context.finish().as_ref()[..DIGEST_BYTES]);
        short
    }
}
