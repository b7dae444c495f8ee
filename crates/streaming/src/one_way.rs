//! WebSocket connections on which only the server has something to say.

use std::io;

use futures_util::{SinkExt as _, Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::websocket::{WebSocketError, limits};

/// Sends messages to the end of the stream, or until the client goes away, and closes the connection normally.
pub(crate) async fn send_all<Io, M>(io: Io, messages: M) -> Result<(), WebSocketError>
where
    Io: AsyncRead + AsyncWrite + Unpin,
    M: Stream<Item = io::Result<Message>>,
{
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(limits())).await;
    let (mut sink, mut stream) = socket.split();
    let send = async {
        let mut messages = std::pin::pin!(messages);
        while let Some(message) = messages.next().await {
            sink.send(message.map_err(Error::Io)?).await?;
        }
        Ok(sink.close().await?)
    };
    // Clients say nothing that matters, but their pings are answered and their leaving is noticed by reading.
    let gone = async { while let Some(Ok(_)) = stream.next().await {} };
    tokio::select! {
        outcome = send => outcome,
        () = gone => Ok(()),
    }
}
