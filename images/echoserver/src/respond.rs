//! What each path answers.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::request::Request;

/// `/delay` waits at most this long.
const DELAY_MAX_SECONDS: u32 = 600;

/// What the answers depend on beside the request.
pub struct Server {
    hostname: String,
    version: String,
    failing: AtomicBool,
}

/// One answer.
pub struct Response {
    pub status: u16,
    pub body: String,
    /// The process ends with this code once the answer is out.
    pub exit: Option<i32>,
}

impl Server {
    pub fn from_environment() -> Self {
        let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let version = std::env::var("ECHOSERVER_VERSION").unwrap_or_else(|_| "1.4".to_owned());
        Self::new(hostname.trim(), &version)
    }

    fn new(hostname: &str, version: &str) -> Self {
        Self { hostname: hostname.to_owned(), version: version.to_owned(), failing: AtomicBool::new(false) }
    }

    pub fn respond(&self, request: &Request, client: SocketAddr, local: SocketAddr) -> Response {
        match request.path() {
            "/hostname" => ok(self.hostname.clone()),
            "/clientip" => ok(SocketAddr::new(client.ip().to_canonical(), client.port()).to_string()),
            "/healthz" | "/readyz" | "/livez" => self.health(),
            "/fail" => self.set_failing(true),
            "/recover" => self.set_failing(false),
            "/env" => ok(environment()),
            "/delay" => delay(request.number("s").unwrap_or(1)),
            "/exit" => exit(request.number("code").unwrap_or(0)),
            _ => ok(self.report(request, client, local)),
        }
    }

    pub fn hostname(&self) -> &str {
        &self.hostname
    }

    /// Whether health checks are to pass.
    pub fn is_serving(&self) -> bool {
        !self.failing.load(Ordering::Relaxed)
    }

    fn health(&self) -> Response {
        if !self.is_serving() {
            return Response { status: 500, body: "failing".to_owned(), exit: None };
        }
        ok("ok".to_owned())
    }

    fn set_failing(&self, failing: bool) -> Response {
        self.failing.store(failing, Ordering::Relaxed);
        ok("ok".to_owned())
    }

    /// The classic report. Header names come in lower case and sorted, as there.
    fn report(&self, request: &Request, client: SocketAddr, local: SocketAddr) -> String {
        let host = request.header("host").map_or_else(|| local.to_string(), |host| with_port(host, local.port()));
        let mut headers: Vec<_> = request.headers.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        headers.sort();
        let body = String::from_utf8_lossy(&request.body);
        format!(
            "Hostname: {}\n\nCLIENT VALUES:\nclient_address={}\ncommand={}\nreal path={}\nquery={}\n\
             request_version={}\nrequest_uri=http://{host}{}\n\nSERVER VALUES:\nserver_version=echoserver: {}\n\n\
             HEADERS RECEIVED:\n{}BODY:\n{}",
            self.hostname,
            client.ip().to_canonical(),
            request.method,
            request.target,
            request.query().unwrap_or("nil"),
            request.version,
            request.target,
            self.version,
            headers.concat(),
            if body.is_empty() { "-no body in request-" } else { &body },
        )
    }
}

impl Response {
    pub fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        let reason = if self.status == 200 { "OK" } else { "Internal Server Error" };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.status,
            self.body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(self.body.as_bytes())?;
        stream.flush()
    }
}

fn ok(body: String) -> Response {
    Response { status: 200, body, exit: None }
}

fn delay(seconds: u32) -> Response {
    std::thread::sleep(Duration::from_secs(seconds.min(DELAY_MAX_SECONDS).into()));
    ok("delayed".to_owned())
}

fn exit(code: u32) -> Response {
    let code = i32::try_from(code.min(255)).unwrap_or(255);
    Response { status: 200, body: format!("exiting {code}"), exit: Some(code) }
}

fn environment() -> String {
    let mut text = String::new();
    for (name, value) in std::env::vars_os() {
        let _ = writeln!(text, "{}={}", name.to_string_lossy(), value.to_string_lossy());
    }
    text
}

/// A `Host` header always names a port in the report, also where the client left out the default one.
fn with_port(host: &str, port: u16) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(_, tail)| tail.parse::<u16>().is_ok()) && !host.ends_with(']');
    if has_port { host.to_owned() } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, target: &str, body: &[u8]) -> Request {
        Request {
            method: method.into(),
            target: target.into(),
            version: "1.1".into(),
            headers: vec![("host".into(), "web".into()), ("accept".into(), "*/*".into())],
            body: body.to_vec(),
        }
    }

    fn answer(server: &Server, request: &Request) -> Response {
        let client = SocketAddr::from(([10, 244, 1, 7], 4711));
        server.respond(request, client, SocketAddr::from(([10, 244, 1, 8], 8080)))
    }

    #[test]
    fn the_report_has_the_classic_form() {
        let server = Server::new("web-0", "1.5");
        let expected = "Hostname: web-0\n\nCLIENT VALUES:\nclient_address=10.244.1.7\ncommand=GET\nreal path=/a?b\n\
            query=b\nrequest_version=1.1\nrequest_uri=http://web:8080/a?b\n\nSERVER VALUES:\n\
            server_version=echoserver: 1.5\n\nHEADERS RECEIVED:\naccept=*/*\nhost=web\nBODY:\n-no body in request-";
        assert_eq!(answer(&server, &request("GET", "/a?b", b"")).body, expected);
        assert!(answer(&server, &request("POST", "/", b"hi")).body.ends_with("BODY:\nhi"));
    }

    #[test]
    fn health_follows_fail_and_recover() {
        let server = Server::new("h", "1.4");
        let status = |path| answer(&server, &request("GET", path, b"")).status;
        assert_eq!([status("/healthz"), status("/fail"), status("/healthz")], [200, 200, 500]);
        assert_eq!([status("/recover"), status("/healthz")], [200, 200]);
    }

    #[test]
    fn exit_codes_stay_in_range() {
        let server = Server::new("h", "1.4");
        assert_eq!(answer(&server, &request("GET", "/exit?code=3", b"")).exit, Some(3));
        assert_eq!(answer(&server, &request("GET", "/exit?code=999", b"")).exit, Some(255));
    }
}
