//! The sockets: queries in, answers out, over UDP and TCP, with a bound on how many are in work.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base::TaskGroup;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::answer::{MAX_QUERY_BYTES, MAX_TCP_BYTES, Source, Transport};
use crate::responder::{Decided, Responder};

/// Queries in work at once, those aside that wait for other servers; more wait in the sockets' own buffers.
const MAX_QUERIES: usize = 1024;
/// The pause after a connection could not be taken, as when this process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections at once.
const MAX_CONNECTIONS: usize = 512;
/// A connection that says nothing for this long is closed.
const IDLE: Duration = Duration::from_secs(10);
/// Connections that may wait to be taken.
const BACKLOG: i32 = 1024;
/// How many ports of the system's choice are tried.
const PORT_CHANCES: u32 = 16;

/// Serves on an address over UDP and TCP; gives the address, whose port was chosen where it was 0.
///
/// # Errors
/// When the address cannot be used.
pub async fn serve(address: SocketAddr, responder: Arc<Responder>, tasks: &TaskGroup) -> std::io::Result<SocketAddr> {
    let (tcp, udp) = bind(address).await?;
    let (address, udp) = (tcp.local_addr()?, Arc::new(udp));
    let (group, answering) = (tasks.clone(), Arc::clone(&responder));
    tasks.spawn_cancellable("udp", async move { udp_loop(udp, answering, group).await });
    let group = tasks.clone();
    tasks.spawn_cancellable("tcp", async move { tcp_loop(tcp, responder, group).await });
    Ok(address)
}

/// Both sockets on one port. A port that the system chose for the one may be somebody's for the other. The unspecified
/// address of either family means both families, where the machine has both.
async fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, UdpSocket)> {
    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port());
    if address.is_ipv4()
        && address.ip().is_unspecified()
        && let Ok(bound) = bind_one(any).await
    {
        return Ok(bound);
    }
    bind_one(address).await
}

async fn bind_one(address: SocketAddr) -> std::io::Result<(TcpListener, UdpSocket)> {
    let mut chances = if address.port() == 0 { PORT_CHANCES } else { 1 };
    loop {
        let tcp: std::net::TcpListener = socket(address, Type::STREAM)?.into();
        chances -= 1;
        match socket(tcp.local_addr()?, Type::DGRAM) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && chances > 0 => {}
            udp => return Ok((TcpListener::from_std(tcp)?, UdpSocket::from_std(udp?.into())?)),
        }
    }
}

/// A socket that takes connections or packets of its address's family, or of both where that is unspecified, whatever
/// the machine does by default.
fn socket(address: SocketAddr, kind: Type) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_nonblocking(true)?;
    if kind == Type::STREAM {
        // A server that starts again does not wait for the connections of its predecessor.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    if kind == Type::STREAM {
        socket.listen(BACKLOG)?;
    }
    Ok(socket)
}

/// A client by the address that it has: a socket for both families shows those of IPv4 as mapped ones.
fn source(transport: Transport, client: SocketAddr) -> Source {
    Source { transport, client: SocketAddr::new(client.ip().to_canonical(), client.port()) }
}

async fn udp_loop(socket: Arc<UdpSocket>, responder: Arc<Responder>, tasks: TaskGroup) {
    let permits = Arc::new(Semaphore::new(MAX_QUERIES));
    let mut buffer = vec![0; usize::from(MAX_QUERY_BYTES)];
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
        let source = source(Transport::Udp, client);
        tasks.spawn_cancellable("query", async move {
            let answer = match responder.decide(&query, source) {
                Decided::Answer(answer) => answer,
                Decided::Ask(step) => {
                    // What is known here must not wait until others have answered.
                    drop(permit);
                    responder.ask(step, &query, source).await
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
        let (stream, client) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error = %error, "taking a connection failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let responder = Arc::clone(&responder);
        tasks.spawn_cancellable("connection", async move {
            if let Err(error) = connection(stream, client, &responder).await {
                tracing::debug!(error = %error, "connection ended");
            }
            drop(permit);
        });
    }
}

async fn connection(mut stream: TcpStream, client: SocketAddr, responder: &Responder) -> std::io::Result<()> {
    let source = source(Transport::Tcp, client);
    while let Ok(length) = timeout(IDLE, stream.read_u16()).await {
        let mut query = vec![0; usize::from(length?)];
        timeout(IDLE, stream.read_exact(&mut query)).await??;
        let Some(answer) = responder.respond(&query, source).await else { return Ok(()) };
        let length = u16::try_from(answer.len().min(MAX_TCP_BYTES)).unwrap_or(u16::MAX);
        timeout(IDLE, stream.write_all(&[&length.to_be_bytes(), answer.as_slice()].concat())).await??;
    }
    Ok(())
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
