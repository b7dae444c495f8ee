//! A TCP connection of a probe or a hook.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use base::host_and_port;
use tokio::net::TcpStream;

/// Closed connections of probes do not stay in TIME_WAIT for longer.
const LINGER: Duration = Duration::from_secs(1);

/// Why nobody is connected, in the words of Go's dialler. A probe is run again, a hook is not.
#[derive(Debug, thiserror::Error)]
#[error("dial tcp {address}: {}", in_go(.source))]
pub struct DialError {
    address: String,
    source: Error,
}

/// What Go calls an error of the system.
fn in_go(error: &Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

/// Connects; what is closed does not linger.
pub(super) async fn dial(host: &str, port: u16) -> Result<TcpStream, DialError> {
    let failed = |source| DialError { address: host_and_port(host, port), source };
    let stream = TcpStream::connect((host, port)).await.map_err(failed)?;
    // Without it the socket is only kept a little longer by the kernel.
    let _ = socket2::SockRef::from(&stream).set_linger(Some(LINGER));
    Ok(stream)
}
