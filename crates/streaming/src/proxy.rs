//! Upgraded connections passed on: byte by byte, with a WebSocket tunnel taken off, or translated to SPDY.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderName, Method, Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use crate::command_status::{CommandStatus, StatusForm};
use crate::dial::{DialError, Refused, dial_spdy, pass_on, set_host, upgrade};
use crate::handshake::{PendingUpgrade, Refusal, tunnelled_protocols, value, websocket_response};
use crate::protocol::{SPDY, STREAM_PROTOCOL_VERSION, TUNNEL_PREFIX};
use crate::remote_client::{ClientCommand, CommandStatusError};
use crate::remote_command::RemoteCommand;
use crate::splice::splice;
use crate::websocket::WebSocketIo;

/// What to answer the client, and what to run after that.
pub enum Proxied {
    /// The backend switched protocols: send the response, then run the copy to its end.
    Switched {
        /// The 101 response.
        response: Response<()>,
        /// Copies until one side ends.
        copy: Pin<Box<dyn Future<Output = io::Result<()>> + Send>>,
    },
    /// The backend refused with an error status: send this and close the connection.
    Refused(Response<Bytes>),
}

/// Why an upgrade could not be passed on.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The backend could not be asked; a 500 to the client.
    #[error("{0}")]
    Send(DialError),
    /// The backend answered with neither 101 nor an error, for example a redirect; a 500 to the client.
    #[error("invalid upgrade response: status code {}", .0.as_u16())]
    Status(StatusCode),
    /// The backend answered 101 but not for SPDY; a 500 to the client.
    #[error("unable to upgrade: missing upgrade headers in response")]
    MissingUpgrade,
    /// The client's own request is no good; send this answer.
    #[error("{}", .0.body)]
    Client(Refusal),
}

/// As [`proxy_upgrade_while_used`], however long nothing moves.
///
/// # Errors
/// As there.
pub async fn proxy_upgrade<B, Io>(
    request: &mut Request<B>,
    backend: Io,
    target: &str,
    host: &str,
) -> Result<Proxied, ProxyError>
where
    Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    proxy_upgrade_while_used(request, backend, target, host, None).await
}

/// Passes an upgrade request on to `backend`, a dialled connection, as a request for `target` on `host`.
///
/// The caller has stripped the client's credentials and appended `X-Forwarded-For`. The backend's answer is not
/// followed anywhere: an error status is for the client, anything else but 101 an error. The copying ends when nothing
/// has moved for `idle`.
///
/// # Errors
/// When the backend cannot be asked or answers outside the protocol.
pub async fn proxy_upgrade_while_used<B, Io>(
    request: &mut Request<B>,
    backend: Io,
    target: &str,
    host: &str,
    idle: Option<Duration>,
) -> Result<Proxied, ProxyError>
where
    Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let onward = onward_request(request, target, host)?;
    let (backend, parts) = match upgrade(backend, onward).await {
        Ok(upgraded) => upgraded,
        Err(DialError::Refused(refused)) => return refused_or_invalid(*refused),
        Err(error) => return Err(ProxyError::Send(error)),
    };
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = parts.headers;
    let client = PendingUpgrade::of(request);
    let copy = async move { splice(client.io().await.map_err(io::Error::other)?, backend, idle).await };
    Ok(Proxied::Switched { response, copy: Box::pin(copy) })
}

/// As [`proxy_tunnel_while_used`], however long nothing moves.
///
/// # Errors
/// As there.
pub async fn proxy_tunnel<B, Io>(
    request: &mut Request<B>,
    backend: Io,
    target: &str,
    host: &str,
) -> Result<Proxied, ProxyError>
where
    Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    proxy_tunnel_while_used(request, backend, target, host, None).await
}

/// Takes the WebSocket off a tunnelled port-forward: the backend gets plain SPDY. The copying ends when nothing has
/// moved for `idle`.
///
/// # Errors
/// When the client's request is no tunnel, or the backend cannot be asked or answers outside the protocol.
pub async fn proxy_tunnel_while_used<B, Io>(
    request: &mut Request<B>,
    backend: Io,
    target: &str,
    host: &str,
    idle: Option<Duration>,
) -> Result<Proxied, ProxyError>
where
    Io: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let protocols = tunnelled_protocols(request.headers()).map_err(ProxyError::Client)?;
    let protocols: Vec<String> = protocols.into_iter().map(str::to_owned).collect();
    // A client that is no WebSocket client is refused before the backend hears of it.
    websocket_response(request, "").map_err(ProxyError::Client)?;
    let mut onward = onward_request(request, target, host)?;
    *onward.method_mut() = Method::POST;
    let headers = onward.headers_mut();
    let websocket_only = ["protocol", "key", "version", "extensions"].map(|part| format!("sec-websocket-{part}"));
    websocket_only.iter().for_each(|name| drop(headers.remove(name)));
    headers.insert(UPGRADE, value(SPDY));
    headers.insert(CONTENT_LENGTH, value("0"));
    for protocol in &protocols {
        headers.append(STREAM_PROTOCOL_VERSION, value(protocol));
    }
    let (backend, chosen) = match dial_spdy(backend, onward).await {
        Ok(dialled) => dialled,
        Err(DialError::Refused(refused)) => return refused_or_invalid(*refused),
        Err(DialError::MissingUpgrade) => return Err(ProxyError::MissingUpgrade),
        Err(error) => return Err(ProxyError::Send(error)),
    };
    let response = websocket_response(request, &format!("{TUNNEL_PREFIX}{chosen}")).map_err(ProxyError::Client)?;
    let client = PendingUpgrade::of(request);
    let copy = async move {
        let client = WebSocketIo::server(client.io().await.map_err(io::Error::other)?).await;
        splice(client, backend, idle).await
    };
    Ok(Proxied::Switched { response, copy: Box::pin(copy) })
}

fn refused_or_invalid(refused: Refused) -> Result<Proxied, ProxyError> {
    let status = refused.parts.status;
    if status.is_client_error() || status.is_server_error() {
        return Ok(Proxied::Refused(pass_on(refused)));
    }
    Err(ProxyError::Status(status))
}

/// The client's request for the backend: same method and headers, another target, no body.
fn onward_request<B>(request: &Request<B>, target: &str, host: &str) -> Result<Request<()>, ProxyError> {
    let invalid = |_| ProxyError::Client(Refusal::new(StatusCode::BAD_REQUEST, "invalid request target"));
    let mut onward = Request::builder().method(request.method()).uri(target).body(()).map_err(invalid)?;
    *onward.headers_mut() = request.headers().clone();
    let own: [HeaderName; 2] = [CONTENT_LENGTH, TRANSFER_ENCODING];
    own.iter().for_each(|name| drop(onward.headers_mut().remove(name)));
    set_host(&mut onward, host);
    Ok(onward)
}

/// Joins a WebSocket session with a SPDY one until the command ends or either side goes away, and reports the end, which
/// it returns where there was one.
pub async fn translate(mut front: RemoteCommand, mut back: ClientCommand) -> Option<CommandStatus> {
    let closed = front.closed();
    let (stdin, stdout, stderr) = (front.stdin.take(), front.stdout.take(), front.stderr.take());
    let (back_stdin, mut back_stdout, mut back_stderr) = (back.stdin.take(), back.stdout.take(), back.stderr.take());
    let (sizes, back_sizes) = (front.resize.take(), back.resize.take());
    let input = async {
        if let (Some(mut from), Some(mut to)) = (stdin, back_stdin) {
            // A command that ends before its input does is no error.
            let _ = tokio::io::copy(&mut from, &mut to).await;
            let _ = to.shutdown().await;
        }
        std::future::pending::<()>().await;
    };
    let resizing = async {
        if let (Some(mut from), Some(mut to)) = (sizes, back_sizes) {
            while let Some(size) = from.next().await {
                if to.send(size).await.is_err() {
                    break;
                }
            }
        }
        std::future::pending::<()>().await;
    };
    let output = async {
        let outputs = (drain(&mut back_stdout, stdout), drain(&mut back_stderr, stderr));
        let outcome = tokio::join!(outputs.0, outputs.1, back.status()).2;
        Some(outcome)
    };
    let outcome: Option<Result<CommandStatus, CommandStatusError>> = tokio::select! {
        outcome = output => outcome,
        () = input => None,
        () = resizing => None,
        () = closed.cancelled() => None,
    };
    let outcome = outcome.map(|outcome| outcome.unwrap_or_else(|error| CommandStatus::Failure(error.to_string())));
    if let Some(outcome) = &outcome {
        front.finish(outcome, StatusForm::Full).await;
    }
    back.close().await;
    outcome
}

/// Copies an output to its end; what nobody wants is thrown away. The output stays open: told of its end, a server that is
/// about to close would have something unread, and TCP then throws away what it has just said of the command's end.
async fn drain(from: &mut Option<crate::BoxRead>, to: Option<crate::BoxWrite>) {
    let Some(from) = from else { return };
    let copied = match to {
        Some(mut to) => tokio::io::copy(from, &mut to).await,
        None => tokio::io::copy(from, &mut tokio::io::sink()).await,
    };
    if let Err(error) = copied {
        tracing::debug!(%error, "an output of a remote command ended early");
    }
}
