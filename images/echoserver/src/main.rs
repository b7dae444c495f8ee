//! A small HTTP server that tells a client what it sent: what tutorials and tests point Services at. `GET /` answers in
//! the form of the well-known echoserver 1.4 with the host's name in front; the version in the answer comes from
//! `ECHOSERVER_VERSION`, so that one program makes several image tags and a rolling update shows.
//!
//! Further paths for probes and traffic tests: `/hostname`, `/clientip`, `/healthz` (500 after `/fail`, until
//! `/recover`), `/env`, `/delay?s=N` and `/exit?code=N`. Listens on `PORT` or 8080, IPv6 and IPv4, TCP and UDP; on TCP
//! gRPC health checks are answered as well.

mod grpc;
mod request;
mod respond;
mod udp;

use std::ffi::c_int;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use request::Request;
use respond::Server;

/// Connections served at once; more are closed unanswered.
const CONNECTIONS_MAX: usize = 512;
/// How long a client may take to send its request or to take the answer.
const IO_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_PORT: u16 = 8080;

const SIGINT: c_int = 2;
const SIGTERM: c_int = 15;

unsafe extern "C" {
    fn signal(number: c_int, handler: extern "C" fn(c_int)) -> usize;
    fn _exit(status: c_int) -> !;
}

extern "C" fn end(_signal: c_int) {
    // SAFETY: `_exit` is async-signal-safe and takes no pointer.
    unsafe { _exit(0) }
}

fn main() -> std::io::Result<()> {
    // As PID 1 of its namespace a process gets only the signals it has a handler for.
    // SAFETY: the handler is `extern "C"`, lives for ever and calls only an async-signal-safe function.
    unsafe {
        signal(SIGINT, end);
        signal(SIGTERM, end);
    }
    let mut arguments = std::env::args().skip(1);
    if let (Some("ask"), Some(address), Some(text)) = (arguments.next().as_deref(), arguments.next(), arguments.next())
    {
        println!("{}", udp::ask(&address, &text)?);
        return Ok(());
    }
    let port = std::env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(DEFAULT_PORT);
    // `::` takes IPv4 too, as mapped addresses; a kernel without IPv6 has only the other.
    let listener = TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port)))?;
    println!("listening on {}", listener.local_addr()?);
    let server = Arc::new(Server::from_environment());
    // A port that another program of the pod uses for UDP is its own.
    if let Ok(socket) = UdpSocket::bind(("::", port)).or_else(|_| UdpSocket::bind(("0.0.0.0", port))) {
        let server = Arc::clone(&server);
        std::thread::spawn(move || udp::serve(&socket, server.hostname()));
    }
    serve(&listener, &server);
    Ok(())
}

fn serve(listener: &TcpListener, server: &Arc<Server>) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming().flatten() {
        if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (server, open) = (Arc::clone(server), Arc::clone(&open));
        std::thread::spawn(move || {
            if let Err(error) = answer(stream, &server) {
                eprintln!("connection failed: {error}");
            }
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

#[expect(clippy::disallowed_methods, reason = "`/exit` is there to end the process")]
fn answer(mut stream: TcpStream, server: &Server) -> std::io::Result<()> {
    stream.set_read_timeout(Some(IO_TIMEOUT))?;
    stream.set_write_timeout(Some(IO_TIMEOUT))?;
    let mut first = [0; grpc::MARK.len()];
    if stream.peek(&mut first)? == first.len() && first == grpc::MARK {
        return grpc::serve(&mut stream, || server.is_serving());
    }
    let (client, local) = (stream.peer_addr()?, stream.local_addr()?);
    let Some(request) = Request::read(&mut stream)? else { return Ok(()) };
    let response = server.respond(&request, client, local);
    println!("{} {} {} {}", client.ip().to_canonical(), request.method, request.target, response.status);
    response.write(&mut stream)?;
    if let Some(code) = response.exit {
        std::process::exit(code);
    }
    Ok(())
}
