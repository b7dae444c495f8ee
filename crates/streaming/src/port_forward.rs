//! The server's side of port-forward: SPDY (plain or tunnelled in a WebSocket) and the old WebSocket form.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base::TaskGroup;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::tungstenite::protocol::Role as SocketRole;

use crate::pipe::{BoxRead, BoxWrite};
use crate::protocol::Subprotocol;
use crate::spdy::{self, IncomingStream, Stream};
use crate::websocket;
use crate::{ForwardDialect, SessionOptions, WebSocketIo};

/// How long the second stream of a pair may take.
const PAIR_TIMEOUT: Duration = Duration::from_secs(30);
/// Pairs that may wait for their second stream.
const MAX_HALF_PAIRS: usize = 128;
/// Ports of one old WebSocket port-forward; two channels each, in one byte, below the close signal.
const MAX_WEBSOCKET_PORTS: usize = 64;

/// A port-forward session with a client. Dropping it closes the connection once its forwards are dropped.
pub struct PortForward {
    source: Source,
}

enum Source {
    Spdy { incoming: spdy::Incoming, pairs: HashMap<String, HalfPair>, peer: String },
    WebSocket { ports: VecDeque<Forward>, closed: base::CancellationToken },
}

#[derive(Default)]
struct HalfPair {
    error: Option<Stream>,
    data: Option<(Stream, u16)>,
    deadline: Option<Instant>,
}

/// One TCP connection that the client wants into the pod.
pub struct Forward {
    /// The port inside the pod, never 0.
    pub port: u16,
    /// The connection's bytes. Use it as a reader and writer.
    pub data: ForwardData,
    error: ForwardError,
}

/// Both directions of a forwarded connection.
pub enum ForwardData {
    /// A SPDY stream.
    Spdy(Stream),
    /// A pair of channel halves.
    Channel(BoxRead, BoxWrite),
}

enum ForwardError {
    Spdy(Stream),
    Channel(BoxWrite),
}

impl PortForward {
    /// Starts a session on an upgraded connection. `peer` is the client's address, for texts; `ports` are those of the
    /// query, which only the old WebSocket form uses. The connection runs in `group`.
    pub async fn start<Io>(
        io: Io,
        dialect: ForwardDialect,
        ports: &[u16],
        peer: &str,
        options: SessionOptions,
        group: &TaskGroup,
    ) -> Self
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        match dialect {
            ForwardDialect::Spdy => Self::over_spdy(io, peer, options, group),
            ForwardDialect::Tunnel => Self::over_spdy(WebSocketIo::server(io).await, peer, options, group),
            ForwardDialect::WebSocket(subprotocol) => {
                Self::over_websocket(io, subprotocol, ports, options, group).await
            }
        }
    }

    fn over_spdy<Io>(io: Io, peer: &str, options: SessionOptions, group: &TaskGroup) -> Self
    where
        Io: AsyncRead + AsyncWrite + Send + 'static,
    {
        let spdy_options = spdy::Options { ping_interval: None, idle_timeout: options.idle_timeout };
        let (_, incoming, driver) = spdy::start(io, spdy::Role::Server, spdy_options);
        group.spawn_cancellable("port-forward-spdy", async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "port-forward connection ended");
            }
        });
        Self { source: Source::Spdy { incoming, pairs: HashMap::new(), peer: peer.to_owned() } }
    }

    async fn over_websocket<Io>(
        io: Io,
        subprotocol: Subprotocol,
        ports: &[u16],
        options: SessionOptions,
        group: &TaskGroup,
    ) -> Self
    where
        Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let numbered: Vec<(u8, u16)> =
            (0_u8..).step_by(2).zip(ports.iter().copied()).take(MAX_WEBSOCKET_PORTS).collect();
        let config = websocket::Config {
            encoding: subprotocol.encoding,
            close_signals: false,
            inputs: numbered.iter().map(|(channel, _)| *channel).collect(),
            ping_interval: None,
            read_deadline: None,
            write_deadline: None,
            idle_timeout: options.idle_timeout,
        };
        let (mut channels, driver) = websocket::start(io, SocketRole::Server, config).await;
        let closed = base::CancellationToken::new();
        let ended = closed.clone().drop_guard();
        group.spawn_cancellable("port-forward-websocket", async move {
            let _ended = ended;
            if let Err(error) = driver.await {
                tracing::debug!(%error, "port-forward connection ended");
            }
        });
        let mut forwards = VecDeque::new();
        for (channel, port) in numbered {
            let Some(reader) = channels.take_reader(channel) else { continue };
            let (mut data, mut error) = (channels.writer(channel), channels.writer(channel + 1));
            // Both channels start with the port, so that the client knows which is which.
            let announced = async {
                data.write_all(&port.to_le_bytes()).await?;
                error.write_all(&port.to_le_bytes()).await
            };
            if announced.await.is_ok() {
                let data = ForwardData::Channel(Box::pin(reader), Box::pin(data));
                forwards.push_back(Forward { port, data, error: ForwardError::Channel(Box::pin(error)) });
            }
        }
        Self { source: Source::WebSocket { ports: forwards, closed } }
    }

    /// The next connection to forward; `None` when the client has gone. Handle each in a task of its own.
    pub async fn next(&mut self) -> Option<Forward> {
        match &mut self.source {
            Source::WebSocket { ports, closed } => match ports.pop_front() {
                Some(forward) => Some(forward),
                // The connection stays while its forwards run and closes with the last one.
                None => {
                    closed.cancelled().await;
                    None
                }
            },
            Source::Spdy { incoming, pairs, peer } => loop {
                let deadline = pairs.values().filter_map(|pair| pair.deadline).min();
                tokio::select! {
                    stream = incoming.next() => {
                        if let Some(forward) = pair_up(pairs, stream?).await {
                            return Some(forward);
                        }
                    }
                    () = until(deadline) => expire(pairs, peer).await,
                }
            },
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Puts a new stream with its sibling; a whole pair is a forward.
async fn pair_up(pairs: &mut HashMap<String, HalfPair>, stream: IncomingStream) -> Option<Forward> {
    let (is_error, port) = match check(&stream) {
        Ok(checked) => checked,
        Err(reason) => {
            tracing::debug!(%reason, "port-forward stream refused");
            stream.refuse();
            return None;
        }
    };
    let request = request_id(&stream, is_error);
    if !pairs.contains_key(&request) && pairs.len() >= MAX_HALF_PAIRS {
        stream.refuse();
        return None;
    }
    let pair = pairs.entry(request.clone()).or_default();
    pair.deadline.get_or_insert_with(|| Instant::now() + PAIR_TIMEOUT);
    if (is_error && pair.error.is_some()) || (!is_error && pair.data.is_some()) {
        tracing::debug!(request, "error or data stream already assigned");
        stream.refuse();
        return None;
    }
    let stream = stream.accept().await.ok()?;
    if is_error {
        pair.error = Some(stream);
    } else {
        pair.data = Some((stream, port));
    }
    let (Some(_), Some(_)) = (&pair.error, &pair.data) else { return None };
    let whole = pairs.remove(&request)?;
    let (error, (data, port)) = (whole.error?, whole.data?);
    Some(Forward { port, data: ForwardData::Spdy(data), error: ForwardError::Spdy(error) })
}

/// Why a stream, or a request for ports, is refused, in upstream's words: the client is shown them.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// A stream does not say what it is.
    #[error("{0:?} header is required")]
    NoHeader(&'static str),
    /// A stream is neither for data nor for errors.
    #[error("invalid stream type {0:?}")]
    StreamType(String),
    /// A port is 0.
    #[error("port {0:?} must be > 0")]
    Zero(String),
    /// A port is no number of 16 bits.
    #[error("unable to parse {0:?} as a port: {1}")]
    Number(String, std::num::ParseIntError),
    /// The query has a port without a number.
    #[error("query parameter \"port\" cannot be empty")]
    EmptyParameter,
    /// The query names no port.
    #[error("query parameter \"port\" is required")]
    NoParameter,
    /// The query names too many.
    #[error("at most {MAX_WEBSOCKET_PORTS} ports can be forwarded over one WebSocket")]
    TooMany,
}

/// Whether it is an error stream, and its port; or why it is refused.
fn check(stream: &IncomingStream) -> Result<(bool, u16), PortError> {
    let port = stream.header("port").filter(|text| !text.is_empty()).ok_or(PortError::NoHeader("port"))?;
    let port = parse_port(port)?;
    match stream.header("streamType").unwrap_or_default() {
        "" => Err(PortError::NoHeader("streamType")),
        "error" => Ok((true, port)),
        "data" => Ok((false, port)),
        other => Err(PortError::StreamType(other.to_owned())),
    }
}

/// A port number as clients write it.
fn parse_port(text: &str) -> Result<u16, PortError> {
    match text.parse::<u16>() {
        Ok(0) => Err(PortError::Zero(text.to_owned())),
        Ok(port) => Ok(port),
        Err(error) => Err(PortError::Number(text.to_owned(), error)),
    }
}

/// The ports of the query values of `port`, each a comma list, as the old WebSocket form needs them.
///
/// # Errors
/// When there is none or one is not a port.
pub fn query_ports<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Vec<u16>, PortError> {
    let mut ports = Vec::new();
    for text in values.into_iter().flat_map(|value| value.split(',')) {
        if text.is_empty() {
            return Err(PortError::EmptyParameter);
        }
        ports.push(parse_port(text)?);
    }
    if ports.is_empty() {
        return Err(PortError::NoParameter);
    }
    if ports.len() > MAX_WEBSOCKET_PORTS {
        return Err(PortError::TooMany);
    }
    Ok(ports)
}

/// The pair's id; old clients give none, then the error stream's own id is it and the data stream follows.
fn request_id(stream: &IncomingStream, is_error: bool) -> String {
    match stream.header("requestID") {
        Some(id) if !id.is_empty() => id.to_owned(),
        _ if is_error => stream.id().to_string(),
        _ => stream.id().saturating_sub(2).to_string(),
    }
}

/// Gives up pairs whose second stream did not come.
async fn expire(pairs: &mut HashMap<String, HalfPair>, peer: &str) {
    let now = Instant::now();
    let late: Vec<String> =
        pairs.iter().filter(|(_, pair)| pair.deadline.is_some_and(|at| at <= now)).map(|(id, _)| id.clone()).collect();
    for id in late {
        let Some(pair) = pairs.remove(&id) else { continue };
        if let Some(mut error) = pair.error {
            let text = format!("(conn={peer}, request={id}) timed out waiting for streams");
            let _ = error.write_all(text.as_bytes()).await;
            error.reset();
        }
        if let Some((data, _)) = pair.data {
            data.reset();
        }
    }
}

impl Forward {
    /// Reports why the forward failed and ends it.
    pub async fn fail(mut self, text: &str) {
        let write = match &mut self.error {
            ForwardError::Spdy(stream) => stream.write_all(text.as_bytes()).await,
            ForwardError::Channel(writer) => writer.write_all(text.as_bytes()).await,
        };
        if let Err(error) = write {
            tracing::debug!(%error, "cannot report a failed port-forward");
        }
        self.finish();
    }

    /// Ends the forward after what was written so far, in both directions.
    pub fn finish(self) {
        if let ForwardData::Spdy(data) = self.data {
            data.reset();
        }
        if let ForwardError::Spdy(error) = self.error {
            error.reset();
        }
    }
}

impl AsyncRead for ForwardData {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Spdy(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Channel(reader, _) => reader.as_mut().poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for ForwardData {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Spdy(stream) => Pin::new(stream).poll_write(cx, data),
            Self::Channel(_, writer) => writer.as_mut().poll_write(cx, data),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Spdy(stream) => Pin::new(stream).poll_flush(cx),
            Self::Channel(_, writer) => writer.as_mut().poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Spdy(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Channel(_, writer) => writer.as_mut().poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_ports_are_checked() {
        assert_eq!(query_ports(["80,443", "53"]).unwrap(), [80, 443, 53]);
        let cases: [(&[&str], &str); 3] = [
            (&[], "query parameter \"port\" is required"),
            (&["80,"], "query parameter \"port\" cannot be empty"),
            (&["0"], "port \"0\" must be > 0"),
        ];
        for (values, text) in cases {
            assert_eq!(query_ports(values.iter().copied()).unwrap_err().to_string(), text);
        }
        assert!(query_ports(["x"]).unwrap_err().to_string().starts_with("unable to parse \"x\" as a port: "));
    }
}
