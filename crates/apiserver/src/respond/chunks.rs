//! The body of a large answer whose pieces exist already: they are joined while they are sent, not before.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use component_base::serving::BoxError;
use http_body::{Frame, SizeHint};

/// How much is joined into one frame; small frames cost more than copying.
const FRAME_BYTES: usize = 64 * 1024;

/// Pieces in order.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    pieces: VecDeque<Bytes>,
    left_bytes: u64,
}

impl Chunks {
    pub(crate) fn push(&mut self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        self.left_bytes += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.pieces.push_back(piece);
    }

    /// Adds all of another's pieces.
    pub(crate) fn append(&mut self, other: Self) {
        self.left_bytes += other.left_bytes;
        self.pieces.extend(other.pieces);
    }

    /// Everything in one piece.
    pub(crate) fn join(self) -> Bytes {
        let mut out = BytesMut::with_capacity(usize::try_from(self.left_bytes).unwrap_or(0));
        self.pieces.iter().for_each(|piece| out.extend_from_slice(piece));
        out.freeze()
    }

    pub(crate) fn len(&self) -> u64 {
        self.left_bytes
    }

    fn next_frame(&mut self) -> Option<Bytes> {
        let first = self.pieces.pop_front()?;
        let mut frame = if first.len() >= FRAME_BYTES || self.pieces.is_empty() {
            first
        } else {
            let mut joined = BytesMut::with_capacity(FRAME_BYTES);
            joined.extend_from_slice(&first);
            while let Some(next) = self.pieces.front()
                && joined.len() + next.len() <= FRAME_BYTES
            {
                joined.extend_from_slice(next);
                self.pieces.pop_front();
            }
            joined.freeze()
        };
        if frame.len() > FRAME_BYTES {
            let rest = frame.split_off(FRAME_BYTES);
            self.pieces.push_front(rest);
        }
        self.left_bytes = self.left_bytes.saturating_sub(u64::try_from(frame.len()).unwrap_or(0));
        Some(frame)
    }
}

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.next_frame().map(|frame| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left_bytes)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn pieces_are_joined_and_cut() {
        let mut chunks = Chunks::default();
        let sizes = [10, 20, FRAME_BYTES * 2 + 5, 7];
        for size in sizes {
            chunks.push(vec![b'x'; size]);
        }
        let total = sizes.iter().sum::<usize>();
        assert_eq!(chunks.len(), total as u64);
        let mut frames = Vec::new();
        while let Some(frame) = chunks.frame().await {
            frames.push(frame.unwrap().into_data().unwrap().len());
        }
        assert_eq!(frames, [30, FRAME_BYTES, FRAME_BYTES, 12]);
    }
}
