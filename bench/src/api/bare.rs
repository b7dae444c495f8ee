//! The peer of reads and watches: a hyper server over TLS that sends bytes it was given, and does nothing else.
//!
//! `GET /{name}` answers with a body, `PUT /{name}` loads it from the directory of bodies, `GET /watch` opens a stream,
//! and `POST /{name}` sends a body to all streams.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use base::TaskGroup;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::RwLock;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::BroadcastStream;

use crate::https::GroupExecutor;
use crate::identity::Identity;

/// Events that a stream may be behind; no run sends so many in one round.
const EVENTS: usize = 4096;
/// Streams of one connection, as the API server has it.
const STREAMS: u32 = 100;

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

struct Bare {
    bodies: RwLock<HashMap<String, Bytes>>,
    directory: PathBuf,
    events: broadcast::Sender<Bytes>,
}

/// Serves until it is killed. `arguments` are the port, the directory of certificates, and that of bodies.
///
/// # Errors
/// Arguments are missing, or the port is taken.
pub async fn serve(arguments: &[OsString]) -> Result<()> {
    let [port, identity, bodies] = arguments else { anyhow::bail!("want: PORT CERTIFICATES BODIES") };
    let bare =
        Arc::new(Bare { bodies: RwLock::default(), directory: bodies.into(), events: broadcast::Sender::new(EVENTS) });
    let answer = move |request: Request<Incoming>| {
        let answer = bare.answer(&request);
        std::future::ready(answer)
    };
    listen(port, identity.as_ref(), answer).await
}

/// Serves HTTP/2 over TLS on a port of the loopback address until the process is killed.
pub(super) async fn listen<F>(
    port: &OsStr,
    identity: &Path,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) -> Result<()>
where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let port: u16 = port.to_str().and_then(|text| text.parse().ok()).context("the port is no number")?;
    let acceptor = TlsAcceptor::from(Identity::at(identity).server_tls()?);
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    let tasks = TaskGroup::new("bare");
    loop {
        let (stream, _) = listener.accept().await?;
        let (acceptor, answer, group) = (acceptor.clone(), answer.clone(), tasks.clone());
        tasks.spawn("connection", async move {
            // The client sees how its connection ended.
            let _end = connection(acceptor, answer, group, stream).await;
        });
    }
}

async fn connection<F>(
    acceptor: TlsAcceptor,
    answer: impl Fn(Request<Incoming>) -> F + Send,
    tasks: TaskGroup,
    stream: TcpStream,
) -> Result<()>
where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    stream.set_nodelay(true)?;
    let stream = acceptor.accept(stream).await?;
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = http2::Builder::new(GroupExecutor(tasks));
    builder.max_concurrent_streams(STREAMS).serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}

impl Bare {
    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        let name = request.uri().path().trim_start_matches('/');
        match *request.method() {
            Method::GET if name == "watch" => Response::new(self.stream()),
            Method::PUT => self.load(name),
            _ => match (self.bodies.read().get(name).cloned(), request.method()) {
                (None, _) => status(StatusCode::NOT_FOUND),
                (Some(body), &Method::POST) => {
                    // Without a stream there is nobody to tell.
                    let _streams = self.events.send(body);
                    status(StatusCode::OK)
                }
                (Some(body), _) => Response::new(Full::new(body).boxed_unsync()),
            },
        }
    }

    fn load(&self, name: &str) -> Response<Body> {
        match std::fs::read(self.directory.join(name)) {
            Ok(body) => {
                self.bodies.write().insert(name.to_owned(), body.into());
                status(StatusCode::OK)
            }
            Err(_) => status(StatusCode::NOT_FOUND),
        }
    }

    fn stream(&self) -> Body {
        let events = BroadcastStream::new(self.events.subscribe());
        // One that falls behind misses events, which the client's count shows.
        let frames = events.filter_map(|event| async move { event.ok().map(|bytes| Ok(Frame::data(bytes))) });
        StreamBody::new(frames).boxed_unsync()
    }
}

fn status(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::default().boxed_unsync());
    *response.status_mut() = code;
    response
}
