//! What the audit log is told of who sent a request.

use api_types::authentication_v1::UserInfo;
use http::header::AUTHORIZATION;

use super::refusal::Refusal;
use super::stages::{Authenticated, Received, Request};
use crate::respond;

/// It is known who sent the request; refuses it where that must be told, and cannot be.
pub(super) async fn identified(
    request: &Request<Authenticated>,
    annotations: Vec<(String, String)>,
) -> Result<(), Refusal> {
    let told = request.audited().context().identified(request.sender(), annotations).await;
    told.map_err(|error| respond::plain_error(request.uri(), &error.to_string()).into())
}

/// Nobody knows who sent the request.
pub(super) async fn unidentified(request: &Request<Received>) {
    let credentials = credentials(request);
    let message = if credentials.is_empty() {
        "Authentication failed, no credentials provided".to_owned()
    } else {
        format!("Authentication failed, attempted: {}", credentials.join(", "))
    };
    request.audited().context().refused(401, message).await;
}

/// The kinds of credentials that a request has.
fn credentials(request: &Request<Received>) -> Vec<&'static str> {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let scheme = |scheme: &str| header.split(' ').next().is_some_and(|own| own.eq_ignore_ascii_case(scheme));
    [
        ("basic", scheme("basic")),
        ("bearer", scheme("bearer")),
        ("access_token", request.query().first("access_token").is_some()),
        ("x509", !request.peer_certificates().is_empty()),
    ]
    .into_iter()
    .filter_map(|(name, is_there)| is_there.then_some(name))
    .collect()
}

/// On whose behalf the request runs, and which permission allowed it.
pub(super) fn impersonated(request: &Request<Authenticated>, user: &UserInfo, constraint: &str) {
    request.audited().context().impersonated(user, constraint);
}
