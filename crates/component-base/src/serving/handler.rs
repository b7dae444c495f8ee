//! What answers requests.

use std::future::Future;

use super::Body;

/// A request. Its body is boxed so that the same handler runs behind a socket and behind a function call; upgrades
/// travel in the extensions (`hyper::upgrade::on`), next to who is at the other end.
pub type Request = http::Request<Body>;

/// A response.
pub type Response = http::Response<Body>;

/// Answers requests. A panic costs the request (500), not the connection.
#[async_trait::async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. Dropping the future means that the client has gone.
    async fn handle(&self, request: Request) -> Response;
}

/// A handler made of a function; see [`handler_fn`].
#[derive(Debug, Clone, Copy)]
pub struct HandlerFn<F>(F);

/// Makes a handler of an async function.
pub fn handler_fn<F, A>(function: F) -> HandlerFn<F>
where
    F: Fn(Request) -> A + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    HandlerFn(function)
}

#[async_trait::async_trait]
impl<F, A> Handler for HandlerFn<F>
where
    F: Fn(Request) -> A + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    async fn handle(&self, request: Request) -> Response {
        (self.0)(request).await
    }
}
