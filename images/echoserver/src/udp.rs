//! The same over UDP, where a datagram is a request: `hostname`, `clientip`, and anything else comes back as it is.
//! `echoserver ask ADDRESS:PORT TEXT` is the client: the small images have no other.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

const DATAGRAM_MAX: usize = 64 * 1024;
/// How long a client waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Answers datagrams for ever.
pub fn serve(socket: &UdpSocket, hostname: &str) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    loop {
        // What went wrong with one datagram, such as that its sender is gone, does not concern the next.
        let Ok((length, client)) = socket.recv_from(&mut buffer) else { continue };
        let request = buffer.get(..length).unwrap_or_default();
        let answer = match request.trim_ascii() {
            b"hostname" => hostname.as_bytes().to_vec(),
            b"clientip" => client.ip().to_canonical().to_string().into_bytes(),
            _ => request.to_vec(),
        };
        if let Err(error) = socket.send_to(&answer, client) {
            eprintln!("answering {client} failed: {error}");
        }
    }
}

/// Sends one datagram and gives what comes back.
pub fn ask(address: &str, text: &str) -> io::Result<String> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    socket.send(text.as_bytes())?;
    let mut buffer = vec![0; DATAGRAM_MAX];
    let length = socket.recv(&mut buffer)?;
    Ok(String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_answered() {
        let Ok(socket) = UdpSocket::bind("127.0.0.1:0") else { return };
        let address = socket.local_addr().map(|address| address.to_string()).unwrap_or_default();
        std::thread::spawn(move || serve(&socket, "web-0"));
        let answers = ["hostname", "clientip", "echo me"].map(|text| ask(&address, text).unwrap_or_default());
        assert_eq!(answers, ["web-0", "127.0.0.1", "echo me"]);
    }
}
