//! A server: one listener, its connections, and the way both end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{CancellationToken, Drained, TaskGroup};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Handler;
use super::connection::{Connections, serve, serve_local};
use super::newcomers::{Newcomer, Newcomers};
use crate::tls::ServerTls;

/// Pause after the first failed accept; it doubles up to [`ACCEPT_PAUSE_MAX`], as in Go. Out of file descriptors, for
/// instance, is no reason to spin or to give up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long connections that were cut get to notice.
const ABORT_GRACE: Duration = Duration::from_secs(1);

/// The bounds of a server; the defaults are upstream's where upstream has one.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Open connections; when reached, new ones wait in the kernel's backlog.
    pub connections: usize,
    /// Open connections of one address that nobody is known to be at the other end of; further ones are closed at once.
    /// Nothing for no bound; a connection counts until its handler says [`super::Newcomer::is_known`].
    pub newcomers: Option<usize>,
    /// HTTP/2 streams at a time on one connection.
    pub streams: u32,
    /// Size of a request's headers.
    pub header_bytes: u32,
    /// HTTP/2 flow-control window of one stream.
    pub stream_window_bytes: u32,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// Time for the headers of a request.
    pub header_read: Duration,
    /// Time that a connection may have no request.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            newcomers: None,
            streams: 100,
            header_bytes: 1 << 20,
            stream_window_bytes: 256 << 10,
            handshake: Duration::from_secs(10),
            header_read: Duration::from_secs(32),
            idle: Duration::from_secs(90),
        }
    }
}

/// Whether connections are encrypted.
#[derive(Debug, Clone)]
pub enum Security {
    /// HTTP/1.1 in the clear, for health ports on the machine itself.
    Plain,
    /// HTTPS.
    Tls(Arc<ServerTls>),
}

/// A server that is not running yet.
pub struct Server {
    pub(super) handler: Arc<dyn Handler>,
    pub(super) security: Security,
    pub(super) limits: Limits,
    pub(super) counters: Counters,
}

/// What a server counts, where somebody wants to know.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// Handshakes that failed (`apiserver_tls_handshake_errors_total`).
    pub handshake_errors: Option<prometheus::Counter>,
    /// Connections that were closed because of [`Limits::newcomers`].
    pub refused: Option<prometheus::Counter>,
}

impl Server {
    /// A server with the usual limits.
    #[must_use]
    pub fn new(handler: Arc<dyn Handler>, security: Security) -> Self {
        Self { handler, security, limits: Limits::default(), counters: Counters::default() }
    }

    /// Replaces the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Counts.
    #[must_use]
    pub fn with_counters(mut self, counters: Counters) -> Self {
        self.counters = counters;
        self
    }

    /// Serves `listener` until told to stop through the handle, or until `tasks` ends.
    ///
    /// # Errors
    /// When the listener has no address.
    pub fn spawn(self, tasks: &TaskGroup, listener: TcpListener) -> std::io::Result<ServerHandle> {
        let connections = tasks.child("connections");
        let requests = tasks.child("requests");
        let handle = ServerHandle {
            address: listener.local_addr()?,
            stop: tasks.token().child_token(),
            abort: CancellationToken::new(),
            connections: connections.clone(),
            requests: requests.clone(),
        };
        let room = Room {
            permits: Arc::new(Semaphore::new(self.limits.connections)),
            newcomers: Newcomers::new(self.limits.newcomers),
        };
        let cx = Arc::new(Connections { server: self, requests, abort: handle.abort.clone() });
        let stop = handle.stop.clone();
        tasks.spawn("accept", async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = accept_all(&listener, &connections, room, cx) => {}
            }
        });
        Ok(handle)
    }
}

impl Server {
    /// Serves the clients of a Unix socket until `tasks` ends. The file system says who they may be.
    pub fn spawn_unix(self, tasks: &TaskGroup, listener: UnixListener) {
        let (connections, requests) = (tasks.child("connections"), tasks.child("requests"));
        let permits = Arc::new(Semaphore::new(self.limits.connections));
        let cx = Arc::new(Connections { server: self, requests, abort: CancellationToken::new() });
        tasks.spawn_cancellable("accept", async move {
            let mut pause = ACCEPT_PAUSE;
            loop {
                let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
                match listener.accept().await {
                    Ok((stream, _)) => {
                        pause = ACCEPT_PAUSE;
                        let (cx, drain) = (Arc::clone(&cx), connections.token());
                        connections.spawn("connection", async move {
                            serve_local(cx, stream, drain).await;
                            drop(permit);
                        });
                    }
                    Err(error) => pause = rest(pause, &error).await,
                }
            }
        });
    }
}

/// Rests after a failed accept, and says for how long next time.
async fn rest(pause: Duration, error: &std::io::Error) -> Duration {
    tracing::warn!(%error, "Accepting a connection failed, trying again");
    tokio::time::sleep(pause).await;
    (pause * 2).min(ACCEPT_PAUSE_MAX)
}

/// How many connections there may be.
struct Room {
    permits: Arc<Semaphore>,
    newcomers: Arc<Newcomers>,
}

/// Accepts for ever. Each connection holds one permit until it ends, and a place among the unknown until it is known.
async fn accept_all(listener: &TcpListener, tasks: &TaskGroup, room: Room, cx: Arc<Connections>) {
    let mut pause = ACCEPT_PAUSE;
    loop {
        let Ok(permit) = Arc::clone(&room.permits).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, remote)) => {
                pause = ACCEPT_PAUSE;
                match room.newcomers.admit(remote.ip()) {
                    Some(newcomer) => spawn_connection(tasks, &cx, (stream, remote), newcomer, permit),
                    None => cx.refused(remote),
                }
            }
            Err(error) => pause = rest(pause, &error).await,
        }
    }
}

fn spawn_connection(
    tasks: &TaskGroup,
    cx: &Arc<Connections>,
    (stream, remote): (TcpStream, SocketAddr),
    newcomer: Newcomer,
    permit: OwnedSemaphorePermit,
) {
    let (cx, drain) = (Arc::clone(cx), tasks.token());
    tasks.spawn("connection", async move {
        serve(cx, (stream, remote), newcomer, drain).await;
        drop(permit);
    });
}

/// A running server. Dropping the handle leaves it running until its task group ends.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    address: SocketAddr,
    stop: CancellationToken,
    abort: CancellationToken,
    connections: TaskGroup,
    requests: TaskGroup,
}

impl ServerHandle {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the listener; open connections go on.
    pub fn stop_accepting(&self) {
        self.stop.cancel();
    }

    /// Closes the listener and asks every connection to finish (GOAWAY, `Connection: close`), without waiting for it.
    pub fn drain(&self) {
        self.stop_accepting();
        self.connections.cancel();
    }

    /// How many connections are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.running().iter().map(|(_, count)| count).sum()
    }

    /// Closes the listener, lets every connection finish what it has begun (GOAWAY, `Connection: close`), and cuts
    /// those that are still open after `deadline`. Endless streams (watches) must be ended by their handlers.
    pub async fn shutdown(&self, deadline: Duration) -> Drained {
        self.stop_accepting();
        let outcome = self.connections.shutdown(deadline).await;
        self.abort.cancel();
        self.connections.shutdown(ABORT_GRACE).await;
        self.requests.shutdown(ABORT_GRACE).await;
        outcome
    }
}
