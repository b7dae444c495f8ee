//! Logs over a WebSocket: an empty message, then the log in small pieces, then a normal close.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::Request;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio_tungstenite::tungstenite::Message;

use crate::handshake::{Accepted, PendingUpgrade, Refusal, accept_websocket};
use crate::one_way::send_all;
use crate::protocol::{Protocol, Subprotocol};
use crate::websocket::{Encoding, WebSocketError};

/// The largest piece of a log in one message.
const PIECE_BYTES: usize = 2_048;

/// What a log stream can be sent as.
const SERVED: [Subprotocol; 3] = [
    Subprotocol { name: "", encoding: Encoding::Binary, protocol: Protocol::V1 },
    Subprotocol { name: "binary.k8s.io", encoding: Encoding::Binary, protocol: Protocol::V1 },
    Subprotocol { name: "base64.binary.k8s.io", encoding: Encoding::Base64, protocol: Protocol::V1 },
];

/// Chooses how to send a log to a WebSocket client.
///
/// # Errors
/// The answer to send when the request cannot be upgraded.
pub fn accept_log_stream<B>(request: &mut Request<B>) -> Result<Accepted<Encoding>, Refusal> {
    let (response, chosen) = accept_websocket(request, &SERVED)?;
    Ok(Accepted { response, dialect: chosen.encoding, upgrade: PendingUpgrade::of(request) })
}

/// Sends a log to its end, or until the client goes away.
///
/// # Errors
/// When the log cannot be read or the connection fails.
pub async fn send_log<Io, R>(io: Io, encoding: Encoding, log: R) -> Result<(), WebSocketError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
    R: AsyncRead + Unpin,
{
    let message = |data: &[u8]| match encoding {
        Encoding::Binary => Message::Binary(Bytes::copy_from_slice(data)),
        Encoding::Base64 => Message::Text(STANDARD.encode(data).into()),
    };
    let start = stream::once(async move { Ok(message(&[])) });
    let pieces = stream::unfold((log, vec![0; PIECE_BYTES]), |(mut log, mut piece)| async move {
        match log.read(&mut piece).await {
            Ok(0) => None,
            Ok(read) => Some((Ok(message(piece.get(..read).unwrap_or_default())), (log, piece))),
            Err(error) => Some((Err(error), (log, piece))),
        }
    });
    send_all(io, start.chain(pieces)).await
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    async fn received(encoding: Encoding) -> Vec<Message> {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let log = vec![b'x'; 3_000];
        let client = async {
            let mut socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
            let mut messages = Vec::new();
            while let Some(Ok(message)) = socket.next().await {
                messages.push(message);
            }
            messages
        };
        let (messages, sent) = tokio::join!(client, send_log(far, encoding, &log[..]));
        sent.unwrap();
        messages
    }

    #[tokio::test]
    async fn an_empty_message_then_pieces_then_close() {
        let messages = received(Encoding::Binary).await;
        let sizes: Vec<usize> = messages.iter().filter(|message| message.is_binary()).map(Message::len).collect();
        assert_eq!(sizes, [0, 2_048, 952]);
        assert!(messages.last().is_some_and(Message::is_close));
        let encoded = received(Encoding::Base64).await;
        assert_eq!(encoded[1], Message::text(STANDARD.encode(vec![b'x'; 2_048])));
    }

    #[tokio::test]
    async fn a_client_that_leaves_ends_following() {
        let (near, far) = tokio::io::duplex(1_024);
        let (_writer, log) = tokio::io::duplex(64);
        let mut socket = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let (left, sent) = tokio::join!(socket.close(None), send_log(far, Encoding::Binary, log));
        left.unwrap();
        sent.unwrap();
    }
}
