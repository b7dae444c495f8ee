//! Telling systemd about the state of the service (`sd_notify`): one datagram to the socket in `NOTIFY_SOCKET`.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Says `READY=1`; does nothing outside systemd.
pub fn ready() {
    notify("READY=1");
}

/// Says `STOPPING=1`; does nothing outside systemd.
pub fn stopping() {
    notify("STOPPING=1");
}

/// Sends a state (`WATCHDOG=1`, `STATUS=...`); answers whether there was somebody to tell and it worked.
pub fn notify(state: &str) -> bool {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()) else { return false };
    match send(&socket, state) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, state, "Unable to notify systemd");
            false
        }
    }
}

/// A name that begins with `@` is in the abstract namespace.
fn send(socket: &OsStr, state: &str) -> std::io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_arrive_at_both_kinds_of_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let abstract_name = format!("coxswain-notify-test-{}", std::process::id());
        let cases = [
            (UnixDatagram::bind(&path).unwrap(), path.display().to_string()),
            (
                UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&abstract_name).unwrap()).unwrap(),
                format!("@{abstract_name}"),
            ),
        ];
        for (receiver, name) in cases {
            send(OsStr::new(&name), "READY=1").unwrap();
            let mut buffer = [0; 32];
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1", "{name}");
        }
        assert!(send(OsStr::new("/nonexistent/socket"), "READY=1").is_err());
    }
}
