//! Opening a listening socket.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// How many connections may wait to be accepted; what Go takes from the kernel's default.
const BACKLOG: u32 = 4096;

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("failed to create listener: failed to listen on {address}: {source}")]
pub struct ListenError {
    /// Where it was to listen.
    pub address: SocketAddr,
    /// Why it does not.
    pub source: std::io::Error,
}

/// Whether several processes may listen on the same port (`--permit-port-sharing`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortSharing {
    /// One process only.
    Exclusive,
    /// Any number, with `SO_REUSEPORT`.
    Shared,
}

/// Listens on `address`; `0.0.0.0` means every address of both families where the machine has IPv6, as in Go.
///
/// # Errors
/// When the address is taken or not there.
pub fn bind(address: SocketAddr, sharing: PortSharing) -> Result<TcpListener, ListenError> {
    let any = std::net::IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED);
    if address.ip().is_unspecified()
        && address.is_ipv4()
        && let Ok(listener) = listen(SocketAddr::new(any, address.port()), sharing)
    {
        return Ok(listener);
    }
    listen(address, sharing).map_err(|source| ListenError { address, source })
}

fn listen(address: SocketAddr, sharing: PortSharing) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket2::SockRef::from(&socket).set_only_v6(false)?;
    }
    // Go sets this on every listener, so `--permit-address-sharing` has nothing left to add.
    socket.set_reuseaddr(true)?;
    if sharing == PortSharing::Shared {
        socket.set_reuseport(true)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
