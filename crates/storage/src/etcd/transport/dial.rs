//! Making a connection, and keeping it while it lives.

use std::sync::Arc;
use std::time::Duration;

use base::{Gathered, TaskGroup};
use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use h2::{Ping, PingPong};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::{Calls, Target};

/// How long TCP, TLS and the greeting of HTTP/2 may take together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Flow control windows. Large ones also keep a burst of small frames within the HTTP/2 library's budget.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 32 << 20;

/// A connection could not be made. All who wait for it get a copy, so what caused it is text.
#[derive(Debug, Clone, thiserror::Error)]
#[error("dial tcp {host}:{port}: {reason}")]
pub(super) struct DialError {
    host: String,
    port: u16,
    reason: String,
}

/// Connects once; a task keeps the connection from then on.
pub(super) async fn dial(target: Arc<Target>, tasks: TaskGroup, calls: Calls) -> Result<SendRequest<Bytes>, DialError> {
    let failed = |reason: &str| DialError { host: target.host.clone(), port: target.port, reason: reason.to_owned() };
    match timeout(CONNECT_TIMEOUT, connect(&target, &tasks, calls)).await {
        Ok(connected) => connected.map_err(|error| failed(&error.to_string())),
        Err(_) => Err(failed("i/o timeout")),
    }
}

async fn connect(target: &Target, tasks: &TaskGroup, calls: Calls) -> Result<SendRequest<Bytes>, tower::BoxError> {
    let stream = target.connector.connect(&target.host, target.port).await?;
    match &target.tls {
        Some((config, name)) => {
            let stream = TlsConnector::from(Arc::clone(config)).connect(name.clone(), stream).await?;
            if stream.get_ref().1.alpn_protocol().is_none() {
                return Err("the server does not speak HTTP/2".into());
            }
            greet(stream, tasks, calls).await
        }
        None => greet(stream, tasks, calls).await,
    }
}

/// Speaks HTTP/2 on a new stream, which a task drives from then on.
pub(super) async fn greet<S>(stream: S, tasks: &TaskGroup, calls: Calls) -> Result<SendRequest<Bytes>, tower::BoxError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, mut connection) = h2::client::Builder::new()
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .enable_push(false)
        .handshake(Gathered::new(stream, move || calls.are_many()))
        .await?;
    let pings = connection.ping_pong().ok_or("the connection's pings are taken")?;
    tasks.spawn_cancellable("etcd-connection", keep(connection, pings));
    Ok(sender)
}

/// Drives a connection until it ends, or its pings are not answered; dropped, it fails all that waits for it.
async fn keep<S>(connection: Connection<S, Bytes>, pings: PingPong)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::select! {
        biased;
        ended = connection => tracing::debug!(?ended, "A connection to etcd ended"),
        () = lost(pings) => tracing::warn!("etcd does not answer pings, the connection is given up"),
    }
}

/// Ends when a ping is not answered, or cannot be sent.
async fn lost(mut pings: PingPong) {
    loop {
        sleep(KEEP_ALIVE_INTERVAL).await;
        if !matches!(timeout(KEEP_ALIVE_TIMEOUT, pings.ping(Ping::opaque())).await, Ok(Ok(_))) {
            return;
        }
    }
}
