//! gRPC's way to one member: a connection of HTTP/2 that is made when it is first needed, and again when it broke.
//!
//! What is known of a request when it is made leaves in one write, head, message and end; any other call than a watch
//! is all of it. Apart, as hyper sends them, each wakes the member for a third of a request.

mod answer;
mod dial;
mod target;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use base::TaskGroup;
use base::trace::{self, Kind, Span};
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use h2::client::SendRequest;
use h2::{Reason, SendStream};
use http::{Request, Response};
use http_body::Body as _;
use parking_lot::Mutex;
use tonic::Status;
use tonic::body::Body;
use tower::{BoxError, Service};

use self::dial::DialError;
pub(super) use self::target::Target;

/// A connection to be, the same for all who wait for it.
type Dial = Shared<BoxFuture<'static, Result<SendRequest<Bytes>, DialError>>>;

/// The transport of etcd's clients. Clones share the connection.
#[derive(Clone)]
pub(super) struct Transport {
    target: Arc<Target>,
    tasks: TaskGroup,
    calls: Calls,
    dial: Arc<Mutex<Option<Dial>>>,
}

/// How many calls a connection has that are not answered; clones share the count.
#[derive(Clone, Default)]
struct Calls(Arc<AtomicUsize>);

/// A call that is not answered.
struct Calling(Calls);

impl Calls {
    fn begin(&self) -> Calling {
        self.0.fetch_add(1, Ordering::Relaxed);
        Calling(self.clone())
    }

    /// Whether there are several, so that one may wait a moment for the others.
    fn are_many(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Transport {
    /// A transport without a connection yet; the tasks of its connections belong to `tasks`.
    pub(super) fn new(target: Arc<Target>, tasks: TaskGroup) -> Self {
        Self { target, tasks, calls: Calls::default(), dial: Arc::default() }
    }

    async fn call(self, mut request: Request<Body>) -> Result<Response<Body>, Status> {
        let mut span = call_span(request.uri());
        trace::inject(&span, request.headers_mut());
        let outcome = self.ask(request).await;
        if let (Err(status), true) = (&outcome, span.is_recorded()) {
            span.fail(status.message());
        }
        outcome
    }

    async fn ask(self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let _calling = self.calls.begin();
        let (mut head, body) = request.into_parts();
        head.uri = self.target.uri(&head.uri).map_err(|error| Status::internal(error.to_string()))?;
        let head = Request::from_parts(head, ());
        let (response, stream) = self.sender().await?.send_request(head, false).map_err(|error| broken(&error))?;
        let mut sending = Box::pin(send(body, stream));
        if sending.as_mut().now_or_never().is_none() {
            self.tasks.spawn_cancellable("etcd-requests", sending);
        }
        let (head, stream) = response.await.map_err(|error| broken(&error))?.into_parts();
        Ok(Response::from_parts(head, Body::new(answer::Answer::new(stream))))
    }

    /// A connection that takes one more request: the one there is, or, where that one ended, a new one.
    async fn sender(&self) -> Result<SendRequest<Bytes>, Status> {
        match self.connected().await? {
            Ok(sender) => Ok(sender),
            Err(ended) => {
                tracing::debug!(%ended, "The connection to etcd ended");
                self.connected().await?.map_err(|error| broken(&error))
            }
        }
    }

    /// The connection there is, made if there is none. The inner error is that of one that has ended meanwhile; the
    /// next call makes another.
    async fn connected(&self) -> Result<Result<SendRequest<Bytes>, h2::Error>, Status> {
        let dial = self.dial();
        let ready = match dial.clone().await {
            Ok(sender) => Ok(sender.ready().await),
            Err(error) => Err(Status::unavailable(error.to_string())),
        };
        if !matches!(ready, Ok(Ok(_))) {
            self.forget(&dial);
        }
        ready
    }

    fn dial(&self) -> Dial {
        let mut dial = self.dial.lock();
        let begin = || dial::dial(Arc::clone(&self.target), self.tasks.clone(), self.calls.clone()).boxed().shared();
        dial.get_or_insert_with(begin).clone()
    }

    /// Lets the next request connect anew, unless another request saw to it already.
    fn forget(&self, ended: &Dial) {
        let mut dial = self.dial.lock();
        if dial.as_ref().is_some_and(|dial| dial.ptr_eq(ended)) {
            *dial = None;
        }
    }
}

/// The span of a call on behalf of a traced request, by the name of what is called (`etcdserverpb.KV/Txn`).
fn call_span(uri: &http::Uri) -> Span {
    match trace::current() {
        Some(scope) => scope.child(uri.path().trim_start_matches('/').to_owned(), Kind::Client),
        None => Span::none(),
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(Self::call(self.clone(), request).map(|answer| answer.map_err(Into::into)))
    }
}

fn broken(error: &h2::Error) -> Status {
    Status::unavailable(error.to_string())
}

/// Sends a body as it comes; the last message carries the end where that is known by then.
async fn send(mut body: Body, mut stream: SendStream<Bytes>) {
    if let Err(error) = send_all(&mut body, &mut stream).await {
        tracing::debug!(%error, "A request to etcd was not sent to its end");
        stream.send_reset(Reason::CANCEL);
    }
}

async fn send_all(body: &mut Body, stream: &mut SendStream<Bytes>) -> Result<(), BoxError> {
    let mut next = message(body).await?;
    while let Some(sent) = next {
        let following = message(body).now_or_never().transpose()?;
        stream.send_data(sent, matches!(following, Some(None)))?;
        next = match following {
            Some(None) => return Ok(()),
            Some(message) => message,
            None => message(body).await?,
        };
    }
    Ok(stream.send_data(Bytes::new(), true)?)
}

/// The next message of a request; `None` at its end.
async fn message(body: &mut Body) -> Result<Option<Bytes>, Status> {
    loop {
        match std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))
            .await
            .transpose()?
            .map(http_body::Frame::into_data)
        {
            Some(Ok(data)) => return Ok(Some(data)),
            // A request has no trailers that anybody reads.
            Some(Err(_trailers)) => {}
            None => return Ok(None),
        }
    }
}
