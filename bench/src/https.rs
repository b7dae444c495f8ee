//! A bare HTTP/2 client: as little as possible between the measurement and the server, and the same for both sides.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use base::TaskGroup;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Flow-control windows that never hold a server up.
const STREAM_WINDOW_BYTES: u32 = 16 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 64 << 20;

/// Runs hyper's tasks in a group.
#[derive(Clone)]
pub(crate) struct GroupExecutor(pub(crate) TaskGroup);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for GroupExecutor {
    fn execute(&self, future: F) {
        self.0.spawn("http", future);
    }
}

/// One connection; clones share it.
#[derive(Clone)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
}

/// An answer that was read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Bytes,
}

impl Answer {
    /// The body, where the status is of the 200s.
    ///
    /// # Errors
    /// Any other status, with the beginning of what the server said.
    pub fn ok(self) -> Result<Bytes> {
        let said = String::from_utf8_lossy(self.body.get(..300).unwrap_or(&self.body));
        ensure!(self.status.is_success(), "{}: {said}", self.status);
        Ok(self.body)
    }
}

impl Connection {
    /// Connects to a port of this machine.
    ///
    /// # Errors
    /// Nobody listens there, or the handshake fails.
    pub async fn open(port: u16, tls: &Arc<ClientConfig>, tasks: &TaskGroup) -> Result<Self> {
        let stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
        let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await.context("TLS handshake")?;
        let (sender, connection) = http2::Builder::new(GroupExecutor(tasks.clone()))
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .context("HTTP/2 handshake")?;
        tasks.spawn_cancellable("connection", async move {
            // How it ended shows in the requests that it carried.
            let _end = connection.await;
        });
        Ok(Self { sender })
    }

    /// Sends a request and returns the answer with its body still to come.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<http::Response<Incoming>> {
        let mut sender = self.sender.clone();
        sender.ready().await.context("waiting for a stream")?;
        sender.send_request(request).await.context("sending a request")
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn call(&self, method: Method, path: &str, media: &str, body: Bytes) -> Result<Answer> {
        let request = Request::builder()
            .method(method)
            .uri(format!("https://127.0.0.1{path}"))
            .header("accept", accepted(media))
            .header("content-type", media)
            .body(Full::new(body))?;
        let response = self.send(request).await?;
        let status = response.status();
        let mut body = response.into_body();
        // Most answers are one frame; joining many is the caller's cost on both sides alike.
        let mut whole: Vec<Bytes> = Vec::new();
        while let Some(frame) = body.frame().await {
            whole.extend(frame.context("reading the answer")?.into_data().ok());
        }
        let body = if whole.len() == 1 { whole.swap_remove(0) } else { whole.concat().into() };
        Ok(Answer { status, body })
    }
}

/// What is asked for: patches are answered as objects.
fn accepted(media: &str) -> &str {
    if media.contains("patch") { JSON } else { media }
}

/// JSON, as an object's media type.
pub const JSON: &str = "application/json";
/// Upstream's protobuf, as an object's media type.
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
