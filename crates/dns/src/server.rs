//! The sockets: queries in, answers out, over UDP and TCP, with a bound on how many are in work.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{SharedRng, TaskGroup};
use hickory_proto::op::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::answer::{MAX_TCP_BYTES, Step, Transport, decide, encode, failure, with_edns};
use crate::cache::Cache;
use crate::data::ClusterData;
use crate::forward::Upstreams;
use crate::zone::Zone;

/// Queries in work at once, those aside that wait for other servers; more wait in the sockets' own buffers.
const MAX_QUERIES: usize = 1024;
/// Queries at once that wait for other servers; more are answered with a failure, as those servers do not keep up.
const MAX_FORWARDS: usize = 1000;
/// The pause after a connection could not be taken, as when this process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections at once.
const MAX_CONNECTIONS: usize = 512;
/// A connection that says nothing for this long is closed.
const IDLE: Duration = Duration::from_secs(10);
/// The longest query over UDP that makes sense.
const MAX_QUERY_BYTES: usize = 4096;

/// What it takes to answer.
pub struct Responder {
    zone: Zone,
    data: Arc<dyn ClusterData>,
    upstreams: Upstreams,
    cache: Cache,
    rng: SharedRng,
    forwards: Semaphore,
}

/// How far a query came without the help of others.
enum Decided {
    Answer(Option<Vec<u8>>),
    Ask(Step),
}

impl Responder {
    /// Answers from the zone and its data; what is not in there is asked of `upstreams`, and kept in `cache` for a while.
    /// `rng` draws the ids of own queries.
    #[must_use]
    pub fn new(zone: Zone, data: Arc<dyn ClusterData>, upstreams: Upstreams, cache: Cache, rng: SharedRng) -> Self {
        Self { zone, data, upstreams, cache, rng, forwards: Semaphore::new(MAX_FORWARDS) }
    }

    /// The answer to a query; nothing where it deserves none.
    pub async fn respond(&self, query: &[u8], transport: Transport) -> Option<Vec<u8>> {
        match self.decide(query, transport) {
            Decided::Answer(answer) => answer,
            Decided::Ask(step) => self.ask(step, query, transport).await,
        }
    }

    fn decide(&self, query: &[u8], transport: Transport) -> Decided {
        match decide(&self.zone, self.data.as_ref(), query, transport) {
            Step::Answer(answer) => Decided::Answer(Some(answer)),
            Step::Drop => Decided::Answer(None),
            step => Decided::Ask(step),
        }
    }

    /// Answers with the help of other servers, unless too many queries wait for them already.
    async fn ask(&self, step: Step, query: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let parsed = Message::from_vec(query).ok()?;
        let Step::Follow(mut message, target, kind) = step else {
            return self.forward(query, &parsed, transport).await;
        };
        if let Ok(_turn) = self.forwards.try_acquire()
            && let Some(found) = self.upstreams.resolve(target, kind, self.id()).await
        {
            message.answers.extend(found.answers);
        }
        Some(encode(*message, &parsed, transport))
    }

    async fn forward(&self, query: &[u8], parsed: &Message, transport: Transport) -> Option<Vec<u8>> {
        if let Some(kept) = self.cache.find(parsed) {
            return Some(encode(with_edns(kept, parsed), parsed, transport));
        }
        let Ok(_turn) = self.forwards.try_acquire() else { return failure(query, transport) };
        let mut own = query.to_vec();
        set_id(&mut own, self.id().to_be_bytes());
        let answer = match self.upstreams.ask(&own, transport).await {
            Some(mut answer) => {
                set_id(&mut answer, parsed.metadata.id.to_be_bytes());
                answer
            }
            None => failure(query, transport)?,
        };
        if let Ok(message) = Message::from_vec(&answer) {
            self.cache.keep(parsed, &message);
        }
        Some(answer)
    }

    /// An id that only the server that is asked can know, so that nobody else can answer in its place.
    fn id(&self) -> u16 {
        u16::try_from(self.rng.below(1 << 16)).unwrap_or_default()
    }
}

fn set_id(message: &mut [u8], id: [u8; 2]) {
    if let Some(place) = message.first_chunk_mut::<2>() {
        *place = id;
    }
}

/// Serves on an address over UDP and TCP; gives the address, whose port was chosen where it was 0.
///
/// # Errors
/// When the address cannot be used.
pub async fn serve(address: SocketAddr, responder: Arc<Responder>, tasks: &TaskGroup) -> std::io::Result<SocketAddr> {
    let tcp = TcpListener::bind(address).await?;
    let address = tcp.local_addr()?;
    let udp = Arc::new(UdpSocket::bind(address).await?);
    let (group, answering) = (tasks.clone(), Arc::clone(&responder));
    tasks.spawn_cancellable("udp", async move { udp_loop(udp, answering, group).await });
    let group = tasks.clone();
    tasks.spawn_cancellable("tcp", async move { tcp_loop(tcp, responder, group).await });
    Ok(address)
}

async fn udp_loop(socket: Arc<UdpSocket>, responder: Arc<Responder>, tasks: TaskGroup) {
    let permits = Arc::new(Semaphore::new(MAX_QUERIES));
    let mut buffer = vec![0; MAX_QUERY_BYTES];
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let (length, client) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // A client that is gone shows up here; it is no reason to stop.
            Err(error) => {
                tracing::debug!(error = %error, "receiving failed");
                continue;
            }
        };
        let query = buffer.get(..length).unwrap_or_default().to_vec();
        let (socket, responder) = (Arc::clone(&socket), Arc::clone(&responder));
        tasks.spawn_cancellable("query", async move {
            let answer = match responder.decide(&query, Transport::Udp) {
                Decided::Answer(answer) => answer,
                Decided::Ask(step) => {
                    // What is known here must not wait until others have answered.
                    drop(permit);
                    responder.ask(step, &query, Transport::Udp).await
                }
            };
            if let Some(answer) = answer
                && let Err(error) = socket.send_to(&answer, client).await
            {
                tracing::debug!(error = %error, "sending failed");
            }
        });
    }
}

async fn tcp_loop(listener: TcpListener, responder: Arc<Responder>, tasks: TaskGroup) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(error = %error, "taking a connection failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let responder = Arc::clone(&responder);
        tasks.spawn_cancellable("connection", async move {
            if let Err(error) = connection(stream, &responder).await {
                tracing::debug!(error = %error, "connection ended");
            }
            drop(permit);
        });
    }
}

async fn connection(mut stream: TcpStream, responder: &Responder) -> std::io::Result<()> {
    while let Ok(length) = timeout(IDLE, stream.read_u16()).await {
        let mut query = vec![0; usize::from(length?)];
        timeout(IDLE, stream.read_exact(&mut query)).await??;
        let Some(answer) = responder.respond(&query, Transport::Tcp).await else { return Ok(()) };
        let length = u16::try_from(answer.len().min(MAX_TCP_BYTES)).unwrap_or(u16::MAX);
        timeout(IDLE, stream.write_all(&[&length.to_be_bytes(), answer.as_slice()].concat())).await??;
    }
    Ok(())
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
