//! Where bearer tokens are found: the `Authorization` header, and for browsers a WebSocket subprotocol.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use rustls_pki_types::CertificateDer;

use crate::authenticator::{Authenticator, AuthnError, RequestedAudiences, TokenAuthenticator};
use crate::front_proxy::ProxyHeaders;
use crate::headers;
use crate::identity::Identity;

const SUBPROTOCOL_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";
const EXTRA_SPACE: &str =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// What the `Authorization` header holds.
#[derive(Debug, PartialEq, Eq)]
enum Bearer<'a> {
    Token(&'a str),
    /// Another scheme, or nothing after `Bearer`.
    None,
    /// More than one space: upstream ignores the token and warns.
    ExtraSpace,
}

fn bearer(map: &HeaderMap) -> Bearer<'_> {
    let header = headers::values(map, AUTHORIZATION).next().unwrap_or_default().trim();
    let mut parts = header.splitn(3, ' ');
    let (scheme, token, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next());
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Bearer::None;
    }
    match (token, rest) {
        ("", Some(_)) => Bearer::ExtraSpace,
        ("", None) => Bearer::None,
        (token, _) => Bearer::Token(token),
    }
}

/// The warning owed to a client whose `Authorization` header is ignored because of an extra space.
#[must_use]
pub fn ignored_header_warning(map: &HeaderMap) -> Option<&'static str> {
    (bearer(map) == Bearer::ExtraSpace).then_some(EXTRA_SPACE)
}

fn requested_audiences(request: &Parts) -> &[String] {
    request.extensions.get::<RequestedAudiences>().map_or(&[], |requested| &requested.0)
}

async fn accept(tokens: &dyn TokenAuthenticator, token: &str, request: &Parts) -> Result<Option<Identity>, AuthnError> {
    match tokens.authenticate_token(token, requested_audiences(request)).await? {
        Some(identity) => Ok(Some(identity)),
        None => Err(AuthnError::InvalidBearerToken),
    }
}

/// Tokens of the `Authorization` header.
pub struct BearerHeader(pub Arc<dyn TokenAuthenticator>);

#[async_trait]
impl Authenticator for BearerHeader {
    async fn authenticate(
        &self,
        request: &Parts,
        _peer: &[CertificateDer<'static>],
    ) -> Result<Option<Identity>, AuthnError> {
        let Bearer::Token(token) = bearer(&request.headers) else { return Ok(None) };
        accept(self.0.as_ref(), token, request).await
    }
}

/// Tokens among the subprotocols of a WebSocket upgrade, where browsers can set no header.
pub struct WebSocketBearer(pub Arc<dyn TokenAuthenticator>);

#[async_trait]
impl Authenticator for WebSocketBearer {
    async fn authenticate(
        &self,
        request: &Parts,
        _peer: &[CertificateDer<'static>],
    ) -> Result<Option<Identity>, AuthnError> {
        let Some(token) = subprotocol_token(&request.headers)? else { return Ok(None) };
        accept(self.0.as_ref(), &token, request).await
    }
}

fn is_websocket_upgrade(map: &HeaderMap) -> bool {
    let has = |name: HeaderName, token: &str| {
        headers::values(map, name).flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(token))
    };
    has(CONNECTION, "upgrade") && has(UPGRADE, "websocket")
}

fn subprotocols(map: &HeaderMap) -> impl Iterator<Item = &str> {
    headers::values(map, SEC_WEBSOCKET_PROTOCOL).flat_map(|value| value.split(',')).map(str::trim)
}

fn subprotocol_token(map: &HeaderMap) -> Result<Option<String>, AuthnError> {
    if !is_websocket_upgrade(map) {
        return Ok(None);
    }
    let mut encoded = subprotocols(map).filter_map(|protocol| protocol.strip_prefix(SUBPROTOCOL_PREFIX));
    let Some(first) = encoded.next() else { return Ok(None) };
    if encoded.next().is_some() {
        return Err(AuthnError::refused("multiple base64.bearer.authorization tokens specified"));
    }
    let token = URL_SAFE_NO_PAD
        .decode(first)
        .map_err(|_| AuthnError::refused("invalid base64.bearer.authorization token encoding"))?;
    let token =
        String::from_utf8(token).map_err(|_| AuthnError::refused("invalid base64.bearer.authorization token"))?;
    if !subprotocols(map).any(|protocol| !protocol.starts_with(SUBPROTOCOL_PREFIX)) {
        return Err(AuthnError::refused("missing additional subprotocol"));
    }
    Ok(Some(token).filter(|token| !token.is_empty()))
}

/// Removes every credential after a successful authentication: the `Authorization` header, front proxy headers (the usual ones
/// and the configured ones), and the token among WebSocket subprotocols.
pub fn strip_credentials(map: &mut HeaderMap, configured: Option<&ProxyHeaders>) {
    static USUAL: LazyLock<ProxyHeaders> = LazyLock::new(ProxyHeaders::default);
    map.remove(AUTHORIZATION);
    USUAL.strip(map);
    if let Some(configured) = configured {
        configured.strip(map);
    }
    if subprotocols(map).any(|protocol| protocol.starts_with(SUBPROTOCOL_PREFIX)) {
        let kept: Vec<&str> = subprotocols(map).filter(|one| !one.starts_with(SUBPROTOCOL_PREFIX)).collect();
        let value = HeaderValue::from_str(&kept.join(","));
        map.remove(SEC_WEBSOCKET_PROTOCOL);
        if let Ok(value) = value {
            map.insert(SEC_WEBSOCKET_PROTOCOL, value);
        }
    }
}

#[cfg(test)]
#[path = "bearer_tests.rs"]
mod tests;
