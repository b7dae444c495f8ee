//! Tunnels through HTTP proxies: the method CONNECT of RFC 9110, section 9.3.6.

use std::io;

use base::Connection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A proxy's answer is a status line and a few headers.
const MAX_ANSWER_BYTES: usize = 8 * 1024;
const END: &[u8] = b"\r\n\r\n";

/// Why there is no tunnel.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The answer is longer than any need be.
    #[error("answer too long")]
    Long,
    /// The answer is not one of HTTP.
    #[error("malformed HTTP response {0:?}")]
    Malformed(String),
    /// The proxy will not.
    #[error("{status}")]
    Refused {
        /// What it said.
        code: u16,
        /// The code with its reason.
        status: String,
    },
}

/// Asks a proxy for a tunnel to `target`, `host:port`; `host` is the header of that name, and `authorization` says to the proxy
/// who asks, if it must know. What follows the proxy's answer is the target's: nothing of it is read here. The caller bounds
/// the time.
///
/// # Errors
/// When the proxy does not give one.
pub async fn tunnel(
    mut stream: Connection,
    target: &str,
    host: &str,
    authorization: Option<&str>,
) -> Result<Connection, TunnelError> {
    let authorization = authorization.map(|text| format!("Proxy-Authorization: {text}\r\n")).unwrap_or_default();
    stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {host}\r\n{authorization}\r\n").as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    while !answer.ends_with(END) {
        if answer.len() >= MAX_ANSWER_BYTES {
            return Err(TunnelError::Long);
        }
        answer.push(stream.read_u8().await?);
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let line = answer.lines().next().unwrap_or_default();
    let parsed = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split_once(' ')).and_then(|(_, status)| {
        let code = status.split(' ').next()?.parse().ok()?;
        Some((code, status.trim().to_owned()))
    });
    match parsed {
        None => Err(TunnelError::Malformed(line.to_owned())),
        Some((200, _)) => Ok(stream),
        Some((code, status)) => Err(TunnelError::Refused { code, status }),
    }
}
