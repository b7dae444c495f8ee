//! Passing an ordinary request on over a connection of its own, and its answer back as a stream.

use std::io;

use base::{Connection, TaskGroup};
use component_base::serving::{Body, Response};
use http::Request;
use http_body_util::BodyExt as _;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;

/// Sends a request in origin form and returns the answer as soon as its head is there.
///
/// # Errors
/// When the connection fails.
pub(crate) async fn send(io: Connection, request: Request<Body>, tasks: &TaskGroup) -> io::Result<Response> {
    let response = open(io, tasks).await?.send_request(request).await.map_err(io::Error::other)?;
    Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
}

/// Makes a connection ready for requests, one after another.
///
/// # Errors
/// When the connection fails.
pub(crate) async fn open(io: Connection, tasks: &TaskGroup) -> io::Result<SendRequest<Body>> {
    let (sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(io::Error::other)?;
    tasks.spawn_cancellable("proxied-connection", async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "A connection to a backend ended");
        }
    });
    Ok(sender)
}
