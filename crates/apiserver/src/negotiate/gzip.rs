//! Compression of large answers: a little at a time, as the client takes it, with turns for others in between. Go's
//! clients always ask for it, and a list of a large cluster takes seconds.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use component_base::serving::{Body, BoxError};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use parking_lot::Mutex;

/// Answers up to this size are sent as they are.
const THRESHOLD_BYTES: u64 = 128 * 1024;

/// How much is compressed in one go: less than a millisecond's worth.
const PIECE_BYTES: usize = 64 * 1024;
/// How much compressed content is gathered before it is sent.
const FRAME_BYTES: usize = 16 * 1024;

/// Whether an answer of this size is worth it.
pub(crate) fn is_worth_compressing(bytes: u64) -> bool {
    bytes > THRESHOLD_BYTES
}

/// A body as its compressed form.
pub(crate) fn compressed(plain: Body) -> Body {
    let state = Compressing {
        plain,
        input: Bytes::new(),
        encoder: GzEncoder::new(Vec::with_capacity(FRAME_BYTES + PIECE_BYTES), Compression::fast()),
    };
    let frames = stream::unfold(Some(state), |state| async {
        let mut state = state?;
        match state.next().await {
            Ok(Some(bytes)) => Some((Ok(Frame::data(bytes)), Some(state))),
            Ok(None) => Some((state.end().map(Frame::data), None)),
            Err(error) => Some((Err(error), None)),
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// A body that is being compressed.
struct Compressing {
    plain: Body,
    /// What of it was not looked at yet.
    input: Bytes,
    encoder: GzEncoder<Vec<u8>>,
}

impl Compressing {
    /// The next frame; nothing at the end of the body.
    async fn next(&mut self) -> Result<Option<Bytes>, BoxError> {
        while self.encoder.get_ref().len() < FRAME_BYTES {
            if self.input.is_empty() {
                let Some(frame) = self.plain.frame().await else { return Ok(None) };
                self.input = frame?.into_data().unwrap_or_default();
            }
            let piece = self.input.split_to(self.input.len().min(PIECE_BYTES));
            self.encoder.write_all(&piece)?;
            tokio::task::yield_now().await;
        }
        Ok(Some(std::mem::take(self.encoder.get_mut()).into()))
    }

    fn end(mut self) -> Result<Bytes, BoxError> {
        self.encoder.try_finish()?;
        Ok(std::mem::take(self.encoder.get_mut()).into())
    }
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
    use component_base::serving::full;

    use super::*;

    #[tokio::test]
    async fn large_answers_are_compressed_a_little_at_a_time() {
        assert!(!is_worth_compressing(THRESHOLD_BYTES) && is_worth_compressing(THRESHOLD_BYTES + 1));
        let content: Vec<u8> =
            (0..8_u32 << 20).map(|number| if number % 7 == 0 { 0 } else { number.to_le_bytes()[1] }).collect();
        let mut packing = Box::pin(compressed(full(content.clone())).collect());
        let mut turns = 0;
        let packed = std::future::poll_fn(|cx| {
            turns += 1;
            packing.as_mut().poll(cx)
        });
        let packed = packed.await.unwrap().to_bytes();
        assert!(turns > content.len() / PIECE_BYTES, "others had {turns} turns");
        assert!(packed.len() < content.len() / 2);
        let mut back = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut back).unwrap();
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

    #[test]
    fn content_is_unpacked_once_for_all_who_read_it() {
        let kept = Compressed::new(&[b'a'; 4096]);
        let (one, other) = (kept.plain().unwrap(), kept.clone().plain().unwrap());
        assert_eq!(one.as_ptr(), other.as_ptr());
        drop((one, other));
        assert!(kept.in_use.lock().upgrade().is_none(), "nobody reads it any more");
    }
}
