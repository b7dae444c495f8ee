//! SOCKS version 5 (RFC 1928), the command CONNECT alone, with a name and a password (RFC 1929) where there is one. Names of
//! servers are the proxy's to resolve, as upstream's library has it.

use std::io;
use std::net::IpAddr;

use base::Connection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const VERSION: u8 = 5;
const CONNECT: u8 = 1;
const NO_AUTHENTICATION: u8 = 0;
const USERNAME_PASSWORD: u8 = 2;
const USERNAME_PASSWORD_VERSION: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Why there is no way through the proxy; the texts are those of upstream's library.
#[derive(Debug, thiserror::Error)]
pub(super) enum SocksError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("unexpected protocol version {0}")]
    Version(u8),
    #[error("no acceptable authentication methods")]
    Methods,
    #[error("unsupported authentication method {0}")]
    Method(u8),
    #[error("invalid username/password")]
    Unsayable,
    #[error("username/password authentication failed")]
    Credentials,
    #[error("FQDN too long")]
    Name,
    #[error("{}", reason(*.0))]
    Refused(u8),
    #[error("unknown address type {0}")]
    Address(u8),
}

fn reason(code: u8) -> String {
    let known = match code {
        1 => "general SOCKS server failure",
        2 => "connection not allowed by ruleset",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "TTL expired",
        7 => "command not supported",
        8 => "address type not supported",
        _ => return format!("unknown code: {code}"),
    };
    known.to_owned()
}

/// Asks the proxy at the other end for a connection to a port of a host. The caller bounds the time.
///
/// # Errors
/// When the proxy does not give one.
pub(super) async fn connect(
    mut stream: Connection,
    host: &str,
    port: u16,
    user: Option<(&str, &str)>,
) -> Result<Connection, SocksError> {
    let offer: &[u8] = match user {
        None => &[VERSION, 1, NO_AUTHENTICATION],
        Some(_) => &[VERSION, 2, NO_AUTHENTICATION, USERNAME_PASSWORD],
    };
    let [version, method] = exchange(&mut stream, offer).await?;
    expect_version(version)?;
    match (method, user) {
        (NO_AUTHENTICATION, _) => {}
        (USERNAME_PASSWORD, Some((name, password))) => authenticate(&mut stream, name, password).await?,
        (0xff, _) => return Err(SocksError::Methods),
        (other, _) => return Err(SocksError::Method(other)),
    }
    let [version, code, _, kind] = exchange(&mut stream, &request(host, port)?).await?;
    expect_version(version)?;
    if code != 0 {
        return Err(SocksError::Refused(code));
    }
    // Where the proxy connects from is of no interest, but what follows is the server's.
    let length = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => usize::from(stream.read_u8().await?),
        other => return Err(SocksError::Address(other)),
    };
    let mut rest = vec![0; length + size_of::<u16>()];
    stream.read_exact(&mut rest).await?;
    Ok(stream)
}

async fn authenticate(stream: &mut Connection, name: &str, password: &str) -> Result<(), SocksError> {
    let length = |text: &str| u8::try_from(text.len()).map_err(|_| SocksError::Unsayable);
    if name.is_empty() {
        return Err(SocksError::Unsayable);
    }
    let mut message = vec![USERNAME_PASSWORD_VERSION, length(name)?];
    message.extend(name.as_bytes());
    message.push(length(password)?);
    message.extend(password.as_bytes());
    let [version, status] = exchange(stream, &message).await?;
    if version != USERNAME_PASSWORD_VERSION {
        return Err(SocksError::Version(version));
    }
    if status == 0 { Ok(()) } else { Err(SocksError::Credentials) }
}

fn request(host: &str, port: u16) -> Result<Vec<u8>, SocksError> {
    let mut message = vec![VERSION, CONNECT, 0];
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            message.push(IPV4);
            message.extend(address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            message.push(IPV6);
            message.extend(address.octets());
        }
        Err(_) => {
            message.extend([NAME, u8::try_from(host.len()).map_err(|_| SocksError::Name)?]);
            message.extend(host.as_bytes());
        }
    }
    message.extend(port.to_be_bytes());
    Ok(message)
}

async fn exchange<const N: usize>(stream: &mut Connection, message: &[u8]) -> Result<[u8; N], SocksError> {
    stream.write_all(message).await?;
    stream.flush().await?;
    let mut answer = [0; N];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

const fn expect_version(version: u8) -> Result<(), SocksError> {
    if version == VERSION { Ok(()) } else { Err(SocksError::Version(version)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether there is a way, or why not, and what the proxy was told.
    async fn outcome(host: &str, user: Option<(&str, &str)>, answers: &[u8]) -> (Result<Vec<u8>, String>, Vec<u8>) {
        let (near, mut far) = tokio::io::duplex(4096);
        far.write_all(answers).await.unwrap();
        let connected = connect(Box::new(near), host, 443, user).await;
        let rest = match connected {
            Ok(mut stream) => {
                far.shutdown().await.unwrap();
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).await.unwrap();
                Ok(rest)
            }
            Err(error) => Err(error.to_string()),
        };
        let mut told = Vec::new();
        far.read_to_end(&mut told).await.unwrap();
        (rest, told)
    }

    #[tokio::test]
    async fn the_proxy_is_told_where_to_and_who_asks() {
        let granted = [5, 0, 5, 0, 0, 1, 10, 0, 0, 1, 1, 187, b'x'];
        let by_name = [&[5, 1, 0, 5, 1, 0, 3, 3][..], b"a.b", &[1, 187]].concat();
        let password = [&[5, 2, 0, 2, 1, 2][..], b"me", &[1], b"p", &[5, 1, 0, 1, 10, 0, 0, 9, 1, 187]].concat();
        let v6 = [&[5, 1, 0, 5, 1, 0, 4, 0xfd][..], &[0; 14], &[1, 1, 187]].concat();
        for (name, host, user, answers, expected) in [
            ("by name", "a.b", None, &granted[..], by_name.clone()),
            ("answers with a name", "a.b", None, &[5, 0, 5, 0, 0, 3, 1, b'n', 0, 1, b'x'], by_name),
            ("a password", "10.0.0.9", Some(("me", "p")), &[&[5, 2, 1, 0], &granted[2..]].concat(), password),
            ("IPv6", "fd00::1", None, &[&[5, 0, 5, 0, 0, 4][..], &[0; 18], b"x"].concat(), v6),
        ] {
            let (rest, told) = outcome(host, user, answers).await;
            assert_eq!((rest, told), (Ok(b"x".to_vec()), expected), "{name}");
        }
    }

    #[tokio::test]
    async fn refusals_are_told() {
        let long = "n".repeat(256);
        for (host, user, answers, expected) in [
            ("a", None, &[5, 0xff][..], "no acceptable authentication methods"),
            ("a", None, &[5, 2], "unsupported authentication method 2"),
            ("a", None, &[4, 0], "unexpected protocol version 4"),
            ("a", Some(("me", "p")), &[5, 2, 1, 1], "username/password authentication failed"),
            ("a", Some(("", "p")), &[5, 2], "invalid username/password"),
            ("a", None, &[5, 0, 5, 5, 0, 1], "connection refused"),
            ("a", None, &[5, 0, 5, 77, 0, 1], "unknown code: 77"),
            ("a", None, &[5, 0, 5, 0, 0, 9], "unknown address type 9"),
            (&long, None, &[5, 0], "FQDN too long"),
        ] {
            assert_eq!(outcome(host, user, answers).await.0, Err(expected.to_owned()), "{answers:?}");
        }
    }
}
