//! Acting as somebody else, where the sender may.

use api_machinery::status::ApiError;
use authn::Impersonation;

use super::audit_identity;
use super::refusal::Refusal;
use super::stages::{Authenticated, Request};
use crate::authorization::attributes::attributes;
use crate::cx::ApiCx;

/// Continues as the user that the headers name, once each part of it is allowed.
pub(super) async fn impersonate(
    cx: &ApiCx,
    mut request: Request<Authenticated>,
) -> Result<Request<Authenticated>, Refusal> {
    let begun = cx.clock().monotonic();
    let preferences =
        Impersonation::from_headers(request.headers()).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let Some(preferences) = preferences else { return Ok(request) };
    let own = attributes(request.sender(), request.info());
    let granted = cx.impersonations.grant(&*cx.authorizer, &own, &preferences).await?;
    Impersonation::strip(request.headers_mut());
    cx.metrics.identity.impersonation_filter.observe((cx.clock().monotonic() - begun).as_secs_f64());
    audit_identity::impersonated(&request, &granted.user, &granted.constraint);
    Ok(request.impersonating(granted.user.into()))
}
