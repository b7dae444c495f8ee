//! The Konnectivity proxy: a tunnel of packets over gRPC for each connection, at a socket of this host.
//!
//! A task stands between the tunnel and whoever uses the connection, and holds no more of it than one piece each way: what is
//! not read yet waits in the pipe between both, and then in HTTP/2's flow control.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base::{Connection, SharedRng, TaskGroup};
use grpc::{UnixSocket, connect_failure};
use parking_lot::Mutex;
use server_api::konnectivity::packet::Payload;
use server_api::konnectivity::proxy_service_client::ProxyServiceClient;
use server_api::konnectivity::{CloseDial, CloseRequest, Data, DialRequest, Packet, PacketType};
use server_api::tonic::{Status, Streaming};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf, ReadHalf, WriteHalf,
};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;

use crate::metrics::{Failed, Through};

/// How long reaching the proxy may take, and then its answer to a dial, as upstream.
const LIMIT: Duration = Duration::from_secs(30);
/// How long the proxy may take to say that a connection is closed.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);
/// How much of a connection waits to be read, each way.
const PIPE_BYTES: usize = 64 << 10;
/// The largest piece that is sent.
const PIECE_BYTES: usize = 16 << 10;
/// How many packets wait to be sent.
const MAX_WAITING: usize = 4;

/// Connects through the proxy.
#[derive(Debug)]
pub(crate) struct Konnectivity {
    socket: UnixSocket,
    tasks: TaskGroup,
    rng: SharedRng,
}

impl Konnectivity {
    pub(crate) fn new(socket: UnixSocket, tasks: &TaskGroup, rng: &SharedRng) -> Self {
        Self { socket, tasks: tasks.child("konnectivity"), rng: SharedRng::clone(rng) }
    }

    /// How many tunnels there are.
    #[cfg(test)]
    pub(crate) fn running(&self) -> usize {
        self.tasks.running().len()
    }

    fn random(&self) -> i64 {
        let mut bytes = [0; 8];
        self.rng.fill(&mut bytes);
        i64::from_be_bytes(bytes)
    }
}

impl Through for Konnectivity {
    async fn through(&self, address: String) -> Result<Connection, Failed> {
        let socket = &self.socket;
        let random = self.random();
        let request = DialRequest { protocol: "tcp".to_owned(), address, random };
        let (send, waiting) = mpsc::channel(MAX_WAITING);
        // There is room. A proxy may answer nothing, not even a head, until it is asked.
        let asked = send.try_send(packet(PacketType::DialReq, Payload::DialRequest(request)));
        asked.map_err(|error| Failed::proxying(error.to_string()))?;
        let mut service = ProxyServiceClient::new(socket.channel());
        let answered = async {
            let answer = service.proxy(ReceiverStream::new(waiting)).await;
            let mut receive = answer.map_err(|status| not_asked(socket, &status))?.into_inner();
            let id = dialled(&mut receive, random).await.map_err(Failed::proxying)?;
            Ok::<_, Failed>((receive, id))
        };
        match timeout(LIMIT, answered).await {
            Ok(Ok((receive, id))) => {
                let (own, theirs) = tokio::io::duplex(PIPE_BYTES);
                let failure = Failure::default();
                let connection = Tunnelled { pipe: own, failure: Failure::clone(&failure) };
                self.tasks.spawn_cancellable("konnectivity-tunnel", pump(theirs, send, receive, id, failure));
                Ok(Box::new(connection))
            }
            Ok(Err(failed)) => Err(failed),
            // With the tunnel ends what the proxy may have begun.
            Err(_) => Err(Failed::proxying("dial timeout, backstop")),
        }
    }
}

/// A proxy that is not there, or one that does not take the question.
fn not_asked(socket: &UnixSocket, status: &Status) -> Failed {
    match connect_failure(status) {
        Some(why) => Failed::connecting(io::Error::other(format!("dial unix {socket}: {why}"))),
        None => Failed::proxying(status.message()),
    }
}

fn packet(kind: PacketType, payload: Payload) -> Packet {
    Packet { r#type: kind.into(), payload: Some(payload) }
}

/// The proxy's answer to a dial: what the connection is called.
async fn dialled(receive: &mut Streaming<Packet>, random: i64) -> Result<i64, String> {
    loop {
        let next = receive.message().await.map_err(|status| status.message().to_owned())?;
        match next.ok_or("tunnel closed")?.payload {
            Some(Payload::DialResponse(answer)) if answer.random == random => {
                return if answer.error.is_empty() { Ok(answer.connect_id) } else { Err(answer.error) };
            }
            Some(Payload::CloseDial(CloseDial { random: own })) if own == random => {
                return Err("dial closed".to_owned());
            }
            other => tracing::debug!(?other, "A packet before the answer to a dial is ignored"),
        }
    }
}

/// Carries bytes both ways until one side has closed.
async fn pump(pipe: DuplexStream, send: mpsc::Sender<Packet>, receive: Streaming<Packet>, id: i64, failure: Failure) {
    let (reader, writer) = tokio::io::split(pipe);
    let mut sending = pin!(send_all(reader, send, id));
    let mut receiving = pin!(receive_all(receive, writer, id, &failure));
    tokio::select! {
        biased;
        () = &mut receiving => {}
        // Held until the proxy has seen it, or has had the time to.
        _kept_open = &mut sending => drop(timeout(CLOSE_LIMIT, receiving).await),
    }
}

/// Sends what is written, and that it is over.
async fn send_all(mut reader: ReadHalf<DuplexStream>, send: mpsc::Sender<Packet>, id: i64) -> mpsc::Sender<Packet> {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(length @ 1..) = reader.read(&mut piece).await {
        let data = piece.get(..length).unwrap_or_default().to_vec();
        let data = Data { connect_id: id, error: String::new(), data };
        if send.send(packet(PacketType::Data, Payload::Data(data))).await.is_err() {
            return send;
        }
    }
    drop(send.send(packet(PacketType::CloseReq, Payload::CloseRequest(CloseRequest { connect_id: id }))).await);
    send
}

/// Writes what is received, until it is over.
async fn receive_all(mut receive: Streaming<Packet>, mut writer: WriteHalf<DuplexStream>, id: i64, failure: &Failure) {
    let fail = |why: String| *failure.0.lock() = Some(why);
    loop {
        match receive.message().await {
            Err(status) => return fail(status.message().to_owned()),
            Ok(None) => return,
            Ok(Some(Packet { payload: Some(Payload::Data(data)), .. })) if data.connect_id == id => {
                if !data.error.is_empty() {
                    return fail(data.error);
                }
                // Nobody reads any more.
                if writer.write_all(&data.data).await.is_err() {
                    return;
                }
            }
            Ok(Some(Packet { payload: Some(Payload::CloseResponse(closed)), .. })) if closed.connect_id == id => {
                *failure.0.lock() = Some(closed.error).filter(|error| !error.is_empty());
                return;
            }
            Ok(Some(other)) => tracing::debug!(kind = other.r#type, "A packet of another connection is ignored"),
        }
    }
}

/// Why what was read of a tunnel may not be all, until the proxy has said that the connection is closed.
#[derive(Clone)]
struct Failure(Arc<Mutex<Option<String>>>);

impl Default for Failure {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some("tunnel closed".to_owned()))))
    }
}

/// A connection through a tunnel.
struct Tunnelled {
    pipe: DuplexStream,
    failure: Failure,
}

impl AsyncRead for Tunnelled {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = (buffer.filled().len(), buffer.remaining());
        ready!(Pin::new(&mut self.pipe).poll_read(cx, buffer))?;
        let is_end = buffer.filled().len() == before.0 && before.1 > 0;
        match self.failure.0.lock().clone().filter(|_| is_end) {
            Some(why) => Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, why))),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Tunnelled {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.pipe).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}
