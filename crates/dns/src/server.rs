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

/// Queries in work at once; more wait in the sockets' own buffers.
const MAX_QUERIES: usize = 1024;
/// Connections at once.
const MAX_CONNECTIONS: usize = 512;
/// A connection that says nothing for this long is closed.
const IDLE: Duration = Duration::from_secs(10);
/// The longest query over UDP that makes sense.
const MAX_QUERY_BYTES: usize = 4096;

/// What it takes to answer.
pub struct Responder {
    /// The zone.
    pub zone: Zone,
    /// What the zone is made of.
    pub data: Arc<dyn ClusterData>,
    /// Who knows the rest.
    pub upstreams: Upstreams,
    /// What they said lately.
    pub cache: Cache,
    /// For ids of own queries.
    pub rng: SharedRng,
}

impl Responder {
    /// The answer to a query; nothing where it deserves none.
    pub async fn respond(&self, query: &[u8], transport: Transport) -> Option<Vec<u8>> {
        match decide(&self.zone, self.data.as_ref(), query, transport) {
            Step::Answer(answer) => Some(answer),
            Step::Drop => None,
            Step::Forward => self.forward(query, transport).await,
            Step::Follow(mut message, target, kind) => {
                let id = u16::try_from(self.rng.below(u64::from(u16::MAX))).unwrap_or_default();
                if let Some(found) = self.upstreams.resolve(target, kind, id).await {
                    message.answers.extend(found.answers);
                }
                let query = Message::from_vec(query).ok()?;
                Some(encode(*message, &query, transport))
            }
        }
    }
}

impl Responder {
    async fn forward(&self, query: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let parsed = Message::from_vec(query).ok()?;
        if let Some(kept) = self.cache.find(&parsed) {
            return Some(encode(with_edns(kept, &parsed), &parsed, transport));
        }
        let answer = match self.upstreams.ask(query, transport).await {
            Some(answer) => answer,
            None => failure(query, transport)?,
        };
        if let Ok(message) = Message::from_vec(&answer) {
            self.cache.keep(&parsed, &message);
        }
        Some(answer)
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
            if let Some(answer) = responder.respond(&query, Transport::Udp).await
                && let Err(error) = socket.send_to(&answer, client).await
            {
                tracing::debug!(error = %error, "sending failed");
            }
            drop(permit);
        });
    }
}

async fn tcp_loop(listener: TcpListener, responder: Arc<Responder>, tasks: TaskGroup) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { continue };
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
