//! One HTTP connection to the server, and the body that keeps it busy until it is read.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use base::{CancellationToken, Gathered, TaskGroup};
use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};

use super::dial::Dialed;
use super::pool::Pool;
use super::{Body, BoxError, TransportError};

/// Window of one response. A list of a large cluster fills it, and a watch must not stall behind one.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// Window of the whole connection. The h2 library's budget for small frames grows with it: bursts of watch events
/// would otherwise be taken for an attack.
const CONNECTION_WINDOW_BYTES: u32 = 32 << 20;
/// Silence after which a ping is sent, as upstream.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long a ping may go unanswered, as upstream.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Turns for requests that are sent at the same time: the library opens one stream in each, and has its body in the next.
const TURNS: u32 = 16;
/// How many requests share one HTTP/2 connection. Servers allow 100 by default; one more opens another connection.
pub(crate) const MAX_STREAMS: usize = 90;

type Message = http::Request<Full<Bytes>>;

/// Runs what hyper spawns inside the client's task group, for as long as the connection may live. The library drives
/// HTTP/2 connections in a task of their own, so ending only the one that we drive would leave the streams open.
#[derive(Clone)]
struct GroupExecutor {
    tasks: TaskGroup,
    closed: CancellationToken,
}

impl<F> hyper::rt::Executor<F> for GroupExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let closed = self.closed.clone();
        self.tasks.spawn_cancellable("http2-connection", async move {
            tokio::select! {
                biased;
                () = closed.cancelled() => {}
                () = future => {}
            }
        });
    }
}

/// The sending half of a connection.
pub(crate) enum Sender {
    /// HTTP/1.1: one request at a time.
    One(http1::SendRequest<Full<Bytes>>),
    /// HTTP/2: many at once.
    Many(Shared),
}

/// An HTTP/2 connection with the number of requests on it.
#[derive(Clone)]
pub(crate) struct Shared {
    sender: http2::SendRequest<Full<Bytes>>,
    active: Arc<AtomicUsize>,
}

impl Shared {
    pub(crate) fn is_usable(&self) -> bool {
        !self.sender.is_closed() && self.active.load(Ordering::Relaxed) < MAX_STREAMS
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

/// Opens HTTP on a dialed stream; the connection lives in `tasks` until it ends or `closed` is cancelled.
pub(crate) async fn open(
    dialed: Dialed,
    tasks: &TaskGroup,
    closed: CancellationToken,
) -> Result<Sender, TransportError> {
    let broken = |error: hyper::Error| TransportError::Broken(error.into());
    if dialed.http2 {
        let io = TokioIo::new(Gathered::new(dialed.stream, || true).with_turns(TURNS));
        let executor = GroupExecutor { tasks: tasks.clone(), closed: closed.clone() };
        let (sender, connection) = http2::Builder::new(executor)
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .handshake(io)
            .await
            .map_err(broken)?;
        drive(tasks, closed, connection);
        return Ok(Sender::Many(Shared { sender, active: Arc::default() }));
    }
    let (sender, connection) = http1::handshake(TokioIo::new(dialed.stream)).await.map_err(broken)?;
    drive(tasks, closed, connection);
    Ok(Sender::One(sender))
}

fn drive<C>(tasks: &TaskGroup, closed: CancellationToken, connection: C)
where
    C: Future<Output = Result<(), hyper::Error>> + Send + 'static,
{
    tasks.spawn_cancellable("http-connection", async move {
        tokio::select! {
            biased;
            () = closed.cancelled() => {}
            result = connection => {
                if let Err(error) = result {
                    tracing::debug!(%error, "Connection to the API server ended");
                }
            }
        }
    });
}

/// Why a request was not answered, with the request when it is certain that it was not sent.
pub(crate) struct Unsent {
    pub(crate) request: Option<Message>,
    pub(crate) error: TransportError,
}

fn unsent(mut error: TrySendError<Message>) -> Unsent {
    match error.take_message() {
        Some(request) => Unsent { request: Some(request), error: TransportError::NotSent },
        None => Unsent { request: None, error: TransportError::Broken(error.into_error().into()) },
    }
}

/// Sends a request on a connection. An HTTP/1.1 connection goes back to the pool when the body was read to its end.
pub(crate) async fn exchange(
    sender: Sender,
    request: Message,
    pool: &Arc<Pool>,
) -> Result<http::Response<Body>, Unsent> {
    match sender {
        Sender::Many(mut shared) => {
            let busy = Busy::new(&shared.active);
            let response = shared.sender.try_send_request(request).await.map_err(unsent)?;
            Ok(response.map(|body| Leased { body, lease: Lease::Stream(busy) }.boxed_unsync()))
        }
        Sender::One(mut sender) => {
            if let Err(error) = sender.ready().await {
                let error = TransportError::Broken(error.into());
                return Err(Unsent { request: Some(request), error });
            }
            let response = sender.try_send_request(request).await.map_err(unsent)?;
            let lease = Lease::Connection(Some((sender, Arc::clone(pool))));
            Ok(response.map(|body| Leased { body, lease }.boxed_unsync()))
        }
    }
}

/// Counts one request on an HTTP/2 connection.
struct Busy(Arc<AtomicUsize>);

impl Busy {
    fn new(active: &Arc<AtomicUsize>) -> Self {
        active.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(active))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

enum Lease {
    Stream(#[expect(dead_code, reason = "held for its drop")] Busy),
    Connection(Option<(http1::SendRequest<Full<Bytes>>, Arc<Pool>)>),
}

/// A response's body that holds on to its place on the connection.
struct Leased {
    body: Incoming,
    lease: Lease,
}

impl http_body::Body for Leased {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none()
            && let Lease::Connection(held) = &mut self.lease
            && let Some((sender, pool)) = held.take()
        {
            pool.give_back(sender);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        // The end must be seen by polling, so that the connection goes back to the pool.
        false
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
