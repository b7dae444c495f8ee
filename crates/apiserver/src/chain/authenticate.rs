//! Who sent a request. Credentials do not travel any further than this.

use api_machinery::status::ApiError;
use authn::{Authenticator as _, ignored_header_warning, strip_credentials};
use component_base::serving::Newcomer;

use super::refusal::Refusal;
use super::stages::{Authenticated, Received, Request};
use super::{audit_identity, go_away};
use crate::cx::ApiCx;
use crate::gates::UNKNOWN_GO_AWAY;

/// The text of every 401: why a credential was refused is told to the log only.
const UNAUTHORIZED: &str = "Unauthorized";

/// Finds out who sent the request.
pub(super) async fn authenticate(
    cx: &ApiCx,
    mut request: Request<Received>,
) -> Result<Request<Authenticated>, Refusal> {
    if let Some(warning) = ignored_header_warning(request.headers()) {
        request.warnings().add(warning);
    }
    let begun = cx.clock().monotonic();
    let outcome = cx.authentication.chain.authenticate(request.parts(), request.peer_certificates()).await;
    if outcome.as_ref().map_or(true, |identity| identity.as_ref().is_none_or(is_anonymous)) {
        if cx.lifecycle.gates().enabled(UNKNOWN_GO_AWAY) {
            go_away::after(request.parts());
        }
    } else if let Some(newcomer) = request.parts().extensions.get::<Newcomer>() {
        newcomer.is_known();
    }
    let result = match &outcome {
        Ok(Some(_)) => "success",
        Ok(None) => "failure",
        Err(_) => "error",
    };
    let (metrics, took) = (&cx.metrics.identity, cx.clock().monotonic() - begun);
    metrics.authentications.record(result, took);
    let identity = match outcome {
        Ok(Some(identity)) => identity,
        Ok(None) => {
            audit_identity::unidentified(&request).await;
            return Err(ApiError::unauthorized(UNAUTHORIZED).into());
        }
        Err(error) => {
            tracing::warn!(%error, path = request.info().path, "Unable to authenticate the request");
            audit_identity::unidentified(&request).await;
            return Err(ApiError::unauthorized(UNAUTHORIZED).into());
        }
    };
    if let Some(left) = identity.certificate_ends.and_then(|end| end.duration_since(cx.clock().wall()).ok()) {
        metrics.certificate_life.observe(left.as_secs_f64());
    }
    metrics.authentication_filter.observe(took.as_secs_f64());
    metrics.users.with(&[counted_as(&identity.user.username)]).inc();
    request.warnings().extend(identity.warnings);
    strip_credentials(request.headers_mut(), cx.authentication.proxy_headers.as_ref());
    let request = request.authenticated(identity.user);
    audit_identity::identified(&request, identity.audit_annotations).await?;
    Ok(request)
}

fn is_anonymous(identity: &authn::Identity) -> bool {
    identity.user.username == authn::ANONYMOUS
}

/// The label of a user: a few are told apart, so that there is no label per user.
fn counted_as(user: &str) -> &'static str {
    match user {
        "admin" => "admin",
        "client" => "client",
        "kube_proxy" => "kube_proxy",
        "kubelet" => "kubelet",
        "system:serviceaccount:kube-system:default" => "system:serviceaccount:kube-system:default",
        email if email.contains('@') => "email_id",
        _ => "other",
    }
}
