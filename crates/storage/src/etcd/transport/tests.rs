use std::io;

use futures_util::future::join_all;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, duplex};
use tokio::net::TcpListener;

use super::*;

const METHOD: &str = "/etcdserverpb.KV/Txn";

/// A member that answers each call with what it was sent, and, if it is to, ends the connection after the first.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, once: bool, tasks: TaskGroup) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        tasks.spawn("reply", reply(request, respond).map(Result::unwrap));
        if once {
            connection.graceful_shutdown();
        }
    }
}

async fn reply(mut request: Request<RecvStream>, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
    assert_eq!((request.uri().scheme_str(), request.uri().path()), (Some("http"), METHOD));
    let mut stream = respond.send_response(Response::new(()), false)?;
    while let Some(part) = request.body_mut().data().await {
        stream.send_data(part?, false)?;
    }
    stream.send_trailers(HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), HeaderValue::from(0))]))
}

fn request(message: &'static [u8]) -> Request<Body> {
    let body = Body::new(http_body_util::Full::from(message));
    Request::post(METHOD).body(body).unwrap()
}

async fn whole(response: Response<Body>) -> (Vec<u8>, Option<HeaderMap>) {
    let (mut body, mut data, mut trailers) = (response.into_body(), Vec::new(), None);
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame.unwrap().into_data() {
            Ok(part) => data.extend_from_slice(&part),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    (data, trailers)
}

fn transport(port: u16) -> Transport {
    let target = Target::new(&format!("http://127.0.0.1:{port}"), None, base::Direct::shared()).unwrap();
    Transport::new(Arc::new(target), TaskGroup::new("test"))
}

/// A stream that notes each write.
struct Noting<S> {
    stream: S,
    writes: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Noting<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noting<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writes.lock().push(bytes.to_vec());
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn a_call_leaves_in_one_write() {
    let (near, far) = duplex(1 << 20);
    let writes = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let transport = transport(1);
    transport.tasks.spawn("member", serve(far, false, transport.tasks.clone()));
    let noting = Noting { stream: near, writes: Arc::clone(&writes) };
    let sender = dial::greet(noting, &transport.tasks, transport.calls.clone()).await.unwrap();
    *transport.dial.lock() = Some(async { Ok(sender) }.boxed().shared());
    let response = Transport::call(transport.clone(), request(b"the message")).await.unwrap();
    assert_eq!(whole(response).await.0, b"the message");
    // The end of the stream: a DATA frame (0) of 11 bytes with the flag END_STREAM (1).
    let end = b"\0\0\x0b\0\x01\0\0\0\x01the message";
    let carried = writes.lock().iter().filter(|write| write.ends_with(end) && write.len() > end.len()).count();
    assert_eq!(carried, 1, "the head is before it in the same write: {:?}", writes.lock());
}

#[tokio::test]
async fn many_calls_share_a_connection_and_their_trailers_arrive() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let transport = transport(listener.local_addr().unwrap().port());
    let tasks = transport.tasks.clone();
    transport.tasks.spawn("member", async move {
        let (stream, _) = listener.accept().await.unwrap();
        // Nobody takes a second connection.
        serve(stream, false, tasks).await;
    });
    let calls = (0..50).map(|_| Transport::call(transport.clone(), request(b"x")));
    for response in join_all(calls).await {
        let (data, trailers) = whole(response.unwrap()).await;
        assert_eq!((data.as_slice(), trailers.unwrap()["grpc-status"].as_bytes()), (&b"x"[..], &b"0"[..]));
    }
    assert_eq!(transport.calls.0.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_connection_that_ended_is_made_anew() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let transport = transport(listener.local_addr().unwrap().port());
    let tasks = transport.tasks.clone();
    transport.tasks.spawn("member", async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            serve(stream, true, tasks.clone()).await;
        }
    });
    for _ in 0..3 {
        let response = Transport::call(transport.clone(), request(b"again")).await.unwrap();
        assert_eq!(whole(response).await.0, b"again");
        while transport.tasks.running().iter().any(|(name, _)| name == "etcd-connection") {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_member_that_is_not_there_is_unavailable_and_looked_for_again() {
    let transport = transport(1);
    for _ in 0..2 {
        let error = Transport::call(transport.clone(), request(b"x")).await.unwrap_err();
        assert_eq!(error.code(), tonic::Code::Unavailable, "{error}");
        assert!(error.message().starts_with("dial tcp 127.0.0.1:1: "), "{error}");
        assert!(transport.dial.lock().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_that_says_nothing_is_given_up() {
    let (near, _far) = duplex(1 << 20);
    let transport = transport(1);
    let sender = dial::greet(near, &transport.tasks, transport.calls.clone()).await.unwrap();
    *transport.dial.lock() = Some(async { Ok(sender) }.boxed().shared());
    let began = tokio::time::Instant::now();
    let error = Transport::call(transport, request(b"x")).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::Unavailable, "{error}");
    assert_eq!(began.elapsed().as_secs(), 40, "a ping after 30 s, given up 10 s later");
}
