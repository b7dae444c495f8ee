//! The client's side of the HTTP upgrade, over a connection that the caller has dialled. Redirects are never followed.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use base::Rng;
use base64::Engine as _;
use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, HOST, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode, response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::handshake::{UpgradedIo, is_spdy, is_websocket, subprotocols, value};
use crate::protocol::{SPDY, STREAM_PROTOCOL_VERSION};

/// The most bytes of a refusal's body that are read.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// How long reading a refusal's body may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of the answer's head.
const MAX_HEAD_BYTES: usize = 1024 * 1024;

/// Why an upgrade did not come about.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The request could not be sent or the answer not be read.
    #[error("error sending request: {0}")]
    Send(#[from] hyper::Error),
    /// The server answered with something other than 101.
    #[error("unable to upgrade connection: {}", .0.message())]
    Refused(Box<Refused>),
    /// The server answered 101 without the upgrade that was asked for.
    #[error("unable to upgrade connection: ")]
    MissingUpgrade,
    /// The server chose a protocol that was not offered.
    #[error("invalid protocol, expected one of [{}], got {chosen:?}", offered.join(" "))]
    Protocol {
        /// What was offered.
        offered: Vec<String>,
        /// What came back.
        chosen: String,
    },
}

/// An answer other than 101.
#[derive(Debug)]
pub struct Refused {
    /// Status and headers.
    pub parts: response::Parts,
    /// The beginning of the body.
    pub body: Bytes,
}

impl Refused {
    /// The message of an API Status in the body, or the body's text.
    #[must_use]
    pub fn message(&self) -> String {
        let status: Option<Value> = serde_json::from_slice(&self.body).ok();
        let message = status.as_ref().and_then(|status| status.get("message")).and_then(Value::as_str);
        match message {
            Some(message) => message.to_owned(),
            None => String::from_utf8_lossy(&self.body).trim().to_owned(),
        }
    }
}

/// A request that asks for SPDY with one of `protocols`, first preferred.
///
/// # Errors
/// When `target` or `host` is not valid in a request.
pub fn spdy_request(target: &str, host: &str, protocols: &[&str]) -> Result<Request<()>, http::Error> {
    let mut builder = Request::builder().method(Method::POST).uri(target).header(HOST, host);
    builder = builder.header(CONNECTION, "Upgrade").header(UPGRADE, SPDY).header("Content-Length", "0");
    for protocol in protocols {
        builder = builder.header(STREAM_PROTOCOL_VERSION, *protocol);
    }
    builder.body(())
}

/// A request for a WebSocket with one of `protocols`, first preferred.
///
/// # Errors
/// When `target` or `host` is not valid in a request.
pub fn websocket_request(target: &str, host: &str, protocols: &[&str], rng: &Rng) -> Result<Request<()>, http::Error> {
    let mut nonce = [0; 16];
    rng.fill(&mut nonce);
    let key = base64::engine::general_purpose::STANDARD.encode(nonce);
    let mut builder = Request::builder().method(Method::GET).uri(target).header(HOST, host);
    builder = builder.header(CONNECTION, "Upgrade").header(UPGRADE, "websocket");
    builder = builder.header("Sec-WebSocket-Version", "13").header(SEC_WEBSOCKET_KEY, key);
    if !protocols.is_empty() {
        builder = builder.header(SEC_WEBSOCKET_PROTOCOL, protocols.join(", "));
    }
    builder.body(())
}

/// Asks for SPDY and returns the connection with the protocol that the server chose; a server that names none means
/// the first generation.
///
/// # Errors
/// When the server refuses, or answers with something that was not asked for.
pub async fn dial_spdy<Io>(io: Io, request: Request<()>) -> Result<(UpgradedIo, String), DialError>
where
    Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let offered: Vec<String> = request
        .headers()
        .get_all(STREAM_PROTOCOL_VERSION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(str::to_owned)
        .collect();
    let (io, parts) = upgrade(io, request).await?;
    if !is_spdy(&parts.headers) {
        return Err(DialError::MissingUpgrade);
    }
    let chosen = parts.headers.get(STREAM_PROTOCOL_VERSION).and_then(|value| value.to_str().ok());
    let chosen = chosen.unwrap_or("channel.k8s.io").to_owned();
    if !offered.contains(&chosen) {
        return Err(DialError::Protocol { offered, chosen });
    }
    Ok((io, chosen))
}

/// Does a WebSocket handshake and returns the connection with the subprotocol that the server chose.
///
/// # Errors
/// When the server refuses, or answers with something that was not asked for.
pub async fn dial_websocket<Io>(io: Io, request: Request<()>) -> Result<(UpgradedIo, String), DialError>
where
    Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let offered: Vec<String> = subprotocols(request.headers()).into_iter().map(str::to_owned).collect();
    let key = request.headers().get(SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    let (io, parts) = upgrade(io, request).await?;
    let accept = parts.headers.get(SEC_WEBSOCKET_ACCEPT).and_then(|value| value.to_str().ok());
    if !is_websocket(&parts.headers) || accept != key.as_deref() {
        return Err(DialError::MissingUpgrade);
    }
    let chosen = subprotocols(&parts.headers).first().copied().unwrap_or_default().to_owned();
    if !offered.is_empty() && !offered.contains(&chosen) {
        return Err(DialError::Protocol { offered, chosen });
    }
    Ok((io, chosen))
}

/// Sends an upgrade request over a dialled connection; anything but 101 is [`DialError::Refused`].
///
/// # Errors
/// When the connection fails or the server refuses.
pub async fn upgrade<Io>(io: Io, request: Request<()>) -> Result<(UpgradedIo, response::Parts), DialError>
where
    Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.max_buf_size(MAX_HEAD_BYTES).title_case_headers(true);
    let (mut sender, connection) = builder.handshake(TokioIo::new(io)).await?;
    let mut connection = Connection { inner: Some(Box::pin(connection.with_upgrades())) };
    let request = request.map(|()| Empty::<Bytes>::new());
    let mut response = connection.drive(sender.send_request(request)).await?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let upgraded = connection.drive(hyper::upgrade::on(&mut response)).await?;
        return Ok((TokioIo::new(upgraded), response.into_parts().0));
    }
    let (parts, body) = response.into_parts();
    let mut bytes = BytesMut::new();
    // Whatever was read when time or room is up is enough for a text.
    let _ = timeout(REFUSAL_TIMEOUT, connection.drive(collect(body, &mut bytes))).await;
    Err(DialError::Refused(Box::new(Refused { parts, body: bytes.freeze() })))
}

async fn collect(mut body: Incoming, bytes: &mut BytesMut) {
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref() else { continue };
        let room = MAX_REFUSAL_BYTES.saturating_sub(bytes.len());
        bytes.extend_from_slice(data.get(..room).unwrap_or(data));
        if bytes.len() >= MAX_REFUSAL_BYTES {
            return;
        }
    }
}

/// The HTTP connection's own work, done while something else waits for its result.
struct Connection {
    inner: Option<ConnectionFuture>,
}

type ConnectionFuture = Pin<Box<dyn Future<Output = Result<(), hyper::Error>> + Send>>;

impl Connection {
    async fn drive<T>(&mut self, wanted: impl Future<Output = T>) -> T {
        let mut wanted = std::pin::pin!(wanted);
        if let Some(connection) = &mut self.inner {
            tokio::select! {
                biased;
                output = &mut wanted => return output,
                // Its end, good or bad, shows in what is waited for.
                _ = connection => self.inner = None,
            }
        }
        wanted.await
    }
}

/// Sets the `Host` header to `host`.
pub(crate) fn set_host(request: &mut Request<()>, host: &str) {
    request.headers_mut().insert(HOST, value(host));
}

/// The answer that passes a backend's refusal on to the client; the connection is closed after it.
#[must_use]
pub fn pass_on<B: From<Bytes>>(refused: Refused) -> Response<B> {
    let Refused { mut parts, body } = refused;
    for name in ["connection", "transfer-encoding", "content-length", "upgrade", "keep-alive"] {
        parts.headers.remove(name);
    }
    parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    parts.version = http::Version::HTTP_11;
    Response::from_parts(parts, B::from(body))
}
