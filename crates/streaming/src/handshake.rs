//! The server's side of the HTTP upgrade: what the client asked for, what is chosen, the 101 answer or the refusal.

use std::fmt::Write as _;

use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::protocol::{PORT_FORWARD, Protocol, SPDY, STREAM_PROTOCOL_VERSION, Subprotocol, TUNNEL_PREFIX, choose};

/// An upgraded HTTP connection.
pub type UpgradedIo = TokioIo<Upgraded>;

/// What a client of exec or attach speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SPDY streams.
    Spdy(Protocol),
    /// WebSocket channels.
    WebSocket(Subprotocol),
}

/// What a client of port-forward speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardDialect {
    /// SPDY streams.
    Spdy,
    /// SPDY streams inside a WebSocket.
    Tunnel,
    /// WebSocket channels, one pair per port of the query.
    WebSocket(Subprotocol),
}

/// A request that can be upgraded: send the response, then wait for the connection.
#[derive(Debug)]
pub struct Accepted<D> {
    /// The 101 response.
    pub response: Response<()>,
    /// What was chosen.
    pub dialect: D,
    /// The connection, once the response is sent.
    pub upgrade: PendingUpgrade,
}

/// A connection that becomes raw when the 101 response has been sent.
#[derive(Debug)]
pub struct PendingUpgrade(OnUpgrade);

impl PendingUpgrade {
    /// Takes the connection over that `message` came on.
    pub fn of<B>(message: &mut Request<B>) -> Self {
        Self(hyper::upgrade::on(message))
    }

    /// Waits for the raw connection.
    ///
    /// # Errors
    /// When the client goes away first.
    pub async fn io(self) -> Result<UpgradedIo, hyper::Error> {
        Ok(TokioIo::new(self.0.await?))
    }
}

/// A refused upgrade: a plain-text answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status code.
    pub status: StatusCode,
    /// Headers to add.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    /// The answer; the connection is closed after it.
    #[must_use]
    pub fn into_response<B: From<String>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.body));
        *response.status_mut() = self.status;
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(http::header::CONTENT_TYPE, text);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// Whether a request asks to be upgraded at all.
#[must_use]
pub fn is_upgrade(headers: &HeaderMap) -> bool {
    tokens(headers, &CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"))
}

/// Whether a request is a WebSocket handshake.
#[must_use]
pub fn is_websocket(headers: &HeaderMap) -> bool {
    is_upgrade(headers) && tokens(headers, &UPGRADE).any(|token| token.eq_ignore_ascii_case("websocket"))
}

/// Whether a request asks for SPDY.
#[must_use]
pub fn is_spdy(headers: &HeaderMap) -> bool {
    is_upgrade(headers) && tokens(headers, &UPGRADE).any(|token| token.eq_ignore_ascii_case(SPDY))
}

/// The WebSocket subprotocols that a client asks for, in its order.
#[must_use]
pub fn subprotocols(headers: &HeaderMap) -> Vec<&str> {
    tokens(headers, &SEC_WEBSOCKET_PROTOCOL).collect()
}

/// Chooses how to speak to a client of exec or attach. `served` are the WebSocket subprotocols that the caller handles:
/// [`Subprotocol::SERVED`], [`Subprotocol::TRANSLATED`] or both.
///
/// # Errors
/// The answer to send when the request cannot be upgraded.
pub fn accept_remote_command<B>(
    request: &mut Request<B>,
    served: &[Subprotocol],
) -> Result<Accepted<Dialect>, Refusal> {
    let (response, dialect) = if is_websocket(request.headers()) {
        let (response, subprotocol) = accept_websocket(request, served)?;
        (response, Dialect::WebSocket(subprotocol))
    } else {
        let names = Protocol::SPDY_SERVER.map(Protocol::name);
        let chosen = negotiate_spdy(request.headers(), &names)?;
        let protocol = Protocol::from_name(chosen).unwrap_or(Protocol::V1);
        (spdy_response(chosen), Dialect::Spdy(protocol))
    };
    Ok(Accepted { response, dialect, upgrade: PendingUpgrade::of(request) })
}

/// Chooses how to speak to a client of port-forward.
///
/// # Errors
/// The answer to send when the request cannot be upgraded.
pub fn accept_port_forward<B>(request: &mut Request<B>) -> Result<Accepted<ForwardDialect>, Refusal> {
    let (response, dialect) = if !is_websocket(request.headers()) {
        let chosen = negotiate_spdy(request.headers(), &[PORT_FORWARD])?;
        (spdy_response(chosen), ForwardDialect::Spdy)
    } else if is_tunnel(request.headers()) {
        let names = tunnelled_protocols(request.headers())?;
        if !names.contains(&PORT_FORWARD) {
            return Err(Refusal::new(StatusCode::FORBIDDEN, no_common_protocol(&names, &[PORT_FORWARD])));
        }
        (websocket_response(request, &format!("{TUNNEL_PREFIX}{PORT_FORWARD}"))?, ForwardDialect::Tunnel)
    } else {
        let (response, subprotocol) = accept_websocket(request, &Subprotocol::PORT_FORWARD)?;
        (response, ForwardDialect::WebSocket(subprotocol))
    };
    Ok(Accepted { response, dialect, upgrade: PendingUpgrade::of(request) })
}

/// Whether a WebSocket client wants SPDY inside.
#[must_use]
pub fn is_tunnel(headers: &HeaderMap) -> bool {
    subprotocols(headers).iter().any(|name| name.starts_with(TUNNEL_PREFIX))
}

/// The stream protocols that a tunnel's client asks for, without their prefix.
pub(crate) fn tunnelled_protocols(headers: &HeaderMap) -> Result<Vec<&str>, Refusal> {
    let names: Vec<&str> = subprotocols(headers)
        .into_iter()
        .filter_map(|name| name.strip_prefix(TUNNEL_PREFIX))
        .filter(|name| name.ends_with(".k8s.io"))
        .collect();
    if names.is_empty() {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "unable to upgrade: no tunneling spdy protocols provided"));
    }
    Ok(names)
}

pub(crate) fn accept_websocket<B>(
    request: &Request<B>,
    served: &[Subprotocol],
) -> Result<(Response<()>, Subprotocol), Refusal> {
    let mut wanted = subprotocols(request.headers());
    if wanted.is_empty() {
        wanted.push("");
    }
    let Some(chosen) = choose(&wanted, served, |candidate| candidate.name) else {
        let served: Vec<&str> = served.iter().map(|candidate| candidate.name).collect();
        tracing::debug!(?wanted, ?served, "requested protocol(s) are not supported");
        return Err(Refusal::new(StatusCode::FORBIDDEN, ""));
    };
    Ok((websocket_response(request, chosen.name)?, chosen))
}

/// The 101 answer of a WebSocket handshake.
pub(crate) fn websocket_response<B>(request: &Request<B>, subprotocol: &str) -> Result<Response<()>, Refusal> {
    let bad = |text: &str| Refusal::new(StatusCode::BAD_REQUEST, text);
    if request.method() != Method::GET {
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "bad method"));
    }
    if request.headers().get("sec-websocket-version").is_none_or(|version| version != "13") {
        let mut refusal = bad("missing or bad WebSocket Version");
        let name = HeaderName::from_static("sec-websocket-version");
        refusal.headers.push((name, HeaderValue::from_static("13")));
        return Err(refusal);
    }
    let key = request.headers().get(SEC_WEBSOCKET_KEY).ok_or_else(|| bad("missing or bad WebSocket Key"))?;
    let accept = derive_accept_key(key.as_bytes());
    let mut response = switching("websocket");
    let headers = response.headers_mut();
    headers.insert(SEC_WEBSOCKET_ACCEPT, value(&accept));
    if !subprotocol.is_empty() {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, value(subprotocol));
    }
    Ok(response)
}

fn spdy_response(protocol: &str) -> Response<()> {
    let mut response = switching(SPDY);
    response.headers_mut().insert(STREAM_PROTOCOL_VERSION, value(protocol));
    response
}

pub(crate) fn switching(upgrade: &str) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    response.headers_mut().insert(UPGRADE, value(upgrade));
    response
}

/// Chooses a stream protocol for a SPDY client.
fn negotiate_spdy<'a>(headers: &HeaderMap, accepted: &'a [&'a str]) -> Result<&'a str, Refusal> {
    if !is_spdy(headers) {
        let text = format!("unable to upgrade: missing upgrade headers in request: {}", show(headers));
        return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
    }
    let name = HeaderName::from_static("x-stream-protocol-version");
    let wanted: Vec<&str> = tokens(headers, &name).collect();
    if wanted.is_empty() {
        let values: Vec<&str> = headers.get_all(&name).iter().filter_map(|value| value.to_str().ok()).collect();
        let trouble = match values.first().copied() {
            None => format!("does not exist in request with {} headers", headers.keys_len()),
            Some("") => "is empty".to_owned(),
            Some(_) => format!("contains {values:?}, but no valid protocols"),
        };
        let text = format!("unable to upgrade: header {STREAM_PROTOCOL_VERSION} {trouble}");
        return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
    }
    choose(&wanted, accepted, |candidate| candidate).ok_or_else(|| {
        let mut refusal = Refusal::new(StatusCode::FORBIDDEN, no_common_protocol(&wanted, accepted));
        for protocol in accepted {
            refusal.headers.push((HeaderName::from_static("x-accepted-stream-protocol-versions"), value(protocol)));
        }
        refusal
    })
}

fn no_common_protocol(wanted: &[&str], accepted: &[&str]) -> String {
    format!(
        "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]",
        wanted.join(" "),
        accepted.join(" ")
    )
}

/// The comma-separated words of all lines of a header, without empty ones.
fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|token| !token.is_empty())
}

/// The headers for an error text; credentials are left out.
fn show(headers: &HeaderMap) -> String {
    let mut text = String::from("http.Header{");
    for (index, name) in headers.keys().enumerate() {
        let hidden = matches!(name.as_str(), "authorization" | "cookie" | "proxy-authorization");
        let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        let values = if hidden { vec!["-"] } else { values };
        let separator = if index == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{:?}:{values:?}", name.as_str());
    }
    text.push('}');
    text
}

/// A header value from text of ours or from a token that was a header value before.
pub(crate) fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)]) -> Request<()> {
        let mut builder = Request::builder().uri("/exec");
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap()
    }

    const SPDY_UPGRADE: [(&str, &str); 2] = [("Connection", "keep-alive, Upgrade"), ("Upgrade", "SPDY/3.1")];

    #[test]
    fn spdy_takes_the_first_common_protocol_of_the_client() {
        let mut headers = SPDY_UPGRADE.to_vec();
        headers.push(("X-Stream-Protocol-Version", "v5.channel.k8s.io, v4.channel.k8s.io"));
        headers.push(("X-Stream-Protocol-Version", "v3.channel.k8s.io"));
        let accepted = accept_remote_command(&mut request(&headers), &Subprotocol::SERVED).unwrap();
        assert_eq!(accepted.dialect, Dialect::Spdy(Protocol::V4));
        assert_eq!(accepted.response.status(), 101);
        assert_eq!(accepted.response.headers()["x-stream-protocol-version"], "v4.channel.k8s.io");
    }

    #[test]
    fn spdy_refusals() {
        let refuse = |headers: &[(&str, &str)]| {
            accept_remote_command(&mut request(headers), &Subprotocol::SERVED).map(|_| ()).unwrap_err()
        };
        let none = refuse(&[("X-Stream-Protocol-Version", "v4.channel.k8s.io")]);
        assert_eq!(none.status, 400);
        assert!(none.body.starts_with("unable to upgrade: missing upgrade headers in request: "), "{}", none.body);
        let absent = refuse(&SPDY_UPGRADE);
        let expected = "unable to upgrade: header X-Stream-Protocol-Version does not exist in request with 2 headers";
        assert_eq!((absent.status.as_u16(), absent.body.as_str()), (400, expected));
        let mut headers = SPDY_UPGRADE.to_vec();
        headers.push(("X-Stream-Protocol-Version", "v9"));
        let foreign = refuse(&headers);
        assert_eq!(foreign.status, 403);
        let expected = "unable to upgrade: unable to negotiate protocol: client supports [v9], server accepts \
                        [v4.channel.k8s.io v3.channel.k8s.io v2.channel.k8s.io channel.k8s.io]";
        assert_eq!(foreign.body, expected);
        assert_eq!(foreign.headers.len(), 4);
    }

    fn websocket(protocols: &str) -> Request<()> {
        let mut headers = vec![
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        if !protocols.is_empty() {
            headers.push(("Sec-WebSocket-Protocol", protocols));
        }
        request(&headers)
    }

    #[test]
    fn websocket_subprotocols() {
        let accepted =
            accept_remote_command(&mut websocket("x, v4.base64.channel.k8s.io"), &Subprotocol::SERVED).unwrap();
        assert_eq!(accepted.response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(accepted.response.headers()["sec-websocket-protocol"], "v4.base64.channel.k8s.io");
        let bare = accept_remote_command(&mut websocket(""), &Subprotocol::SERVED).unwrap();
        assert!(!bare.response.headers().contains_key("sec-websocket-protocol"));
        let foreign = accept_remote_command(&mut websocket("v5.channel.k8s.io"), &Subprotocol::SERVED).unwrap_err();
        assert_eq!((foreign.status.as_u16(), foreign.body.as_str()), (403, ""));
        assert!(accept_remote_command(&mut websocket("v5.channel.k8s.io"), &Subprotocol::TRANSLATED).is_ok());
    }

    #[test]
    fn port_forward_dialects() {
        let tunnel = accept_port_forward(&mut websocket("SPDY/3.1+portforward.k8s.io")).unwrap();
        assert_eq!(tunnel.dialect, ForwardDialect::Tunnel);
        assert_eq!(tunnel.response.headers()["sec-websocket-protocol"], "SPDY/3.1+portforward.k8s.io");
        let foreign = accept_port_forward(&mut websocket("SPDY/3.1+other")).unwrap_err();
        assert_eq!(foreign.body, "unable to upgrade: no tunneling spdy protocols provided");
        let old = accept_port_forward(&mut websocket("v4.channel.k8s.io")).unwrap();
        assert!(matches!(old.dialect, ForwardDialect::WebSocket(_)));
    }
}
