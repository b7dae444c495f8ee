//! The client's side of exec and attach: towards a runtime or node agent (SPDY) and towards any server (WebSocket).

use std::time::Duration;

use base::TaskGroup;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::protocol::Role as SocketRole;

use crate::command_status::CommandStatus;
use crate::pipe::{BoxRead, BoxWrite};
use crate::protocol::{Protocol, StreamSet, Subprotocol};
use crate::remote_command::{ERROR, RESIZE, STDERR, STDIN, STDOUT};
use crate::resize::ResizeSender;
use crate::spdy::{self, Headers, SpdyError, Stream};
use crate::websocket;

/// The most bytes of an error stream that are read.
const MAX_ERROR_BYTES: u64 = 1024 * 1024;
/// How often clients ping.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// How long a WebSocket client goes without data or pong: twelve pings and a second.
const READ_DEADLINE: Duration = Duration::from_secs(61);
/// How long one message may take to be written.
const WRITE_DEADLINE: Duration = Duration::from_secs(60);

/// A running remote command, seen from the client. Dropping it ends the connection.
pub struct ClientCommand {
    /// The protocol's rules.
    pub protocol: Protocol,
    /// The command's input; `shutdown` ends it where the protocol can say so.
    pub stdin: Option<BoxWrite>,
    /// The command's output.
    pub stdout: Option<BoxRead>,
    /// The command's error output.
    pub stderr: Option<BoxRead>,
    /// Tells the command its terminal's size.
    pub resize: Option<ResizeSender>,
    error: BoxRead,
    link: Link,
}

/// What keeps the connection open.
enum Link {
    Spdy(spdy::Connection),
    WebSocket(websocket::Channels),
}

/// Why the end of a command could not be learnt.
#[derive(Debug, thiserror::Error)]
pub enum CommandStatusError {
    /// The connection was lost.
    #[error("error reading from error stream: {0}")]
    Lost(#[from] std::io::Error),
    /// The server wrote something else than a status.
    #[error(transparent)]
    Protocol(#[from] crate::command_status::ErrorStreamError),
}

impl ClientCommand {
    /// Opens the streams of a command over SPDY. The connection runs in `group`.
    ///
    /// # Errors
    /// When the server refuses a stream or the connection ends.
    pub async fn over_spdy<Io>(io: Io, protocol: Protocol, set: StreamSet, group: &TaskGroup) -> Result<Self, SpdyError>
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let options = spdy::Options { ping_interval: Some(PING_INTERVAL), idle_timeout: None };
        let (connection, incoming, driver) = spdy::start(io, spdy::Role::Client, options);
        drop(incoming);
        group.spawn_cancellable("remote-client-spdy", async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "remote command connection ended");
            }
        });
        let open = async |wanted: bool, kind: &str| -> Result<Option<Stream>, SpdyError> {
            if !wanted {
                return Ok(None);
            }
            connection.open(Headers::new(&[("streamType", kind)])).await.map(Some)
        };
        let mut error = connection.open(Headers::new(&[("streamType", "error")])).await?;
        // Clients only read the error stream.
        drop(error.shutdown().await);
        let stdin = open(set.stdin, "stdin").await?;
        let stdout = open(set.stdout, "stdout").await?;
        let stderr = open(set.stderr && !set.tty, "stderr").await?;
        let resize = open(set.resize(protocol), "resize").await?;
        Ok(Self {
            protocol,
            stdin: stdin.map(|stream| Box::pin(stream) as BoxWrite),
            stdout: stdout.map(|stream| Box::pin(stream) as BoxRead),
            stderr: stderr.map(|stream| Box::pin(stream) as BoxRead),
            resize: resize.map(|stream| ResizeSender::new(Box::pin(stream))),
            error: Box::pin(error),
            link: Link::Spdy(connection),
        })
    }

    /// Takes the channels of a command over a WebSocket whose handshake is done. The connection runs in `group`.
    pub async fn over_websocket<Io>(io: Io, subprotocol: Subprotocol, set: StreamSet, group: &TaskGroup) -> Self
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let config = websocket::Config {
            encoding: subprotocol.encoding,
            close_signals: subprotocol.protocol == Protocol::V5,
            inputs: vec![STDOUT, STDERR, ERROR],
            ping_interval: Some(PING_INTERVAL),
            read_deadline: Some(READ_DEADLINE),
            write_deadline: Some(WRITE_DEADLINE),
            idle_timeout: None,
        };
        let (mut channels, driver) = websocket::start(io, SocketRole::Client, config).await;
        group.spawn_cancellable("remote-client-websocket", async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "remote command connection ended");
            }
        });
        let mut reader = |wanted: bool, channel| {
            let reader = channels.take_reader(channel).filter(|_| wanted);
            reader.map(|reader| Box::pin(reader) as BoxRead)
        };
        let stdout = reader(set.stdout, STDOUT);
        let stderr = reader(set.stderr && !set.tty, STDERR);
        let error = reader(true, ERROR).unwrap_or_else(|| Box::pin(tokio::io::empty()));
        Self {
            protocol: subprotocol.protocol,
            stdin: set.stdin.then(|| Box::pin(channels.writer(STDIN)) as BoxWrite),
            stdout,
            stderr,
            resize: set.tty.then(|| ResizeSender::new(Box::pin(channels.writer(RESIZE)))),
            error,
            link: Link::WebSocket(channels),
        }
    }

    /// Waits for the server's word on how the command ended. Read the outputs to their end at the same time: a full
    /// one stops the connection.
    ///
    /// # Errors
    /// When the connection is lost first, or the word is not understood.
    pub async fn status(&mut self) -> Result<CommandStatus, CommandStatusError> {
        let mut bytes = Vec::new();
        (&mut self.error).take(MAX_ERROR_BYTES).read_to_end(&mut bytes).await?;
        Ok(CommandStatus::from_error_stream(self.protocol, &bytes)?)
    }

    /// Ends the connection in good order.
    pub async fn close(self) {
        let Self { stdin, stdout, stderr, resize, error, link, .. } = self;
        drop((stdin, stdout, stderr, resize, error));
        match link {
            Link::Spdy(connection) => connection.close().await,
            Link::WebSocket(channels) => channels.close().await,
        }
    }
}
