//! Acting as somebody else, where the sender may.

use api_machinery::gvk::GroupResource;
use api_machinery::status::ApiError;
use authn::{Impersonation, ImpersonationCheck};
use authz::{Attributes, Decision};

use super::audit_identity;
use super::refusal::Refusal;
use super::stages::{Authenticated, Request};
use crate::authorization::forbidden::{describe_refusal, forbidden_text};
use crate::cx::ApiCx;

/// Continues as the user that the headers name, once each part of it is allowed.
pub(super) async fn impersonate(
    cx: &ApiCx,
    mut request: Request<Authenticated>,
) -> Result<Request<Authenticated>, Refusal> {
    let begun = cx.clock().monotonic();
    let wish =
        Impersonation::from_headers(request.headers()).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let Some(wish) = wish else { return Ok(request) };
    for check in wish.legacy_checks() {
        let attributes = attributes(&request, &check);
        let outcome = cx.authorizer.authorize(&attributes).await;
        if outcome.decision != Decision::Allow {
            let resource = GroupResource { group: check.group.into(), resource: check.resource.into() };
            let why = describe_refusal(&forbidden_text(&attributes), &outcome);
            return Err(ApiError::forbidden(&resource, &check.name, why).into());
        }
    }
    Impersonation::strip(request.headers_mut());
    cx.metrics.identity.impersonation_filter.observe((cx.clock().monotonic() - begun).as_secs_f64());
    let user = wish.target();
    audit_identity::impersonated(&request, &user);
    Ok(request.impersonating(user))
}

fn attributes(request: &Request<Authenticated>, check: &ImpersonationCheck) -> Attributes {
    Attributes {
        user: request.sender().clone(),
        verb: "impersonate".to_owned(),
        resource_request: true,
        group: check.group.to_owned(),
        version: if check.group.is_empty() { "v1" } else { "" }.to_owned(),
        resource: check.resource.to_owned(),
        subresource: check.subresource.clone(),
        namespace: check.namespace.clone(),
        name: check.name.clone(),
        ..Attributes::default()
    }
}
