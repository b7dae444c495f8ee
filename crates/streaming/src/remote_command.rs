//! The server's side of exec and attach: one session whichever protocol the client speaks.

use std::time::Duration;

use base::{CancellationToken, TaskGroup};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::Role as SocketRole;
use tokio_util::sync::DropGuard;

use crate::command_status::{CommandStatus, StatusForm};
use crate::pipe::{BoxRead, BoxWrite};
use crate::protocol::{Protocol, StreamSet, Subprotocol};
use crate::resize::ResizeEvents;
use crate::spdy::{self, SpdyError, Stream, StreamWriter};
use crate::websocket::{self, ChannelWriter, Channels};
use crate::{Dialect, SessionOptions};

/// Channel numbers of the WebSocket form.
pub(crate) const STDIN: u8 = 0;
pub(crate) const STDOUT: u8 = 1;
pub(crate) const STDERR: u8 = 2;
pub(crate) const ERROR: u8 = 3;
pub(crate) const RESIZE: u8 = 4;

/// How long clients may take to open the streams of a session.
const CREATION_TIMEOUT: Duration = Duration::from_secs(30);
/// How long writing the final status may take.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a session did not come about.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The client did not open all its streams in time.
    #[error("timed out waiting for client to create streams")]
    CreationTimeout,
    /// The connection ended first.
    #[error("the connection ended before all streams were created")]
    ConnectionClosed,
    /// SPDY failed.
    #[error(transparent)]
    Spdy(#[from] SpdyError),
}

/// An exec or attach session with a client. Dropping it unfinished breaks the connection off, so that the client does
/// not take an empty error stream for success.
///
/// Take the streams out, move the data, and call [`Self::finish`] when the output is written.
pub struct RemoteCommand {
    /// First, because fields are dropped in order: the connection must break before the error stream ends.
    abort: DropGuard,
    /// The protocol's rules.
    pub protocol: Protocol,
    /// What the client types; ends at the client's half close.
    pub stdin: Option<BoxRead>,
    /// Where output goes.
    pub stdout: Option<BoxWrite>,
    /// Where error output goes.
    pub stderr: Option<BoxWrite>,
    /// Sizes of the client's terminal.
    pub resize: Option<ResizeEvents>,
    error: BoxWrite,
    link: Link,
    closed: CancellationToken,
}

/// What must be told that the session is over.
enum Link {
    Spdy(spdy::Connection),
    WebSocket(Channels),
}

impl RemoteCommand {
    /// Starts a session on an upgraded connection, speaking what was negotiated. The connection runs in `group`.
    ///
    /// # Errors
    /// When a SPDY client does not open the streams of `set` within 30 s.
    pub async fn start<Io>(
        io: Io,
        dialect: Dialect,
        set: StreamSet,
        options: SessionOptions,
        group: &TaskGroup,
    ) -> Result<Self, SessionError>
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        match dialect {
            Dialect::Spdy(protocol) => Self::over_spdy(io, protocol, set, options, group).await,
            Dialect::WebSocket(subprotocol) => Ok(Self::over_websocket(io, subprotocol, set, options, group).await),
        }
    }

    async fn over_spdy<Io>(
        io: Io,
        protocol: Protocol,
        set: StreamSet,
        options: SessionOptions,
        group: &TaskGroup,
    ) -> Result<Self, SessionError>
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let spdy_options = spdy::Options { ping_interval: None, idle_timeout: options.idle_timeout };
        let (connection, mut incoming, driver) = spdy::start(io, spdy::Role::Server, spdy_options);
        let (abort, closed) = run(group, "remote-command-spdy", driver);
        let collect = Collected::collect(&mut incoming, protocol, set);
        let streams = timeout(CREATION_TIMEOUT, collect).await.map_err(|_| SessionError::CreationTimeout)??;
        // Without a taker the connection refuses what the client opens from now on.
        drop(incoming);
        let Some(error) = streams.error else { return Err(SessionError::ConnectionClosed) };
        Ok(Self {
            abort,
            protocol,
            stdin: streams.stdin.map(|stream| Box::pin(stream) as BoxRead),
            stdout: streams.stdout.map(|stream| Box::pin(stream) as BoxWrite),
            stderr: streams.stderr.map(|stream| Box::pin(stream) as BoxWrite),
            resize: streams.resize.map(|stream| ResizeEvents::new(Box::pin(stream))),
            error: Box::pin(error),
            link: Link::Spdy(connection),
            closed,
        })
    }

    async fn over_websocket<Io>(
        io: Io,
        subprotocol: Subprotocol,
        set: StreamSet,
        options: SessionOptions,
        group: &TaskGroup,
    ) -> Self
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let config = websocket::Config {
            encoding: subprotocol.encoding,
            close_signals: subprotocol.protocol == Protocol::V5,
            inputs: vec![STDIN, RESIZE],
            ping_interval: None,
            read_deadline: None,
            write_deadline: None,
            idle_timeout: options.idle_timeout,
        };
        let (mut channels, driver) = websocket::start(io, SocketRole::Server, config).await;
        let (abort, closed) = run(group, "remote-command-websocket", driver);
        let first = if set.stdout {
            STDOUT
        } else if set.stderr {
            STDERR
        } else {
            ERROR
        };
        channels.announce(first).await;
        // Readers that are not wanted are dropped here, which makes the connection ignore their messages.
        let stdin = channels.take_reader(STDIN).filter(|_| set.stdin);
        let resize = channels.take_reader(RESIZE).filter(|_| set.tty);
        let writer = |wanted: bool, channel| wanted.then(|| Box::pin(output(&channels, channel)) as BoxWrite);
        Self {
            abort,
            protocol: subprotocol.protocol,
            stdin: stdin.map(|reader| Box::pin(reader) as BoxRead),
            stdout: writer(set.stdout, STDOUT),
            stderr: writer(set.stderr, STDERR),
            resize: resize.map(|reader| ResizeEvents::new(Box::pin(reader))),
            error: Box::pin(output(&channels, ERROR)),
            link: Link::WebSocket(channels),
            closed,
        }
    }

    /// A token that is cancelled when the client's connection has ended, whoever ended it.
    #[must_use]
    pub fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// Reports how the command ended and closes the connection. What was written to the outputs before gets to the
    /// client first.
    pub async fn finish(self, outcome: &CommandStatus, form: StatusForm) {
        let Self { abort, protocol, stdin, stdout, stderr, resize, mut error, link, .. } = self;
        let bytes = outcome.to_error_stream(protocol, form);
        let report = async {
            error.write_all(&bytes).await?;
            error.shutdown().await
        };
        match timeout(STATUS_TIMEOUT, report).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "cannot report the end of a remote command"),
            Err(_) => tracing::debug!("timed out reporting the end of a remote command"),
        }
        drop((stdin, stdout, stderr, resize, error));
        let close = async {
            match &link {
                Link::Spdy(connection) => connection.close().await,
                Link::WebSocket(channels) => channels.close().await,
            }
        };
        // Disarmed only when all is queued: a client that does not even take that is broken off.
        if timeout(STATUS_TIMEOUT, close).await.is_ok() {
            abort.disarm();
        }
    }
}

/// Runs a connection in `group`. Dropping the guard breaks it off; the token tells when it has ended.
fn run<E: std::fmt::Display + Send + 'static>(
    group: &TaskGroup,
    name: &str,
    driver: impl Future<Output = Result<(), E>> + Send + 'static,
) -> (DropGuard, CancellationToken) {
    let (abort, closed) = (CancellationToken::new(), CancellationToken::new());
    let (aborted, ended) = (abort.clone(), closed.clone().drop_guard());
    group.spawn_cancellable(name, async move {
        let _ended = ended;
        tokio::select! {
            biased;
            () = aborted.cancelled() => tracing::debug!("remote command broken off"),
            outcome = driver => if let Err(error) = outcome {
                tracing::debug!(%error, "remote command connection ended");
            }
        }
    });
    (abort.drop_guard(), closed)
}

fn output(channels: &Channels, channel: u8) -> ChannelWriter {
    channels.writer(channel).without_signal()
}

/// The streams of a session while the client opens them.
#[derive(Default)]
struct Collected {
    error: Option<StreamWriter>,
    stdin: Option<Stream>,
    stdout: Option<StreamWriter>,
    stderr: Option<StreamWriter>,
    resize: Option<Stream>,
}

impl Collected {
    /// Accepts streams in any order until all expected ones are there.
    async fn collect(incoming: &mut spdy::Incoming, protocol: Protocol, set: StreamSet) -> Result<Self, SessionError> {
        let mut all = Self::default();
        while !all.complete(protocol, set) {
            let stream = incoming.next().await.ok_or(SessionError::ConnectionClosed)?;
            let kind = stream.header("streamType").unwrap_or_default().to_owned();
            match kind.as_str() {
                "error" => all.error = Some(stream.accept().await?.into_split().1),
                "stdin" => all.stdin = Some(stream.accept().await?),
                "stdout" => all.stdout = Some(stream.accept().await?.into_split().1),
                "stderr" => all.stderr = Some(stream.accept().await?.into_split().1),
                "resize" => all.resize = Some(stream.accept().await?),
                _ => tracing::debug!(kind, "unexpected stream type"),
            }
        }
        Ok(all)
    }

    fn complete(&self, protocol: Protocol, set: StreamSet) -> bool {
        self.error.is_some()
            && (self.stdin.is_some() || !set.stdin)
            && (self.stdout.is_some() || !set.stdout)
            && (self.stderr.is_some() || !set.stderr)
            && (self.resize.is_some() || !set.resize(protocol))
    }
}
