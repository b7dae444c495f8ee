//! The receiving half of a stream or channel: a bounded buffer that the connection fills and its user drains.
//!
//! A full buffer stops the connection's reader, so that TCP pushes back on the sender. A dropped half makes the
//! connection throw that stream's data away.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// Received bytes that may wait in one stream.
pub(crate) const PIPE_BYTES: usize = 64 * 1024;
/// The largest piece of data put into one frame or message.
pub(crate) const PIECE_BYTES: usize = 16 * 1024;

/// Something to read from.
pub type BoxRead = Pin<Box<dyn AsyncRead + Send>>;
/// Something to write to.
pub type BoxWrite = Pin<Box<dyn AsyncWrite + Send>>;

/// How a receiving half ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Ended {
    /// Not yet, or the connection broke.
    No = 0,
    /// The sender said so.
    Finished = 1,
    /// The sender gave the stream up; what was received before is still readable.
    Reset = 2,
}

/// Shared knowledge of how a stream ended.
#[derive(Debug, Default)]
pub(crate) struct End(AtomicU8);

impl End {
    /// Notes how the stream ended; the first note stays, except that a reset overrides.
    pub(crate) fn note(&self, how: Ended) {
        self.0.fetch_max(how as u8, Ordering::AcqRel);
    }

    pub(crate) fn how(&self) -> Ended {
        match self.0.load(Ordering::Acquire) {
            0 => Ended::No,
            1 => Ended::Finished,
            _ => Ended::Reset,
        }
    }
}

/// Reads what the peer sent. Ends with an error when the connection broke before the peer ended the stream.
#[derive(Debug)]
pub struct PipeReader {
    input: DuplexStream,
    end: Arc<End>,
}

/// A reader and the end that the connection fills.
pub(crate) fn pipe(end: &Arc<End>) -> (PipeReader, DuplexStream) {
    let (input, fill) = tokio::io::duplex(PIPE_BYTES);
    (PipeReader { input, end: Arc::clone(end) }, fill)
}

impl AsyncRead for PipeReader {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.input).poll_read(cx, buffer))?;
        let ended = buffer.filled().len() == before && buffer.remaining() > 0;
        if ended && self.end.how() == Ended::No {
            let text = "the connection was lost before the stream ended";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, text)));
        }
        Poll::Ready(Ok(()))
    }
}
