//! One HTTP GET of a probe or a hook: a connection of its own, no proxy, a bounded body, redirects only within the host.

use std::time::Duration;

use base::host_and_port;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, HOST, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio_rustls::TlsConnector;

use super::dial::{DialError, dial};
use super::tls::Trust;

/// What is read of an answer's body.
const BODY_LIMIT_BYTES: usize = 10 * 1024;
const MAX_REDIRECTS: usize = 10;

/// What to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Get {
    /// `http` or `https`.
    pub scheme: String,
    pub host: String,
    pub port: u16,
    /// Path and query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub user_agent: &'static str,
}

impl Get {
    pub(crate) fn new(
        scheme: &str,
        host: &str,
        port: u16,
        path: &str,
        headers: Vec<(String, String)>,
        user_agent: &'static str,
    ) -> Self {
        let scheme = if scheme.eq_ignore_ascii_case("https") { "https" } else { "http" };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Self { scheme: scheme.to_owned(), host: host.to_owned(), port, path, headers, user_agent }
    }

    fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, host_and_port(&self.host, self.port), self.path)
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub status: u16,
    pub body: String,
    /// Whether the body was read to its end.
    pub complete: bool,
    /// Whether it is a redirect to another host, which is not followed.
    pub foreign_redirect: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The server answered a TLS handshake in plain HTTP, and would answer a plain request.
    #[error("http: server gave HTTP response to HTTPS client")]
    PlainAnswerToTls,
    /// No connection, no answer in time, or a broken one.
    #[error("Get {url:?}: {source}")]
    Transport { url: String, source: TransportError },
    /// Redirects without end.
    #[error("Get {url:?}: stopped after 10 redirects")]
    Redirects { url: String },
}

/// Why nothing came back.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error(transparent)]
    ServerName(#[from] InvalidDnsNameError),
    #[error(transparent)]
    Handshake(std::io::Error),
    /// The request cannot be written down.
    #[error(transparent)]
    Message(#[from] http::Error),
    #[error(transparent)]
    Exchange(#[from] hyper::Error),
    #[error("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")]
    Late,
}

/// Asks, following redirects within the host, all within `limit`; of the body what a probe looks at.
pub(crate) async fn get(request: &Get, limit: Duration) -> Result<Answer, HttpError> {
    get_up_to(request, limit, BODY_LIMIT_BYTES, &Trust::Anyone).await
}

/// The same with another bound on the body, and of those who are trusted; what lies beyond the bound is left unread.
pub(crate) async fn get_up_to(
    request: &Get,
    limit: Duration,
    body_bytes: usize,
    trust: &Trust,
) -> Result<Answer, HttpError> {
    let late = |_| HttpError::Transport { url: request.url(), source: TransportError::Late };
    tokio::time::timeout(limit, follow(request, body_bytes, trust)).await.map_err(late)?
}

async fn follow(request: &Get, body_bytes: usize, trust: &Trust) -> Result<Answer, HttpError> {
    let mut request = request.clone();
    for _ in 0..MAX_REDIRECTS {
        let (answer, location) = ask(&request, body_bytes, trust).await?;
        let Some(location) = location.filter(|_| (300..400).contains(&answer.status)) else { return Ok(answer) };
        match redirected(&request, &location) {
            Some(next) if next.host == request.host && stays_judged(&request, &next, trust) => request = next,
            Some(_) => return Ok(Answer { foreign_redirect: true, ..answer }),
            None => return Ok(answer),
        }
    }
    Err(HttpError::Redirects { url: request.url() })
}

/// Whether the one who answers next is as trusted as the one who sent there.
fn stays_judged(request: &Get, next: &Get, trust: &Trust) -> bool {
    matches!(trust, Trust::Anyone) || request.scheme == "http" || next.scheme == "https"
}

/// Where a redirect leads.
fn redirected(request: &Get, location: &str) -> Option<Get> {
    let uri: http::Uri = location.parse().ok()?;
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let mut next = Get { path: path.to_owned(), ..request.clone() };
    if let Some(host) = uri.host() {
        next.scheme = uri.scheme_str().unwrap_or(&request.scheme).to_owned();
        next.host = host.trim_matches(['[', ']']).to_owned();
        next.port = uri.port_u16().unwrap_or(if next.scheme == "https" { 443 } else { 80 });
    } else if !location.starts_with('/') {
        let base = request.path.rsplit_once('/').map_or("", |(base, _)| base);
        next.path = format!("{base}/{location}");
    }
    Some(next)
}

async fn ask(request: &Get, body_bytes: usize, trust: &Trust) -> Result<(Answer, Option<String>), HttpError> {
    let failed = |source| HttpError::Transport { url: request.url(), source };
    let stream = dial(&request.host, request.port).await.map_err(|error| failed(error.into()))?;
    if request.scheme == "http" {
        return exchange(request, stream, body_bytes).await;
    }
    let config = trust.config().map_err(|error| failed(error.into()))?;
    let name = ServerName::try_from(request.host.clone()).map_err(|error| failed(error.into()))?;
    match TlsConnector::from(config).connect(name, stream).await {
        Ok(stream) => exchange(request, stream, body_bytes).await,
        // The first byte of a plain answer ('H') is no TLS record type.
        Err(error) if error.to_string().contains("InvalidContentType") => Err(HttpError::PlainAnswerToTls),
        Err(error) => Err(failed(TransportError::Handshake(error))),
    }
}

async fn exchange<S>(request: &Get, stream: S, body_bytes: usize) -> Result<(Answer, Option<String>), HttpError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let failed = |source| HttpError::Transport { url: request.url(), source };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(error.into()))?;
    let message = message(request).map_err(|error| failed(error.into()))?;
    let asking = async {
        let response = sender.send_request(message).await.map_err(|error| failed(error.into()))?;
        let status = response.status().as_u16();
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let mut body = response.into_body();
        let mut read = BytesMut::new();
        let complete = loop {
            let frame = match body.frame().await {
                None => break true,
                Some(Err(_)) => break false,
                Some(Ok(frame)) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            let room = body_bytes.saturating_sub(read.len());
            read.extend_from_slice(&data.slice(..data.len().min(room)));
            if room < data.len() {
                break false;
            }
        };
        let body = String::from_utf8_lossy(&read).into_owned();
        Ok((Answer { status, body, complete, foreign_redirect: false }, location))
    };
    tokio::pin!(asking);
    tokio::select! {
        answer = &mut asking => answer,
        // The connection may end before the answer has been looked at.
        _ = connection => asking.await,
    }
}

fn message(request: &Get) -> Result<http::Request<Empty<Bytes>>, http::Error> {
    let mut message = http::Request::get(&request.path).body(Empty::new())?;
    let headers = message.headers_mut();
    headers.insert(HOST, HeaderValue::try_from(host_and_port(&request.host, request.port))?);
    headers.insert(USER_AGENT, HeaderValue::from_static(request.user_agent));
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    let mut own = std::collections::HashSet::new();
    for (name, value) in &request.headers {
        let name = HeaderName::try_from(name.as_str())?;
        let value = HeaderValue::try_from(value.as_str())?;
        if name == ACCEPT && value.is_empty() {
            headers.remove(ACCEPT);
        } else if own.insert(name.clone()) {
            headers.insert(name, value);
        } else {
            headers.append(name, value);
        }
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one connection for each text; hands back what was asked.
    async fn serve(answers: Vec<String>) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        #[expect(clippy::disallowed_methods, reason = "a test's own server")]
        let task = tokio::spawn(async move {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut buffer = vec![0; 4096];
                let read = stream.read(&mut buffer).await.unwrap();
                asked.push(String::from_utf8_lossy(&buffer[..read]).into_owned());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            asked
        });
        (port, task)
    }

    fn request(port: u16, headers: &[(&str, &str)]) -> Get {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Get::new("HTTP", "127.0.0.1", port, "healthz?x=1", headers, "kube-probe/1.36")
    }

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn asks_as_upstream_does() {
        let (port, task) = serve(vec!["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_owned()]).await;
        let answer = get(&request(port, &[("X-A", "b"), ("Accept", ""), ("Host", "name")]), LIMIT).await.unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
        let asked = task.await.unwrap().remove(0).to_lowercase();
        assert!(asked.starts_with("get /healthz?x=1 http/1.1\r\n"), "{asked}");
        assert!(asked.contains("host: name\r\n") && asked.contains("x-a: b\r\n"), "{asked}");
        assert!(asked.contains("user-agent: kube-probe/1.36\r\n") && !asked.contains("accept:"), "{asked}");
    }

    #[tokio::test]
    async fn redirects_stay_on_the_host() {
        let away = "HTTP/1.1 302 Found\r\nlocation: http://example.invalid/\r\ncontent-length: 0\r\n\r\n".to_owned();
        let near = "HTTP/1.1 302 Found\r\nlocation: /next\r\ncontent-length: 0\r\n\r\n".to_owned();
        let (port, task) = serve(vec![near, away]).await;
        let answer = get(&request(port, &[]), LIMIT).await.unwrap();
        assert!(answer.foreign_redirect);
        assert!(task.await.unwrap()[1].starts_with("GET /next "));
        let near = || "HTTP/1.1 302 Found\r\nlocation: /next\r\ncontent-length: 0\r\n\r\n".to_owned();
        let fine = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_owned();
        for (redirects, is_fine) in [(9, true), (10, false)] {
            let answers = (0..redirects).map(|_| near()).chain([fine.clone()]).collect();
            let (port, _task) = serve(answers).await;
            let outcome = get(&request(port, &[]), LIMIT).await;
            assert_eq!(outcome.is_ok(), is_fine, "{redirects}");
            assert!(is_fine || outcome.unwrap_err().to_string().ends_with(": stopped after 10 redirects"));
        }
    }

    #[tokio::test]
    async fn bodies_are_bounded_and_refusals_told() {
        let body = "x".repeat(BODY_LIMIT_BYTES * 2);
        let (port, _task) =
            serve(vec![format!("HTTP/1.1 500 No\r\ncontent-length: {}\r\n\r\n{body}", body.len())]).await;
        let answer = get(&request(port, &[]), LIMIT).await.unwrap();
        assert_eq!((answer.status, answer.body.len(), answer.complete), (500, BODY_LIMIT_BYTES, false));
        let (port, _task) = serve(vec!["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut".to_owned()]).await;
        let answer = get(&request(port, &[]), LIMIT).await.unwrap();
        assert_eq!((answer.body.as_str(), answer.complete), ("cut", false));
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let error = get(&request(closed, &[]), LIMIT).await.unwrap_err().to_string();
        assert!(error.ends_with("connect: connection refused"), "{error}");
    }

    #[tokio::test]
    async fn certificates_are_not_judged_and_plain_answers_are_told() {
        let made = pki_certificate();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        #[expect(clippy::disallowed_methods, reason = "a test's own server")]
        let _server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = tokio_rustls::TlsAcceptor::from(made).accept(stream).await.unwrap();
            let mut buffer = vec![0; 4096];
            let _ = stream.read(&mut buffer).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        });
        let secure = |port| Get { scheme: "https".into(), ..request(port, &[]) };
        assert_eq!(get(&secure(port), LIMIT).await.unwrap().body, "ok");
        let (port, _task) = serve(vec!["HTTP/1.0 400 Bad Request\r\n\r\nno TLS here".to_owned()]).await;
        assert!(matches!(get(&secure(port), LIMIT).await, Err(HttpError::PlainAnswerToTls)));
    }

    /// A server with a certificate that nobody vouches for and whose time is over.
    fn pki_certificate() -> std::sync::Arc<rustls::ServerConfig> {
        use pki::{AltNames, CertificateAuthority, CertificateSpec, KeyAlgorithm, PrivateKey};
        use rustls::pki_types::pem::PemObject as _;

        let (rng, hour) = (base::Rng::seeded(1), Duration::from_secs(3600));
        let past = std::time::SystemTime::UNIX_EPOCH + hour * 24 * 365;
        let key = || PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let authority = CertificateAuthority::create("nobody", key(), hour, past, &rng).unwrap();
        let own = key();
        let spec = CertificateSpec::server("else", AltNames::default(), hour);
        let leaf = authority.issue(&spec, own.public_key(), past, &rng).unwrap();
        let secret = rustls::pki_types::PrivateKeyDer::from_pem_slice(own.to_pem().unwrap().as_bytes()).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_no_client_auth();
        std::sync::Arc::new(config.with_single_cert(vec![leaf.der().to_vec().into()], secret).unwrap())
    }
}
