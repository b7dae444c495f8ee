//! Compression of large answers.

use std::io::{Read as _, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
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

/// Content of which only the compressed form is kept.
#[derive(Clone)]
pub(crate) struct Compressed {
    packed: Bytes,
    plain_bytes: usize,
}

impl Compressed {
    pub(crate) fn new(content: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::with_capacity(content.len() / 8), Compression::default());
        let packed = encoder.write_all(content).and_then(|()| encoder.finish());
        Self { packed: packed.unwrap_or_default().into(), plain_bytes: content.len() }
    }

    /// The compressed form.
    pub(crate) fn packed(&self) -> Bytes {
        self.packed.clone()
    }

    /// The content.
    ///
    /// # Errors
    /// The compressed form is damaged, which it never is.
    pub(crate) fn plain(&self) -> std::io::Result<Bytes> {
        let mut content = Vec::with_capacity(self.plain_bytes);
        GzDecoder::new(self.packed.as_ref()).read_to_end(&mut content)?;
        Ok(content.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_answers_are_compressed() {
        assert!(compress(&vec![b'a'; THRESHOLD_BYTES]).is_none());
        let content = vec![b'a'; THRESHOLD_BYTES + 1];
        let small = compress(&content).unwrap();
        assert!(small.len() < 2048);
        let mut back = Vec::new();
        GzDecoder::new(&small[..]).read_to_end(&mut back).unwrap();
        assert_eq!(back, content);
    }

    #[test]
    fn what_is_kept_compressed_comes_back() {
        for content in [&b""[..], b"a", &[b'a'; 4096]] {
            let kept = Compressed::new(content);
            assert_eq!(kept.plain().unwrap(), content);
        }
        assert!(Compressed::new(&[b'a'; 4096]).packed().len() < 100);
    }
}
