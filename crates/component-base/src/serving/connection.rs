//! One connection, from the handshake to its end.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use base::{CancellationToken, Gathered, TaskGroup};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{StatusCode, header};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::expiry::{Expiry, TakenBy};
use super::newcomers::Newcomer;
use super::server::{Limits, Security, Server};
use super::{Body, BoxError, Handler, Request, Response, expiry, text};

/// How often, at least, a connection looks whether it is idle; also the time an idle one gets to say goodbye.
const IDLE_CHECK: Duration = Duration::from_secs(10);
/// Kernel keep-alive of TCP connections, as upstream sets it.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(180);
/// HTTP/2 pings on a connection without traffic, and how long their answer may take.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Headers of an HTTP/1.1 request. Go bounds only their size; impersonation can need more than hyper's 100.
const HTTP1_HEADERS: usize = 256;
/// Streams reset by the peer that may wait to be accepted; bounds a rapid-reset attack.
const PENDING_RESETS: usize = 20;

/// The client's chain, leaf first, as it was sent: nobody has verified it but for the handshake's signature. Absent
/// when the client showed none.
#[derive(Debug, Clone)]
pub struct PeerCertificates(pub Arc<[CertificateDer<'static>]>);

impl Deref for PeerCertificates {
    type Target = [CertificateDer<'static>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// The client's address, in the extensions of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteAddr(pub SocketAddr);

/// The server's address of this connection, in the extensions of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalAddr(pub SocketAddr);

/// The name that the client asked for in the handshake, in the extensions of each request when there was one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SniName(pub Arc<str>);

/// Ends the connection after the requests that are running (HTTP/2 GOAWAY); in the extensions of each request.
#[derive(Debug, Clone, Default)]
pub struct GoAway(Arc<Notify>);

impl GoAway {
    /// Asks the client to open a new connection for its next request.
    pub fn send(&self) {
        self.0.notify_one();
    }
}

/// What all connections of a server share.
pub(super) struct Connections {
    pub(super) server: Server,
    pub(super) requests: TaskGroup,
    pub(super) abort: CancellationToken,
}

impl Connections {
    pub(super) fn refused(&self, remote: SocketAddr) {
        if let Some(counter) = &self.server.counters.refused {
            counter.inc();
        }
        tracing::debug!(%remote, "Too many connections of unknown clients from this address");
    }

    fn handshake_failed(&self, remote: RemoteAddr, error: &dyn std::fmt::Display) {
        if let Some(counter) = &self.server.counters.handshake_errors {
            counter.inc();
        }
        tracing::info!(remote = %remote.0, error = %error, "http: TLS handshake error");
    }
}

/// What is known about one connection.
#[derive(Clone)]
struct Peer {
    remote: RemoteAddr,
    local: Option<LocalAddr>,
    certificates: Option<PeerCertificates>,
    sni: Option<SniName>,
    go_away: GoAway,
    newcomer: Newcomer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

/// Serves one accepted connection until it ends, `drain` has let it finish, or it is aborted.
pub(super) async fn serve(
    cx: Arc<Connections>,
    (stream, remote): (TcpStream, SocketAddr),
    newcomer: Newcomer,
    drain: CancellationToken,
) {
    tune(&stream);
    let mut peer = Peer {
        remote: RemoteAddr(canonical(remote)),
        local: stream.local_addr().ok().map(|local| LocalAddr(canonical(local))),
        certificates: None,
        sni: None,
        go_away: GoAway::default(),
        newcomer,
    };
    let Security::Tls(tls) = &cx.server.security else {
        return run(cx, stream, peer, Protocol::Http1, drain).await;
    };
    let accept = TlsAcceptor::from(tls.config()).accept(stream);
    let stream = tokio::select! {
        biased;
        () = drain.cancelled() => return,
        accepted = tokio::time::timeout(cx.server.limits.handshake, accept) => match accepted {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return cx.handshake_failed(peer.remote, &error),
            Err(elapsed) => return cx.handshake_failed(peer.remote, &elapsed),
        },
    };
    let (_, session) = stream.get_ref();
    peer.certificates = session
        .peer_certificates()
        .filter(|chain| !chain.is_empty())
        .map(|chain| PeerCertificates(chain.iter().map(|certificate| certificate.clone().into_owned()).collect()));
    peer.sni = session.server_name().map(|name| SniName(name.into()));
    let protocol = if session.alpn_protocol() == Some(b"h2") { Protocol::Http2 } else { Protocol::Http1 };
    run(cx, stream, peer, protocol, drain).await;
}

/// Serves a client of a Unix socket, who has no address.
pub(super) async fn serve_local(cx: Arc<Connections>, stream: UnixStream, drain: CancellationToken) {
    let nowhere = SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 0);
    let peer = Peer {
        remote: RemoteAddr(nowhere),
        local: None,
        certificates: None,
        sni: None,
        go_away: GoAway::default(),
        newcomer: Newcomer::default(),
    };
    run(cx, stream, peer, Protocol::Http1, drain).await;
}

/// Errors here cost only speed or the detection of dead peers, so they are not worth a connection.
fn tune(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = socket2::SockRef::from(stream)
        .set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(TCP_KEEP_ALIVE).with_interval(TCP_KEEP_ALIVE));
}

/// An IPv4 client of a socket for both families shows as `::ffff:a.b.c.d`; users expect `a.b.c.d`.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

async fn run<S>(cx: Arc<Connections>, stream: S, peer: Peer, protocol: Protocol, drain: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(Activity::new());
    let go_away = peer.go_away.clone();
    let remote = peer.remote.0;
    let service = hyper::service::service_fn({
        let (cx, activity) = (Arc::clone(&cx), Arc::clone(&activity));
        // On the heap: what hyper and the runtime hand on of a stream, they copy.
        move |request| Box::pin(answer(Arc::clone(&cx), Arc::clone(&activity), peer.clone(), request))
    });
    let builder = builder(&cx.server.limits, protocol, cx.requests.clone());
    // What takes a connection of HTTP/1.1 over need not flush what it writes.
    let company = {
        let activity = Arc::clone(&activity);
        move || protocol == Protocol::Http2 && activity.handlers.load(Ordering::Relaxed) > 0
    };
    let stream = TokioIo::new(Gathered::new(stream, company));
    let mut connection = pin!(builder.serve_connection_with_upgrades(stream, service));
    let mut draining = false;
    let check = IDLE_CHECK.min(cx.server.limits.idle / 2).max(Duration::from_millis(1));
    let mut ticks = tokio::time::interval_at(Instant::now() + check, check);
    loop {
        let finish = tokio::select! {
            biased;
            () = cx.abort.cancelled() => return,
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%remote, %error, "connection ended");
                }
                return;
            }
            () = drain.cancelled(), if !draining => true,
            () = go_away.0.notified(), if !draining => true,
            _ = ticks.tick() => {
                if activity.taken_by.has_passed() {
                    activity.taken_by.cut();
                    return;
                }
                let idle = activity.idle();
                if draining && idle.is_some_and(|idle| idle >= check) {
                    return;
                }
                idle.is_some_and(|idle| idle >= cx.server.limits.idle)
            }
        };
        if finish && !draining {
            draining = true;
            connection.as_mut().graceful_shutdown();
        }
    }
}

/// The protocol is known from the handshake, so hyper never has to guess it from bytes that might not come.
fn builder(limits: &Limits, protocol: Protocol, requests: TaskGroup) -> auto::Builder<GroupExecutor> {
    let mut builder = auto::Builder::new(GroupExecutor(requests));
    builder = if protocol == Protocol::Http2 { builder.http2_only() } else { builder.http1_only() };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_read)
        .max_headers(HTTP1_HEADERS)
        .max_buf_size(limits.header_bytes as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .initial_stream_window_size(limits.stream_window_bytes)
        .initial_connection_window_size(limits.stream_window_bytes.saturating_mul(limits.streams).min(i32::MAX as u32))
        .max_header_list_size(limits.header_bytes)
        .max_send_buf_size(SEND_BUFFER_BYTES)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

async fn answer(
    cx: Arc<Connections>,
    activity: Arc<Activity>,
    peer: Peer,
    request: http::Request<Incoming>,
) -> Result<Response, Infallible> {
    let busy = Busy::new(activity);
    let go_away = peer.go_away.clone();
    let mut request: Request = request.map(|body| body.map_err(|error| -> BoxError { error.into() }).boxed_unsync());
    let extensions = request.extensions_mut();
    extensions.insert(peer.remote);
    extensions.insert(peer.go_away);
    extensions.insert(peer.newcomer);
    if let Some(local) = peer.local {
        extensions.insert(local);
    }
    if let Some(certificates) = peer.certificates {
        extensions.insert(certificates);
    }
    if let Some(name) = peer.sni {
        extensions.insert(name);
    }
    let is_http2 = request.version() == http::Version::HTTP_2;
    let mut response = {
        let _handling = Handling::new(&busy.0.handlers);
        if is_rooted(&request) {
            guarded(cx.server.handler.as_ref(), request).await
        } else {
            let mut refusal = text(StatusCode::BAD_REQUEST, "400 Bad Request: the path does not start with a slash");
            refusal.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
            refusal
        }
    };
    // Go turns this header, which HTTP/2 does not know, into the end of the connection.
    if is_http2 && response.headers_mut().remove(header::CONNECTION).is_some_and(|value| value == "close") {
        go_away.send();
    }
    if let Some(taken_by) = response.extensions_mut().remove::<TakenBy>() {
        // A stream has an end of its own; a connection of HTTP/1.1 has one answer at a time.
        if is_http2 { expiry::set_for_stream(taken_by) } else { busy.0.taken_by.set(taken_by) }
    }
    Ok(response.map(|body| BusyBody { body, rest: Bytes::new(), cuts: is_http2, _busy: busy }.boxed_unsync()))
}

/// Whether the path is one: what starts without a slash would be one thing to who authorizes and another to who routes.
fn is_rooted(request: &Request) -> bool {
    let path = request.uri().path();
    path.starts_with('/') || path == "*" || request.method() == http::Method::CONNECT
}

/// Turns a panic of the handler into an answer.
async fn guarded(handler: &dyn Handler, request: Request) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    match AssertUnwindSafe(handler.handle(request)).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            let reason = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            tracing::error!(request = %format!("{method} {}", uri.path()), panic = %reason, "Observed a panic");
            text(StatusCode::INTERNAL_SERVER_ERROR, "This request caused a panic. Look in the logs for details.\n")
        }
    }
}

/// Runs hyper's tasks (one per HTTP/2 stream) where shutdown can see them.
#[derive(Clone)]
struct GroupExecutor(TaskGroup);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for GroupExecutor {
    fn execute(&self, future: F) {
        self.0.spawn("request", expiry::bounded(future));
    }
}

/// How busy a connection is.
struct Activity {
    /// How many requests are being answered, or since when there is none.
    answering: Mutex<(usize, Instant)>,
    /// How many of them have no answer yet.
    handlers: AtomicUsize,
    /// When the answer of a connection of HTTP/1.1 must have been taken.
    taken_by: Expiry,
}

impl Activity {
    fn new() -> Self {
        Self { answering: Mutex::new((0, Instant::now())), handlers: AtomicUsize::new(0), taken_by: Expiry::default() }
    }

    /// For how long there has been no request; none while there is one.
    fn idle(&self) -> Option<Duration> {
        let (running, since) = *self.answering.lock();
        (running == 0).then(|| since.elapsed())
    }
}

/// A request whose handler is at work.
struct Handling<'a>(&'a AtomicUsize);

impl<'a> Handling<'a> {
    fn new(handlers: &'a AtomicUsize) -> Self {
        handlers.fetch_add(1, Ordering::Relaxed);
        Self(handlers)
    }
}

impl Drop for Handling<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that is being answered, until its body has been sent.
struct Busy(Arc<Activity>);

impl Busy {
    fn new(activity: Arc<Activity>) -> Self {
        activity.answering.lock().0 += 1;
        Self(activity)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.taken_by.clear();
        let mut activity = self.0.answering.lock();
        activity.0 = activity.0.saturating_sub(1);
        activity.1 = Instant::now();
    }
}

/// How much of an answer the HTTP/2 library keeps until the client takes it. Once it has all of an answer nobody waits for
/// the end of it any more, so that this is what a client can leave lying around.
const SEND_BUFFER_BYTES: usize = 128 * 1024;
/// How much of an answer it is given at a time: it takes whatever it gets, however little room it has.
const PIECE_BYTES: usize = 32 * 1024;

/// A response's body that keeps its connection busy.
struct BusyBody {
    body: Body,
    /// What is left of a frame that was cut.
    rest: Bytes,
    /// Whether large frames are cut.
    cuts: bool,
    _busy: Busy,
}

impl http_body::Body for BusyBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if !self.rest.is_empty() {
            let length = self.rest.len().min(PIECE_BYTES);
            return Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))));
        }
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(mut data) if self.cuts && data.len() > PIECE_BYTES => {
                self.rest = data.split_off(PIECE_BYTES);
                Frame::data(data)
            }
            Ok(data) => Frame::data(data),
            Err(frame) => frame,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.body.size_hint(), u64::try_from(self.rest.len()).unwrap_or(u64::MAX));
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}
