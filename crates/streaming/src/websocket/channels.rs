//! Numbered channels over one WebSocket connection.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_util::sync::PollSender;

use super::{Encoding, limits};
use crate::activity::Activity;
use crate::pipe::{End, Ended, PIECE_BYTES, PipeReader, pipe};

/// Messages that wait to be written.
const MAX_QUEUED: usize = 32;
/// The channel that carries close signals in `v5.channel.k8s.io`.
const CLOSE_SIGNAL: u8 = 255;
/// The highest channel of remote commands, for close signals.
const MAX_SIGNALLED: u8 = 4;
/// How long a closing side waits for the peer's close.
const LINGER: Duration = Duration::from_secs(2);

/// Why a WebSocket connection ended badly.
#[derive(Debug, thiserror::Error)]
pub enum WebSocketError {
    /// The transport or the WebSocket protocol failed.
    #[error("{0}")]
    Protocol(#[from] Box<tungstenite::Error>),
    /// The peer sent a message that the subprotocol does not allow.
    #[error("{0}")]
    Message(&'static str),
    /// Nothing arrived, not even a pong, for the read deadline.
    #[error("next reader: i/o timeout")]
    ReadTimeout,
    /// A message could not be written in time.
    #[error("write: i/o timeout")]
    WriteTimeout,
    /// No data moved for the idle timeout.
    #[error("connection closed after it was idle")]
    Idle,
}

impl From<tungstenite::Error> for WebSocketError {
    fn from(error: tungstenite::Error) -> Self {
        Self::Protocol(Box::new(error))
    }
}

/// How the channels of a connection behave.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) encoding: Encoding,
    /// Whether messages `[255, channel]` end a channel (`v5`).
    pub(crate) close_signals: bool,
    /// Channels that are read; messages for others are dropped.
    pub(crate) inputs: Vec<u8>,
    pub(crate) ping_interval: Option<Duration>,
    pub(crate) read_deadline: Option<Duration>,
    pub(crate) write_deadline: Option<Duration>,
    pub(crate) idle_timeout: Option<Duration>,
}

/// The channels of a connection.
#[derive(Debug)]
pub(crate) struct Channels {
    out: mpsc::Sender<Outgoing>,
    readers: HashMap<u8, PipeReader>,
    close_signals: bool,
}

/// What must run for the channels to work.
type Driver = Pin<Box<dyn Future<Output = Result<(), WebSocketError>> + Send>>;

#[derive(Debug)]
enum Outgoing {
    Data { channel: u8, data: Bytes },
    Close,
}

struct Input {
    fill: Option<DuplexStream>,
    end: Arc<End>,
}

/// Starts channels on a connection whose handshake is done.
pub(crate) async fn start<Io>(io: Io, role: Role, config: Config) -> (Channels, Driver)
where
    Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let socket = WebSocketStream::from_raw_socket(io, role, Some(limits())).await;
    let (out, queue) = mpsc::channel(MAX_QUEUED);
    let (mut readers, mut inputs) = (HashMap::new(), HashMap::new());
    for channel in &config.inputs {
        let end = Arc::new(End::default());
        let (reader, fill) = pipe(&end);
        readers.insert(*channel, reader);
        inputs.insert(*channel, Input { fill: Some(fill), end });
    }
    let channels = Channels { out, readers, close_signals: config.close_signals };
    (channels, Box::pin(drive(socket, inputs, queue, config)))
}

async fn drive<Io: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<Io>,
    inputs: HashMap<u8, Input>,
    queue: mpsc::Receiver<Outgoing>,
    config: Config,
) -> Result<(), WebSocketError> {
    let activity = Activity::new();
    let (sink, stream) = socket.split();
    let mut read = std::pin::pin!(read_loop(stream, inputs, &config, &activity));
    let mut write = std::pin::pin!(write_loop(sink, queue, &config, &activity));
    tokio::select! {
        biased;
        outcome = &mut read => outcome,
        outcome = &mut write => {
            // Closed by us: the peer gets a moment to close too. Otherwise what the peer sent before is still read.
            if outcome.is_ok() { drop(timeout(LINGER, &mut read).await); outcome } else { read.await }
        }
        () = activity.idle_for(config.idle_timeout) => Err(WebSocketError::Idle),
    }
}

async fn read_loop<Io: AsyncRead + AsyncWrite + Unpin>(
    mut stream: SplitStream<WebSocketStream<Io>>,
    mut inputs: HashMap<u8, Input>,
    config: &Config,
    activity: &Activity,
) -> Result<(), WebSocketError> {
    loop {
        let next = match config.read_deadline {
            None => stream.next().await,
            Some(limit) => timeout(limit, stream.next()).await.map_err(|_| WebSocketError::ReadTimeout)?,
        };
        let message = match next {
            None | Some(Err(tungstenite::Error::ConnectionClosed)) => return Ok(()),
            Some(message) => message?,
        };
        match message {
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            Message::Close(frame) => {
                if frame.is_none_or(|frame| frame.code == CloseCode::Normal) {
                    inputs.values().for_each(|input| input.end.note(Ended::Finished));
                }
                return Ok(());
            }
            data => {
                activity.saw_data();
                if let Some((channel, data)) = config.encoding.decode(&data).map_err(WebSocketError::Message)? {
                    deliver(&mut inputs, config.close_signals, channel, &data).await?;
                }
            }
        }
    }
}

async fn deliver(
    inputs: &mut HashMap<u8, Input>,
    close_signals: bool,
    channel: u8,
    data: &[u8],
) -> Result<(), WebSocketError> {
    if close_signals && channel == CLOSE_SIGNAL {
        let [ended @ 0..=MAX_SIGNALLED] = data else {
            return Err(WebSocketError::Message("invalid close signal"));
        };
        if let Some(input) = inputs.get_mut(ended) {
            input.end.note(Ended::Finished);
            input.fill = None;
        }
        return Ok(());
    }
    if let Some(input) = inputs.get_mut(&channel)
        && let Some(fill) = &mut input.fill
        && fill.write_all(data).await.is_err()
    {
        // Nobody reads this channel any more.
        input.fill = None;
    }
    Ok(())
}

async fn write_loop<Io: AsyncRead + AsyncWrite + Unpin>(
    mut sink: SplitSink<WebSocketStream<Io>, Message>,
    mut queue: mpsc::Receiver<Outgoing>,
    config: &Config,
    activity: &Activity,
) -> Result<(), WebSocketError> {
    let mut pings = config.ping_interval.map(|period| {
        let mut ticks = interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    });
    loop {
        let message = tokio::select! {
            biased;
            () = tick(&mut pings) => Message::Ping(Bytes::new()),
            item = queue.recv() => match item {
                None | Some(Outgoing::Close) => break,
                Some(Outgoing::Data { channel, data }) => {
                    activity.saw_data();
                    config.encoding.encode(channel, &data)
                }
            },
        };
        let write = async {
            sink.feed(message).await?;
            if queue.is_empty() { sink.flush().await } else { Ok(()) }
        };
        in_time(config.write_deadline, write).await?;
    }
    let close = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    in_time(config.write_deadline, sink.send(Message::Close(Some(close)))).await
}

async fn tick(ticks: &mut Option<tokio::time::Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}

async fn in_time(
    limit: Option<Duration>,
    write: impl Future<Output = Result<(), tungstenite::Error>>,
) -> Result<(), WebSocketError> {
    match limit {
        None => Ok(write.await?),
        Some(limit) => Ok(timeout(limit, write).await.map_err(|_| WebSocketError::WriteTimeout)??),
    }
}

impl Channels {
    /// The reading side of a channel; `None` when it is not an input or was taken.
    pub(crate) fn take_reader(&mut self, channel: u8) -> Option<PipeReader> {
        self.readers.remove(&channel)
    }

    /// The writing side of a channel.
    pub(crate) fn writer(&self, channel: u8) -> ChannelWriter {
        ChannelWriter { channel, out: PollSender::new(self.out.clone()), signal_end: self.close_signals, ended: false }
    }

    /// Sends a message without data, which clients take for "connected".
    pub(crate) async fn announce(&self, channel: u8) {
        // A failure means that the connection has ended; whoever reads or writes notices.
        let _ = self.out.send(Outgoing::Data { channel, data: Bytes::new() }).await;
    }

    /// Closes the connection normally after everything queued so far has been written.
    pub(crate) async fn close(&self) {
        let _ = self.out.send(Outgoing::Close).await;
    }
}

/// Writes to one channel. `shutdown` sends the close signal where the protocol has one.
#[derive(Debug)]
pub(crate) struct ChannelWriter {
    channel: u8,
    out: PollSender<Outgoing>,
    signal_end: bool,
    ended: bool,
}

impl ChannelWriter {
    /// A writer whose end is not signalled: only clients end channels.
    pub(crate) fn without_signal(mut self) -> Self {
        self.signal_end = false;
        self
    }

    fn send(&mut self, cx: &mut Context<'_>, channel: u8, data: &[u8]) -> Poll<io::Result<usize>> {
        let broken = || io::Error::new(io::ErrorKind::BrokenPipe, "the connection has ended");
        ready!(self.out.poll_reserve(cx)).map_err(|_| broken())?;
        let data = Bytes::copy_from_slice(data.get(..PIECE_BYTES).unwrap_or(data));
        let written = data.len();
        self.out.send_item(Outgoing::Data { channel, data }).map_err(|_| broken())?;
        Poll::Ready(Ok(written))
    }
}

impl AsyncWrite for ChannelWriter {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if self.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let channel = self.channel;
        self.send(cx, channel, data)
    }

    /// Nothing to do: the connection writes what is queued as soon as it can.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.signal_end && !self.ended {
            let signalled = [self.channel];
            ready!(self.send(cx, CLOSE_SIGNAL, &signalled))?;
        }
        self.ended = true;
        Poll::Ready(Ok(()))
    }
}
