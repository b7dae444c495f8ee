//! Encodings of objects at rest, as small as they get without costing their readers much: each is kept as what sets it
//! apart from one before it in key order. Objects of one owner differ in little and follow each other.
//!
//! The format is LZ4's block format, with that other encoding as the dictionary.

use std::sync::Arc;

use lz4_flex::block::{compress_with_dict, decompress_with_dict};

/// What is larger is kept as it is: the format looks back no further.
const LARGEST: usize = 64 << 10;
/// What does not get smaller by this factor is not like the one before it, and a better one for those that follow.
const WORTHWHILE: usize = 2;

/// An encoding that is kept for long. Clones share it.
#[derive(Clone)]
pub(crate) enum Packed {
    /// All of it.
    Whole(Arc<[u8]>),
    /// What another one lacks, and how long it is.
    Like { other: Arc<[u8]>, rest: Arc<[u8]>, length: usize },
}

impl Packed {
    /// The encoding.
    pub(crate) fn unpack(&self) -> Vec<u8> {
        match self {
            Self::Whole(bytes) => bytes.to_vec(),
            Self::Like { other, rest, length } => {
                decompress_with_dict(rest, *length, other).expect("invariant: it was packed with the same other one")
            }
        }
    }
}

/// Packs encodings one after the other.
#[derive(Default)]
pub(crate) struct Packer {
    like: Option<Arc<[u8]>>,
}

impl Packer {
    pub(crate) fn pack(&mut self, bytes: &[u8]) -> Packed {
        if bytes.len() > LARGEST {
            return Packed::Whole(bytes.into());
        }
        if let Some(other) = &self.like {
            let rest = compress_with_dict(bytes, other);
            if rest.len() * WORTHWHILE <= bytes.len() {
                return Packed::Like { other: Arc::clone(other), rest: rest.into(), length: bytes.len() };
            }
        }
        let whole: Arc<[u8]> = bytes.into();
        self.like = Some(Arc::clone(&whole));
        Packed::Whole(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, of: usize) -> Vec<u8> {
        let fields = (0..of).map(|field| format!("field-{field}={};", field * 7919 % 1009));
        format!("{name};{}", fields.collect::<String>()).into_bytes()
    }

    fn is_whole(packed: &Packed) -> bool {
        matches!(packed, Packed::Whole(_))
    }

    /// Lengths around the format's own limits, and what looks like nothing before it.
    #[test]
    fn every_encoding_comes_back() {
        let mut packer = Packer::default();
        let mut encodings: Vec<Vec<u8>> = (0..70).map(|length| text("a", 10)[..length].to_vec()).collect();
        encodings.extend((0..20).map(|number| text(&format!("pod-{number}"), 200)));
        encodings.extend([LARGEST - 1, LARGEST, LARGEST + 1, 3 * LARGEST].map(|length| vec![b'x'; length]));
        encodings.extend((0..3).map(|number| text(&format!("large-{number}"), 4_000)));
        let packed: Vec<Packed> = encodings.iter().map(|bytes| packer.pack(bytes)).collect();
        for (bytes, packed) in encodings.iter().zip(&packed) {
            assert_eq!(packed.unpack(), *bytes);
        }
    }

    #[test]
    fn what_is_like_the_one_before_takes_little() {
        let mut packer = Packer::default();
        assert!(is_whole(&packer.pack(&text("pod-1", 200))));
        for number in 2..9 {
            let bytes = text(&format!("pod-{number}"), 200);
            let Packed::Like { rest, .. } = packer.pack(&bytes) else { panic!("pod-{number} is like the one before") };
            assert!(rest.len() * 20 < bytes.len(), "{} of {}", rest.len(), bytes.len());
        }
        // Squares modulo a prime: nothing of it comes twice.
        let other_kind: Vec<u8> = (0..120_u16).map(|n| (n * n % 251).to_le_bytes()[0]).collect();
        assert!(is_whole(&packer.pack(&other_kind)), "there is nothing of it in the one before");
        assert!(is_whole(&packer.pack(&vec![0; LARGEST + 1])));
        let Packed::Like { other, .. } = packer.pack(&other_kind) else { panic!("it is like the last one") };
        assert_eq!(*other, other_kind);
    }
}
