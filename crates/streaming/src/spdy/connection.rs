//! One SPDY connection: its streams, and the driver that moves frames.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::frame::{self, PROTOCOL_ERROR};
use super::reader::read_loop;
use super::stream::Stream;
use super::writer::{Outgoing, Urgent, write_loop};
use super::{Headers, SpdyError};
use crate::activity::Activity;
use crate::pipe::{End, Ended, PipeReader, pipe};

/// Streams that one connection may have; a port-forward of a busy web page uses some dozens.
pub(super) const MAX_STREAMS: usize = 512;
/// Streams of the peer that wait to be accepted.
const MAX_WAITING: usize = 64;
/// Data frames that wait to be written; every stream holds one more place for its end.
const MAX_QUEUED: usize = 64 + MAX_STREAMS;
/// Answers to pings and refusals that wait to be written.
const MAX_URGENT: usize = 64;
/// How long the peer may take to reply to a new stream.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a closing side goes on reading, so that the peer gets everything that was sent.
const LINGER: Duration = Duration::from_secs(2);

/// Which side of the connection this is; it decides who uses odd stream ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The side that asked for the upgrade: odd ids.
    Client,
    /// The side that answered it: even ids.
    Server,
}

/// How a connection keeps itself alive and when it gives up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Send a PING this often.
    pub ping_interval: Option<Duration>,
    /// Close when no data moved for so long.
    pub idle_timeout: Option<Duration>,
}

/// What must run for the connection to work; ends when the connection does.
pub type Driver = Pin<Box<dyn Future<Output = Result<(), SpdyError>> + Send>>;

/// A handle to open streams with and to close the connection. When the last handle and stream is dropped, the
/// connection closes.
#[derive(Debug, Clone)]
pub struct Connection {
    pub(super) shared: Arc<Shared>,
    pub(super) out: mpsc::Sender<Outgoing>,
    pub(super) urgent: mpsc::Sender<Urgent>,
}

/// Streams that the peer opens.
#[derive(Debug)]
pub struct Incoming {
    waiting: mpsc::Receiver<Waiting>,
    connection: Connection,
}

/// A stream of the peer that is to be accepted or refused.
#[derive(Debug)]
pub struct IncomingStream {
    waiting: Option<Waiting>,
    connection: Connection,
}

#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: u32,
    pub(super) headers: Headers,
    pub(super) input: PipeReader,
    pub(super) end: Arc<End>,
}

/// State that the two loops and all handles share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) role: Role,
    table: Mutex<Table>,
    pub(super) activity: Activity,
}

#[derive(Debug, Default)]
struct Table {
    streams: HashMap<u32, Entry>,
    last_local: u32,
    last_remote: u32,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    input: Option<DuplexStream>,
    end: Arc<End>,
    reply: Option<oneshot::Sender<bool>>,
    local_done: bool,
    remote_done: bool,
}

/// Starts SPDY on an upgraded connection. Nothing happens until the driver runs.
pub fn start<Io>(io: Io, role: Role, options: Options) -> (Connection, Incoming, Driver)
where
    Io: AsyncRead + AsyncWrite + Send + 'static,
{
    let shared = Arc::new(Shared { role, table: Mutex::default(), activity: Activity::new() });
    let (out, out_queue) = mpsc::channel(MAX_QUEUED);
    let (urgent, urgent_queue) = mpsc::channel(MAX_URGENT);
    let (accept, waiting) = mpsc::channel(MAX_WAITING);
    let connection = Connection { shared: Arc::clone(&shared), out, urgent: urgent.clone() };
    let incoming = Incoming { waiting, connection: connection.clone() };
    let driver = async move {
        let (from, to) = tokio::io::split(io);
        let read = read_loop(from, &shared, &urgent, accept);
        let write = write_loop(to, &shared, urgent_queue, out_queue, options.ping_interval);
        let outcome = drive(&shared, &urgent, read, write, options.idle_timeout).await;
        shared.close();
        outcome
    };
    (connection, incoming, Box::pin(driver))
}

/// Runs both loops until one of them ends the connection.
async fn drive(
    shared: &Shared,
    urgent: &mpsc::Sender<Urgent>,
    read: impl Future<Output = Result<(), SpdyError>>,
    write: impl Future<Output = Result<(), SpdyError>>,
    idle: Option<Duration>,
) -> Result<(), SpdyError> {
    let (mut read, mut write) = (std::pin::pin!(read), std::pin::pin!(write));
    let (outcome, status) = tokio::select! {
        biased;
        outcome = &mut read => (outcome, PROTOCOL_ERROR),
        outcome = &mut write => {
            // Closed by us: the peer gets a moment to close too. Otherwise the peer stopped reading, perhaps because it
            // has sent all it had: that is still read, for as long as its users take.
            return if outcome.is_ok() { drop(timeout(LINGER, &mut read).await); outcome } else { read.await };
        }
        () = shared.activity.idle_for(idle) => (Err(SpdyError::Idle), 0),
    };
    if outcome.is_err() {
        // The queue may be full of answers to a flood of pings; then the peer is not told.
        let _ = urgent.try_send(Urgent::Close(status));
        let _ = timeout(LINGER, &mut write).await;
    }
    outcome
}

impl Connection {
    /// Opens a stream and waits for the peer's reply.
    ///
    /// # Errors
    /// When the connection has ended, has too many streams, or the peer refuses or does not reply in 30 s.
    pub async fn open(&self, headers: Headers) -> Result<Stream, SpdyError> {
        let place = self.out.clone().reserve_owned().await.map_err(|_| SpdyError::Closed)?;
        let end_place = self.out.clone().reserve_owned().await.map_err(|_| SpdyError::Closed)?;
        let (replied, reply) = oneshot::channel();
        let end = Arc::new(End::default());
        let (input, fill) = pipe(&end);
        // The frame is queued under the lock, so that ids go out in ascending order.
        let id = self.shared.insert_local(fill, &end, replied, |id| {
            place.send(Outgoing::Open { stream: id, headers });
        })?;
        let stream = Stream::new(id, input, end, end_place, self.clone());
        match timeout(REPLY_TIMEOUT, reply).await {
            Ok(Ok(true)) => Ok(stream),
            Ok(Ok(false)) => Err(SpdyError::Refused),
            Ok(Err(_)) => Err(SpdyError::Closed),
            Err(_) => {
                stream.reset();
                Err(SpdyError::ReplyTimeout)
            }
        }
    }

    /// Ends the connection after everything queued so far has been written.
    pub async fn close(&self) {
        // A failure means that it has ended already.
        let _ = self.out.send(Outgoing::Close).await;
    }
}

impl Incoming {
    /// The next stream that the peer opens; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<IncomingStream> {
        let waiting = self.waiting.recv().await?;
        Some(IncomingStream { waiting: Some(waiting), connection: self.connection.clone() })
    }

    /// The connection that the streams belong to.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl IncomingStream {
    /// The stream's id: odd when a client opened it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.waiting.as_ref().map_or(0, |waiting| waiting.id)
    }

    /// The first value of one of the stream's headers.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.waiting.as_ref()?.headers.first(name)
    }

    /// Replies to the stream and takes it.
    ///
    /// # Errors
    /// When the connection has ended.
    pub async fn accept(mut self) -> Result<Stream, SpdyError> {
        let out = &self.connection.out;
        let place = out.clone().reserve_owned().await.map_err(|_| SpdyError::Closed)?;
        let end_place = out.clone().reserve_owned().await.map_err(|_| SpdyError::Closed)?;
        let Some(waiting) = self.waiting.take() else { return Err(SpdyError::Closed) };
        place.send(Outgoing::Reply { stream: waiting.id });
        Ok(Stream::new(waiting.id, waiting.input, waiting.end, end_place, self.connection.clone()))
    }

    /// Refuses the stream; dropping it does the same.
    pub fn refuse(self) {
        drop(self);
    }
}

impl Drop for IncomingStream {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.connection.shared.remove(waiting.id);
            let refusal = Urgent::Reset { stream: waiting.id, status: frame::REFUSED_STREAM };
            // A full queue means a flood; the peer then waits for its own timeout.
            let _ = self.connection.urgent.try_send(refusal);
        }
    }
}

impl Shared {
    fn insert_local(
        &self,
        fill: DuplexStream,
        end: &Arc<End>,
        reply: oneshot::Sender<bool>,
        queue: impl FnOnce(u32),
    ) -> Result<u32, SpdyError> {
        let mut table = self.table.lock();
        if table.closed {
            return Err(SpdyError::Closed);
        }
        if table.streams.len() >= MAX_STREAMS {
            return Err(SpdyError::TooManyStreams);
        }
        let first = if self.role == Role::Client { 1 } else { 2 };
        let id = if table.last_local == 0 { first } else { table.last_local.saturating_add(2) };
        if id > i32::MAX.unsigned_abs() {
            return Err(SpdyError::TooManyStreams);
        }
        table.last_local = id;
        table.streams.insert(id, Entry::new(fill, end, Some(reply)));
        queue(id);
        Ok(id)
    }

    /// Notes a stream of the peer. `Ok(None)` means that it must be refused.
    pub(super) fn insert_remote(&self, id: u32, headers: Headers) -> Result<Option<Waiting>, SpdyError> {
        let mut table = self.table.lock();
        let expected_odd = self.role == Role::Server;
        if id == 0 || (id % 2 == 1) != expected_odd || id <= table.last_remote {
            return Err(SpdyError::StreamId(id));
        }
        table.last_remote = id;
        if table.closed || table.streams.len() >= MAX_STREAMS {
            return Ok(None);
        }
        let end = Arc::new(End::default());
        let (input, fill) = pipe(&end);
        table.streams.insert(id, Entry::new(fill, &end, None));
        Ok(Some(Waiting { id, headers, input, end }))
    }

    /// Takes the buffer of a stream to fill it; [`Self::put_input`] gives it back.
    pub(super) fn take_input(&self, id: u32) -> Option<DuplexStream> {
        self.table.lock().streams.get_mut(&id)?.input.take()
    }

    pub(super) fn put_input(&self, id: u32, input: DuplexStream) {
        if let Some(entry) = self.table.lock().streams.get_mut(&id)
            && !entry.remote_done
        {
            entry.input = Some(input);
        }
    }

    /// The peer replied to a stream of ours.
    pub(super) fn replied(&self, id: u32) {
        let reply = self.table.lock().streams.get_mut(&id).and_then(|entry| entry.reply.take());
        if let Some(reply) = reply {
            let _ = reply.send(true);
        }
    }

    /// The peer ended its half of a stream.
    pub(super) fn remote_done(&self, id: u32) {
        let mut table = self.table.lock();
        let Some(entry) = table.streams.get_mut(&id) else { return };
        entry.end.note(Ended::Finished);
        entry.input = None;
        entry.remote_done = true;
        if entry.local_done {
            table.streams.remove(&id);
        }
    }

    /// We ended our half of a stream.
    pub(super) fn local_done(&self, id: u32) {
        let mut table = self.table.lock();
        let Some(entry) = table.streams.get_mut(&id) else { return };
        entry.local_done = true;
        if entry.remote_done {
            table.streams.remove(&id);
        }
    }

    /// The peer gave a stream up.
    pub(super) fn remote_reset(&self, id: u32) {
        let Some(mut entry) = self.table.lock().streams.remove(&id) else { return };
        entry.end.note(Ended::Reset);
        if let Some(reply) = entry.reply.take() {
            let _ = reply.send(false);
        }
    }

    /// Forgets a stream, so that what still arrives for it is thrown away.
    pub(super) fn remove(&self, id: u32) {
        self.table.lock().streams.remove(&id);
    }

    /// Streams whose writers have not ended them.
    pub(super) fn unfinished(&self) -> Vec<u32> {
        let table = self.table.lock();
        table.streams.iter().filter(|(_, entry)| !entry.local_done).map(|(id, _)| *id).collect()
    }

    /// The last stream of the peer, for GOAWAY.
    pub(super) fn last_remote(&self) -> u32 {
        self.table.lock().last_remote
    }

    /// Drops every stream's buffer, which ends the readers.
    fn close(&self) {
        let mut table = self.table.lock();
        table.closed = true;
        table.streams.clear();
    }
}

impl Entry {
    fn new(fill: DuplexStream, end: &Arc<End>, reply: Option<oneshot::Sender<bool>>) -> Self {
        Self { input: Some(fill), end: Arc::clone(end), reply, local_done: false, remote_done: false }
    }
}
