//! Whether a request may be made.

use authz::{Decision, Outcome};

use super::refusal::Refusal;
use super::stages::{Authenticated, Authorized, Request};
use crate::authorization::attributes::attributes;
use crate::authorization::forbidden::forbidden;
use crate::cx::ApiCx;
use crate::respond;

/// Asks the authorizers.
pub(super) async fn authorize(cx: &ApiCx, request: Request<Authenticated>) -> Result<Request<Authorized>, Refusal> {
    let attributes = attributes(request.sender(), request.info());
    let begun = cx.clock().monotonic();
    let outcome = cx.authorizer.authorize(&attributes).await;
    let result = match (outcome.decision, &outcome.error) {
        (Decision::Allow, _) => "allowed",
        (_, Some(_)) => "error",
        (Decision::Deny, None) => "denied",
        (Decision::NoOpinion, None) => "no-opinion",
    };
    let (metrics, took) = (&cx.metrics.identity, cx.clock().monotonic() - begun);
    metrics.authorizations.record(result, took);
    note(request.audited().context(), &outcome);
    match (outcome.decision, &outcome.error) {
        (Decision::Allow, _) => {
            metrics.authorization_filter.observe(took.as_secs_f64());
            Ok(request.authorized())
        }
        (_, Some(error)) => {
            tracing::error!(error, path = request.info().path, "Authorizing a request failed");
            Err(respond::plain_error(request.uri(), error).into())
        }
        (_, None) => {
            let refusal = forbidden(&attributes, &outcome);
            let mut response = respond::error(request.preferences(), &refusal);
            let nosniff = http::HeaderValue::from_static("nosniff");
            response.headers_mut().insert(http::header::X_CONTENT_TYPE_OPTIONS, nosniff);
            Err(response.into())
        }
    }
}

/// Notes what was decided, and why.
fn note(audit: &audit::Context, outcome: &Outcome) {
    let (decision, reason) = match (outcome.decision, &outcome.error) {
        (Decision::Allow, _) => (Some("allow"), outcome.reason.as_str()),
        (_, Some(_)) => (None, "internal error"),
        (_, None) => (Some("forbid"), outcome.reason.as_str()),
    };
    decision.into_iter().for_each(|decision| audit.annotate("authorization.k8s.io/decision", decision));
    audit.annotate("authorization.k8s.io/reason", reason);
}
