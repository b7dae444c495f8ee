//! The client's side of port-forward over SPDY, plain or inside a WebSocket tunnel.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{CancellationToken, TaskGroup};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::spdy::{self, Headers, SpdyError, Stream};

/// The most bytes of an error text that are read.
const MAX_ERROR_BYTES: u64 = 64 * 1024;
/// How often a client pings, and how often inside a WebSocket tunnel.
const PING_INTERVAL: Duration = Duration::from_secs(5);
const TUNNEL_PING_INTERVAL: Duration = Duration::from_secs(10);

/// What carries the SPDY connection; it decides how often to ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// An upgraded connection.
    Plain,
    /// A WebSocket tunnel ([`crate::WebSocketIo`]).
    Tunnel,
}

/// A port-forward connection to a server.
#[derive(Debug)]
pub struct PortForwardClient {
    connection: spdy::Connection,
    next_request: AtomicU64,
    closed: CancellationToken,
}

/// One connection into the pod.
#[derive(Debug)]
pub struct ClientForward {
    /// Its bytes.
    pub data: Stream,
    /// Where the server says what went wrong.
    pub error: ForwardErrorReader,
}

/// Reads a forward's error text.
#[derive(Debug)]
pub struct ForwardErrorReader(Stream);

impl PortForwardClient {
    /// Starts SPDY on an upgraded connection. The connection runs in `group`.
    pub fn start<Io>(io: Io, carrier: Carrier, group: &TaskGroup) -> Self
    where
        Io: AsyncRead + AsyncWrite + Send + 'static,
    {
        let period = if carrier == Carrier::Tunnel { TUNNEL_PING_INTERVAL } else { PING_INTERVAL };
        let options = spdy::Options { ping_interval: Some(period), idle_timeout: None };
        let (connection, incoming, driver) = spdy::start(io, spdy::Role::Client, options);
        drop(incoming);
        let closed = CancellationToken::new();
        let ended = closed.clone().drop_guard();
        group.spawn_cancellable("port-forward-client", async move {
            let _ended = ended;
            if let Err(error) = driver.await {
                tracing::debug!(%error, "port-forward connection ended");
            }
        });
        Self { connection, next_request: AtomicU64::new(0), closed }
    }

    /// Opens a connection to a port of the pod.
    ///
    /// # Errors
    /// When the server refuses it or the connection has ended.
    pub async fn open(&self, port: u16) -> Result<ClientForward, SpdyError> {
        let request = self.next_request.fetch_add(1, Ordering::Relaxed).to_string();
        let port = port.to_string();
        let headers = |kind| Headers::new(&[("streamType", kind), ("port", &port), ("requestID", &request)]);
        let mut error = self.connection.open(headers("error")).await?;
        // Clients never write to it.
        error.shutdown().await?;
        let data = self.connection.open(headers("data")).await?;
        Ok(ClientForward { data, error: ForwardErrorReader(error) })
    }

    /// A token that is cancelled when the connection has ended.
    #[must_use]
    pub fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// Ends the connection.
    pub async fn close(&self) {
        self.connection.close().await;
    }
}

impl ForwardErrorReader {
    /// The server's text once the forward has ended; empty when all went well.
    ///
    /// # Errors
    /// When the connection is lost first.
    pub async fn text(self) -> std::io::Result<String> {
        let mut bytes = Vec::new();
        self.0.take(MAX_ERROR_BYTES).read_to_end(&mut bytes).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
