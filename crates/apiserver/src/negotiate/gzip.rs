//! Which answers are compressed, and content that is kept so. Go's clients always ask for compression, and a list of a large
//! cluster takes seconds.

use std::io::{BufWriter, Read as _, Write};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use parking_lot::Mutex;

use crate::digest::Digesting;

/// Answers up to this size are sent as they are.
const THRESHOLD_BYTES: u64 = 128 * 1024;

/// Whether an answer of this size is worth it.
pub(crate) fn is_worth_compressing(bytes: u64) -> bool {
    bytes > THRESHOLD_BYTES
}

/// Content of which only the compressed form is kept, and the content itself while somebody is being sent it.
#[derive(Clone)]
pub(crate) struct Compressed {
    packed: Bytes,
    plain_bytes: usize,
    in_use: Arc<Mutex<Weak<Vec<u8>>>>,
}

/// Content that all who are sent it share.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Compressed {
    pub(crate) fn new(content: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::with_capacity(content.len() / 8), Compression::default());
        let packed = encoder.write_all(content).and_then(|()| encoder.finish());
        Self { packed: packed.unwrap_or_default().into(), plain_bytes: content.len(), in_use: Arc::default() }
    }

    /// Content that is there piece by piece only, and its tag.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn with_tag(
        write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> std::io::Result<(Self, String)> {
        // Pieces may be as short as a comma.
        let mut out = BufWriter::new(Digesting::new(GzEncoder::new(Vec::new(), Compression::default())));
        write(&mut out)?;
        let (encoder, tag, plain_bytes) = out.into_inner()?.finish();
        let mut packed = encoder.finish()?;
        packed.shrink_to_fit();
        Ok((Self { packed: packed.into(), plain_bytes, in_use: Arc::default() }, tag))
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
        // Held while unpacking: whoever comes meanwhile wants the same.
        let mut in_use = self.in_use.lock();
        if let Some(content) = in_use.upgrade() {
            return Ok(Bytes::from_owner(Shared(content)));
        }
        let mut content = Vec::with_capacity(self.plain_bytes);
        GzDecoder::new(self.packed.as_ref()).read_to_end(&mut content)?;
        let content = Arc::new(content);
        *in_use = Arc::downgrade(&content);
        Ok(Bytes::from_owner(Shared(content)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_answers_are_sent_as_they_are() {
        assert!(!is_worth_compressing(THRESHOLD_BYTES) && is_worth_compressing(THRESHOLD_BYTES + 1));
    }

    #[test]
    fn what_is_kept_compressed_comes_back() {
        for content in [&b""[..], b"a", &[b'a'; 4096]] {
            let kept = Compressed::new(content);
            assert_eq!(kept.plain().unwrap(), content);
        }
        assert!(Compressed::new(&[b'a'; 4096]).packed().len() < 100);
    }

    #[test]
    fn content_is_unpacked_once_for_all_who_read_it() {
        let kept = Compressed::new(&[b'a'; 4096]);
        let (one, other) = (kept.plain().unwrap(), kept.clone().plain().unwrap());
        assert_eq!(one.as_ptr(), other.as_ptr());
        drop((one, other));
        assert!(kept.in_use.lock().upgrade().is_none(), "nobody reads it any more");
    }
}
