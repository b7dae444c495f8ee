//! A WebSocket connection as a plain byte stream: every binary message is a piece, boundaries mean nothing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use futures_util::{Sink as _, Stream as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{self, Message};

use super::limits;

/// The largest message that is written.
const MAX_PIECE_BYTES: usize = 32 * 1024;

/// The bytes inside a WebSocket connection whose handshake is done.
#[derive(Debug)]
pub struct WebSocketIo<Io> {
    socket: WebSocketStream<Io>,
    rest: Bytes,
    closing: bool,
}

impl<Io: AsyncRead + AsyncWrite + Unpin> WebSocketIo<Io> {
    /// The server's side of a tunnel.
    pub async fn server(io: Io) -> Self {
        Self::new(io, Role::Server).await
    }

    /// The client's side of a tunnel.
    pub async fn client(io: Io) -> Self {
        Self::new(io, Role::Client).await
    }

    async fn new(io: Io, role: Role) -> Self {
        let socket = WebSocketStream::from_raw_socket(io, role, Some(limits())).await;
        Self { socket, rest: Bytes::new(), closing: false }
    }
}

fn io_error(error: tungstenite::Error) -> io::Error {
    match error {
        tungstenite::Error::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncRead for WebSocketIo<Io> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => self.rest = bytes,
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Text(_))) => {
                    let text = "unexpected text message in a tunnel";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
                }
                None | Some(Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed)) => {
                    return Poll::Ready(Ok(()));
                }
                Some(Err(error)) => return Poll::Ready(Err(io_error(error))),
            }
        }
        let take = self.rest.len().min(buffer.remaining());
        let piece = self.rest.split_to(take);
        buffer.put_slice(piece.chunk());
        Poll::Ready(Ok(()))
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WebSocketIo<Io> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if self.closing {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(io_error)?;
        let piece = Bytes::copy_from_slice(data.get(..MAX_PIECE_BYTES).unwrap_or(data));
        let written = piece.len();
        Pin::new(&mut self.socket).start_send(Message::Binary(piece)).map_err(io_error)?;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx).map_err(io_error)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closing {
            ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(io_error)?;
            let close = CloseFrame { code: CloseCode::Normal, reason: "".into() };
            Pin::new(&mut self.socket).start_send(Message::Close(Some(close))).map_err(io_error)?;
            self.closing = true;
        }
        match ready!(Pin::new(&mut self.socket).poll_flush(cx)) {
            Ok(()) | Err(tungstenite::Error::ConnectionClosed) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(io_error(error))),
        }
    }
}
