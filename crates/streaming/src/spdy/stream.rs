//! One stream: reads what the peer sends, writes what it shall get, ends each direction on its own.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::OwnedPermit;
use tokio_util::sync::PollSender;

use super::connection::Connection;
use super::frame::CANCEL;
use super::writer::Outgoing;
use crate::pipe::{End, Ended, PIECE_BYTES, PipeReader};

/// Both directions of a stream. Dropping it ends our direction in good order and throws away what still arrives.
#[derive(Debug)]
pub struct Stream {
    reader: PipeReader,
    writer: StreamWriter,
}

/// The sending direction of a stream. `shutdown` ends it (half close), and so does dropping it.
#[derive(Debug)]
pub struct StreamWriter {
    id: u32,
    out: PollSender<Outgoing>,
    /// A place in the queue kept from the start, so that ending a stream never waits.
    end_place: Option<OwnedPermit<Outgoing>>,
    end: Arc<End>,
    connection: Connection,
}

impl Stream {
    pub(super) fn new(
        id: u32,
        reader: PipeReader,
        end: Arc<End>,
        end_place: OwnedPermit<Outgoing>,
        connection: Connection,
    ) -> Self {
        let out = PollSender::new(connection.out.clone());
        Self { reader, writer: StreamWriter { id, out, end_place: Some(end_place), end, connection } }
    }

    /// The stream's id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.writer.id
    }

    /// The two directions apart.
    #[must_use]
    pub fn into_split(self) -> (PipeReader, StreamWriter) {
        (self.reader, self.writer)
    }

    /// Gives the stream up in both directions, after what was written so far.
    pub fn reset(self) {
        self.writer.reset();
    }
}

impl StreamWriter {
    /// Gives the stream up in both directions, after what was written so far.
    pub fn reset(mut self) {
        if let Some(place) = self.end_place.take() {
            place.send(Outgoing::Reset { stream: self.id, status: CANCEL });
        }
        self.connection.shared.remove(self.id);
    }

    fn finish(&mut self) {
        if let Some(place) = self.end_place.take() {
            if self.end.how() != Ended::Reset {
                place.send(Outgoing::Fin { stream: self.id });
            }
            self.connection.shared.local_done(self.id);
        }
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        self.finish();
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the stream or its connection has ended")
}

impl AsyncWrite for StreamWriter {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if self.end_place.is_none() || self.end.how() == Ended::Reset {
            return Poll::Ready(Err(broken()));
        }
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        ready!(self.out.poll_reserve(cx)).map_err(|_| broken())?;
        let piece = Bytes::copy_from_slice(data.get(..PIECE_BYTES).unwrap_or(data));
        let written = piece.len();
        let stream = self.id;
        self.out.send_item(Outgoing::Data { stream, data: piece }).map_err(|_| broken())?;
        Poll::Ready(Ok(written))
    }

    /// Nothing to do: the connection writes what is queued as soon as it can.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(cx)
    }
}
