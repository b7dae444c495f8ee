//! Handing queries on to other servers: as they came, with an id of our own, to each server in turn.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout};

use crate::answer::{MAX_TCP_BYTES, Transport};

/// How long one server has to answer, and all of them together.
const TIMEOUT: Duration = Duration::from_secs(2);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that did not answer is asked after all others for so long.
const SHUNNED: Duration = Duration::from_secs(5);
const PORT: u16 = 53;
/// More servers than this in a resolver file are left out.
const MAX_SERVERS: usize = 15;

/// The servers that know what this one does not.
#[derive(Debug, Default)]
pub struct Upstreams(Vec<Upstream>);

#[derive(Debug)]
struct Upstream {
    address: SocketAddr,
    /// When it last failed, unless it has answered since.
    failed: Mutex<Option<Instant>>,
}

impl Upstreams {
    /// These servers, in order.
    #[must_use]
    pub fn new(servers: Vec<SocketAddr>) -> Self {
        let upstream = |address| Upstream { address, failed: Mutex::new(None) };
        Self(servers.into_iter().take(MAX_SERVERS).map(upstream).collect())
    }

    /// The name servers of a `resolv.conf`.
    #[must_use]
    pub fn from_resolv_conf(text: &str) -> Self {
        let servers = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = words.next().filter(|word| *word == "nameserver").and(words.next())?;
            address.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, PORT))
        });
        Self::new(servers.collect())
    }

    /// The first answer to a query, as it came from a server.
    pub async fn ask(&self, query: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let all = async {
            for upstream in self.in_turn() {
                if let Some(answer) = upstream.ask(query, transport).await {
                    return Some(answer);
                }
            }
            None
        };
        timeout(TOTAL_TIMEOUT, all).await.ok().flatten()
    }

    /// The servers in order, those that failed of late after the others.
    fn in_turn(&self) -> Vec<&Upstream> {
        let now = Instant::now();
        let shunned = |one: &Upstream| one.failed.lock().is_some_and(|failed| now.duration_since(failed) < SHUNNED);
        let (late, mut order): (Vec<&Upstream>, Vec<&Upstream>) = self.0.iter().partition(|one| shunned(one));
        order.extend(late);
        order
    }
}

impl Upstream {
    async fn ask(&self, query: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let attempt = async {
            match transport {
                Transport::Udp => over_udp(self.address, query).await,
                Transport::Tcp => over_tcp(self.address, query).await,
            }
        };
        let outcome = timeout(TIMEOUT, attempt).await.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        *self.failed.lock() = outcome.is_err().then(Instant::now);
        outcome.inspect_err(|error| tracing::debug!(error = %error, server = %self.address, "upstream failed")).ok()
    }
}

async fn over_udp(server: SocketAddr, query: &[u8]) -> std::io::Result<Vec<u8>> {
    let local: SocketAddr = if server.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    // A socket for each query: the port is as hard to guess as the id.
    let socket = UdpSocket::bind(local).await?;
    socket.connect(server).await?;
    socket.send(query).await?;
    let mut buffer = vec![0; MAX_TCP_BYTES];
    loop {
        let length = socket.recv(&mut buffer).await?;
        if buffer.get(..2) == query.get(..2) {
            buffer.truncate(length);
            return Ok(buffer);
        }
    }
}

async fn over_tcp(server: SocketAddr, query: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(query.len()).map_err(|_| std::io::ErrorKind::InvalidInput)?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(query).await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_read() {
        let text = "# comment\nsearch example.com\nnameserver 10.0.0.2\nnameserver  fd00::1\nnameserver nonsense\n";
        let servers: Vec<String> =
            Upstreams::from_resolv_conf(text).0.iter().map(|one| one.address.to_string()).collect();
        assert_eq!(servers, ["10.0.0.2:53", "[fd00::1]:53"]);
    }

    #[tokio::test]
    async fn a_server_that_failed_comes_last() {
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let closed = silent.local_addr().unwrap();
        drop(silent);
        let good = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let servers = Upstreams::new(vec![closed, good.local_addr().unwrap()]);
        let answering = async {
            let mut buffer = [0; 64];
            let (length, from) = good.recv_from(&mut buffer).await.unwrap();
            good.send_to(&buffer[..length], from).await.unwrap();
        };
        let (answer, ()) = tokio::join!(servers.ask(b"12 hello", Transport::Udp), answering);
        assert_eq!(answer.as_deref(), Some(&b"12 hello"[..]));
        assert_eq!(servers.in_turn()[0].address, good.local_addr().unwrap());
    }
}
