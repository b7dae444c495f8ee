//! Connections to another server that wait for the next request: opening one takes longer than most answers do.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base::TaskGroup;
use bytes::Bytes;
use component_base::serving::{Body, BoxError, Response, empty};
use http::{Method, Request};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::node_proxy::connection::Backend;
use crate::node_proxy::forward::open;

/// How many wait for one server, as upstream's limit for a host.
const MAX_IDLE: usize = 25;
/// How long one waits, as upstream.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// How old one may become, so that a certificate that was renewed is soon the only one in use.
const AGE_LIMIT: Duration = Duration::from_secs(5 * 60);

/// The connections to the server of one APIService that nobody uses.
#[derive(Default)]
pub(crate) struct Connections {
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    open: Open,
    since: Instant,
}

/// An open connection.
struct Open {
    sender: SendRequest<Body>,
    /// Where it leads, as that was checked.
    places: Vec<(String, u16)>,
    opened: Instant,
}

impl Open {
    fn is_good(&self, now: Instant) -> bool {
        now - self.opened < AGE_LIMIT && !self.sender.is_closed()
    }
}

impl Connections {
    /// Sends a request in origin form and returns the answer as soon as its head is there.
    ///
    /// # Errors
    /// When the connection fails.
    pub(crate) async fn send(
        self: &Arc<Self>,
        backend: &Backend,
        mut request: Request<Body>,
        tasks: &TaskGroup,
    ) -> io::Result<Response> {
        // The other side may close a connection that waits at any moment.
        while let Some(mut waiting) = self.take(&backend.way.places, Instant::now()) {
            let again = repeated(&request);
            match waiting.sender.try_send_request(request).await {
                Ok(response) => return Ok(self.leased(response, waiting)),
                Err(mut error) => match error.take_message().or(again) {
                    Some(unanswered) => request = unanswered,
                    None => return Err(io::Error::other(error.into_error())),
                },
            }
        }
        let sender = open(backend.dial().await?, tasks).await?;
        let mut fresh = Open { sender, places: backend.way.places.clone(), opened: Instant::now() };
        let response = fresh.sender.send_request(request).await.map_err(io::Error::other)?;
        Ok(self.leased(response, fresh))
    }

    fn leased(self: &Arc<Self>, response: http::Response<Incoming>, open: Open) -> Response {
        let lease = Some((open, Arc::clone(self)));
        response.map(|body| Leased { body, lease }.boxed_unsync())
    }

    /// The one that was used last: those before it end of themselves where few are needed.
    fn take(&self, places: &[(String, u16)], now: Instant) -> Option<Open> {
        let mut idle = self.idle.lock();
        idle.retain(|own| now - own.since < IDLE_LIMIT && own.open.is_good(now));
        let at = idle.iter().rposition(|own| own.open.places == places && own.open.sender.is_ready())?;
        Some(idle.remove(at).open)
    }

    fn give_back(&self, open: Open) {
        let (now, mut idle) = (Instant::now(), self.idle.lock());
        if open.is_good(now) && idle.len() < MAX_IDLE {
            idle.push(Idle { open, since: now });
        }
    }
}

/// The same request once more, where it does not matter whether it arrived.
fn repeated(request: &Request<Body>) -> Option<Request<Body>> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_read || !request.body().is_end_stream() {
        return None;
    }
    let mut again = Request::new(empty());
    again.method_mut().clone_from(request.method());
    again.uri_mut().clone_from(request.uri());
    again.headers_mut().clone_from(request.headers());
    Some(again)
}

/// An answer's body, whose connection waits for another request once it is read to its end.
struct Leased {
    body: Incoming,
    lease: Option<(Open, Arc<Connections>)>,
}

impl http_body::Body for Leased {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none()
            && let Some((open, connections)) = self.lease.take()
        {
            connections.give_back(open);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        // The end must be seen by polling, so that the connection is given back.
        false
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use base::Direct;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::node_proxy::connection::Way;

    /// A server that answers so many requests on each connection with the number of the connection, and then closes it.
    async fn server(tasks: &TaskGroup, answers: usize) -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let way = Way { connector: Direct::shared(), places: vec![(address.ip().to_string(), address.port())] };
        tasks.spawn_cancellable("server", async move {
            for number in 1.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                for _ in 0..answers {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { break };
                        head.push(byte);
                    }
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}");
                    drop(stream.write_all(answer.as_bytes()).await);
                }
            }
        });
        Backend { way, authority: "server".to_owned(), tls: None }
    }

    async fn ask(connections: &Arc<Connections>, backend: &Backend, tasks: &TaskGroup) -> String {
        let request = Request::get("/").header("host", "server").body(empty()).unwrap();
        let answer = connections.send(backend, request, tasks).await.unwrap();
        String::from_utf8_lossy(&answer.into_body().collect().await.unwrap().to_bytes()).into_owned()
    }

    #[tokio::test]
    async fn a_connection_serves_one_request_after_another() {
        let (tasks, connections) = (TaskGroup::new("test"), Arc::new(Connections::default()));
        let backend = server(&tasks, 2).await;
        assert_eq!(ask(&connections, &backend, &tasks).await, "1");
        assert_eq!(ask(&connections, &backend, &tasks).await, "1");
        assert_eq!(ask(&connections, &backend, &tasks).await, "2", "the server has closed the first");
        let other = ("192.0.2.1".to_owned(), 1);
        assert!(connections.take(&[other], Instant::now()).is_none(), "what waits leads elsewhere");
        tasks.cancel();
    }

    #[tokio::test]
    async fn old_connections_are_not_used() {
        let (tasks, connections) = (TaskGroup::new("test"), Arc::new(Connections::default()));
        let backend = server(&tasks, 10).await;
        for (name, waited, age, is_used) in [
            ("young", Duration::ZERO, Duration::ZERO, true),
            ("idle for long", IDLE_LIMIT, IDLE_LIMIT, false),
            ("old", Duration::ZERO, AGE_LIMIT, false),
        ] {
            ask(&connections, &backend, &tasks).await;
            let later = Instant::now() + age;
            connections.idle.lock().iter_mut().for_each(|own| own.since = later - waited);
            assert_eq!(connections.take(&backend.way.places, later).is_some(), is_used, "{name}");
            assert!(connections.idle.lock().is_empty(), "{name}");
        }
        tasks.cancel();
    }

    #[tokio::test]
    async fn only_so_many_wait() {
        let (tasks, connections) = (TaskGroup::new("test"), Arc::new(Connections::default()));
        let mut opened = Vec::new();
        for _ in 0..=MAX_IDLE {
            let backend = server(&tasks, 1).await;
            let sender = open(backend.dial().await.unwrap(), &tasks).await.unwrap();
            opened.push(Open { sender, places: backend.way.places, opened: Instant::now() });
        }
        opened.into_iter().for_each(|open| connections.give_back(open));
        assert_eq!(connections.idle.lock().len(), MAX_IDLE);
        tasks.cancel();
    }
}
