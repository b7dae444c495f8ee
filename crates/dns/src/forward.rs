//! Handing queries on to other servers: as they came, with an id of our own, to each server in turn. Which is the first is
//! drawn for each query, so that all bear the load.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base::Rng;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout};

use crate::answer::{MAX_TCP_BYTES, Transport};
use crate::balance::shuffle;
use crate::metrics::DnsMetrics;

/// How long one server has to answer, and all of them together.
const TIMEOUT: Duration = Duration::from_secs(2);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that did not answer is asked after all others for so long.
const SHUNNED: Duration = Duration::from_secs(5);
const PORT: u16 = 53;
/// More servers than this in a resolver file are left out.
const MAX_SERVERS: usize = 15;

/// The servers that know what this one does not.
#[derive(Default)]
pub struct Upstreams {
    servers: Vec<Upstream>,
    metrics: Option<Arc<DnsMetrics>>,
}

struct Upstream {
    address: SocketAddr,
    /// The address as metrics tell it.
    name: String,
    /// When it last failed, unless it has answered since.
    failed: Mutex<Option<Instant>>,
}

impl Upstreams {
    /// These servers, in order.
    #[must_use]
    pub fn new(servers: Vec<SocketAddr>) -> Self {
        let upstream = |address: SocketAddr| Upstream { address, name: address.to_string(), failed: Mutex::new(None) };
        Self { servers: servers.into_iter().take(MAX_SERVERS).map(upstream).collect(), metrics: None }
    }

    /// Counts what is asked of them.
    #[must_use]
    pub fn counting(self, metrics: Arc<DnsMetrics>) -> Self {
        Self { metrics: Some(metrics), ..self }
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

    /// The first answer to a query, as it came from a server. `rng` draws whom to ask first.
    pub async fn ask(&self, query: &[u8], transport: Transport, rng: &Rng) -> Option<Vec<u8>> {
        let all = async {
            for upstream in self.in_turn(rng) {
                let began = Instant::now();
                if let Some(answer) = upstream.ask(query, transport).await {
                    if let Some(metrics) = &self.metrics {
                        metrics.handed_on(&upstream.name, &answer, began.elapsed());
                    }
                    return Some(answer);
                }
            }
            None
        };
        timeout(TOTAL_TIMEOUT, all).await.ok().flatten()
    }

    /// The servers in an order by chance, those that failed of late after the others.
    fn in_turn(&self, rng: &Rng) -> Vec<&Upstream> {
        let now = Instant::now();
        let shunned = |one: &Upstream| one.failed.lock().is_some_and(|failed| now.duration_since(failed) < SHUNNED);
        let (mut late, mut order): (Vec<&Upstream>, Vec<&Upstream>) = self.servers.iter().partition(|one| shunned(one));
        if let Some(metrics) = self.metrics.as_ref().filter(|_| order.is_empty() && !late.is_empty()) {
            metrics.none_is_well();
        }
        shuffle(&mut order, rng);
        shuffle(&mut late, rng);
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
    use std::collections::HashSet;

    use component_base::metrics::{Metrics, MetricsOptions};

    use super::*;

    #[test]
    fn name_servers_are_read() {
        let text = "# comment\nsearch example.com\nnameserver 10.0.0.2\nnameserver  fd00::1\nnameserver nonsense\n";
        let servers: Vec<String> =
            Upstreams::from_resolv_conf(text).servers.iter().map(|one| one.address.to_string()).collect();
        assert_eq!(servers, ["10.0.0.2:53", "[fd00::1]:53"]);
    }

    #[tokio::test]
    async fn no_server_is_always_the_first() {
        let servers = Upstreams::new((1..=3).map(|last| SocketAddr::from(([10, 0, 0, last], PORT))).collect());
        let rng = Rng::seeded(1);
        let firsts: HashSet<SocketAddr> = (0..50).map(|_| servers.in_turn(&rng)[0].address).collect();
        assert_eq!(firsts.len(), 3);
        *servers.servers[0].failed.lock() = Some(Instant::now());
        for _ in 0..50 {
            assert_eq!(servers.in_turn(&rng)[2].address, servers.servers[0].address, "one that failed comes last");
        }
    }

    #[tokio::test]
    async fn a_server_that_failed_comes_last() {
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let closed = silent.local_addr().unwrap();
        drop(silent);
        let good = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (gone, rng) = (Upstreams::new(vec![closed]), Rng::seeded(1));
        assert_eq!(gone.ask(b"12 hello", Transport::Udp, &rng).await, None);
        assert!(gone.servers[0].failed.lock().is_some());
        let servers = Upstreams::new(vec![closed, good.local_addr().unwrap()]);
        let answering = async {
            let mut buffer = [0; 64];
            let (length, from) = good.recv_from(&mut buffer).await.unwrap();
            good.send_to(&buffer[..length], from).await.unwrap();
        };
        let (answer, ()) = tokio::join!(servers.ask(b"12 hello", Transport::Udp, &rng), answering);
        assert_eq!(answer.as_deref(), Some(&b"12 hello"[..]));
    }

    #[tokio::test]
    async fn servers_are_told_by_their_addresses() {
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let closed = silent.local_addr().unwrap();
        drop(silent);
        let good = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let metrics = Metrics::new(MetricsOptions::default());
        let counted = DnsMetrics::new(&metrics);
        let servers = Upstreams::new(vec![good.local_addr().unwrap()]).counting(Arc::clone(&counted));
        let refusal = [b'1', b'2', 0x80, 5];
        let answering = async {
            let mut buffer = [0; 64];
            let (_, from) = good.recv_from(&mut buffer).await.unwrap();
            good.send_to(&refusal, from).await.unwrap();
        };
        let rng = Rng::seeded(1);
        let (answer, ()) = tokio::join!(servers.ask(b"12 hello", Transport::Udp, &rng), answering);
        assert_eq!(answer.as_deref(), Some(&refusal[..]));
        let gone = Upstreams::new(vec![closed]).counting(counted);
        for _ in 0..2 {
            assert_eq!(gone.ask(b"12 hello", Transport::Udp, &rng).await, None);
        }
        let (text, to) = (metrics.text(), good.local_addr().unwrap());
        for line in [
            format!(
                "coredns_proxy_request_duration_seconds_count{{proxy_name=\"forward\",rcode=\"REFUSED\",to=\"{to}\"}} 1\n"
            ),
            "coredns_forward_healthcheck_broken_total 1\n".to_owned(),
        ] {
            assert!(text.contains(&line), "{line}\nin\n{text}");
        }
    }
}
