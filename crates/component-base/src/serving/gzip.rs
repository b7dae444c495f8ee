//! Compression of bodies: a little at a time, as the client takes it, with turns for others in between.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};

use super::{Body, BoxError};

/// How much is compressed in one go: less than a millisecond's worth.
const PIECE_BYTES: usize = 64 * 1024;
/// How much compressed content is gathered before it is sent.
const FRAME_BYTES: usize = 16 * 1024;

/// A body as its compressed form.
#[must_use]
pub fn compressed(plain: Body) -> Body {
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

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::serving::full;

    #[tokio::test]
    async fn large_answers_are_compressed_a_little_at_a_time() {
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
}
