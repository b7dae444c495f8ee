//! Handing queries on to other servers: as they came, with an id of our own, to each server in turn.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RecordType};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::answer::{MAX_TCP_BYTES, Transport};

const TIMEOUT: Duration = Duration::from_secs(2);
const PORT: u16 = 53;

/// The servers that know what this one does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Upstreams(Vec<SocketAddr>);

impl Upstreams {
    /// These servers, in order.
    #[must_use]
    pub fn new(servers: Vec<SocketAddr>) -> Self {
        Self(servers)
    }

    /// The name servers of a `resolv.conf`.
    #[must_use]
    pub fn from_resolv_conf(text: &str) -> Self {
        let servers = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = words.next().filter(|word| *word == "nameserver").and(words.next())?;
            address.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, PORT))
        });
        Self(servers.collect())
    }

    /// The first answer to a query, as it came from a server.
    pub async fn ask(&self, query: &[u8], transport: Transport) -> Option<Vec<u8>> {
        for server in &self.0 {
            let attempt = async {
                match transport {
                    Transport::Udp => over_udp(*server, query).await,
                    Transport::Tcp => over_tcp(*server, query).await,
                }
            };
            match timeout(TIMEOUT, attempt).await {
                Ok(Ok(answer)) => return Some(answer),
                Ok(Err(error)) => tracing::debug!(error = %error, server = %server, "upstream failed"),
                Err(_) => tracing::debug!(server = %server, "upstream did not answer in time"),
            }
        }
        None
    }

    /// What the servers say about a name, over TCP so that nothing is cut off.
    pub async fn resolve(&self, name: Name, kind: RecordType, id: u16) -> Option<Message> {
        let mut query = Message::query();
        query.metadata.id = id;
        query.metadata.recursion_desired = true;
        query.add_query(Query::query(name, kind));
        let answer = self.ask(&query.to_vec().ok()?, Transport::Tcp).await?;
        Message::from_vec(&answer).ok()
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
        let servers: Vec<String> = Upstreams::from_resolv_conf(text).0.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["10.0.0.2:53", "[fd00::1]:53"]);
    }
}
