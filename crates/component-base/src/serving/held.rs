//! Keeping something alive until the answer is sent: a body with a guard.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::{Body, BoxError, Response};

struct Held<G> {
    body: Body,
    /// Gone when the body ends, though the body itself may stay around.
    guard: Option<G>,
}

/// The response, whose body drops `guard` at its end or when nobody wants it any more.
pub fn hold<G: Send + Unpin + 'static>(response: Response, guard: G) -> Response {
    response.map(|body| {
        if http_body::Body::is_end_stream(&body) {
            return body;
        }
        Held { body, guard: Some(guard) }.boxed_unsync()
    })
}

impl<G: Send + Unpin> http_body::Body for Held<G> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.guard = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
