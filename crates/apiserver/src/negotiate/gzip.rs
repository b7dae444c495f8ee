//! Compression of large answers.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Answers up to this size are sent as they are.
const THRESHOLD_BYTES: usize = 128 * 1024;

/// The compressed form of a large answer; nothing for a small one.
pub(crate) fn compress(content: &[u8]) -> Option<Bytes> {
    if content.len() <= THRESHOLD_BYTES {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(content.len() / 8), Compression::fast());
    encoder.write_all(content).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn only_large_answers_are_compressed() {
        assert!(compress(&vec![b'a'; THRESHOLD_BYTES]).is_none());
        let content = vec![b'a'; THRESHOLD_BYTES + 1];
        let small = compress(&content).unwrap();
        assert!(small.len() < 2048);
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&small[..]).read_to_end(&mut back).unwrap();
        assert_eq!(back, content);
    }
}
