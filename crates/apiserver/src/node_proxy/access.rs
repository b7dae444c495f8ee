//! What the subresources have in common: reading objects, admission of connections, and the second authorization that
//! sessions opened by GET need.

use api_machinery::gvk::GroupResource;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use authz::{Attributes, Decision};

use crate::authorization::attributes::attributes;
use crate::authorization::forbidden::forbidden;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::own_request::server_request;

/// Reads an object of the core group, from the cache where it may.
pub(super) async fn read<T: Object + Clone>(
    cx: &ApiCx,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<T, ApiError> {
    let missing =
        || ApiError::not_found(&GroupResource { group: "".into(), resource: resource.to_owned().into() }, name);
    let found = cx.registry().resource("", "v1", resource).ok_or_else(missing)?;
    let stored = found.get(&server_request(found.rule_context(), namespace), name, "").await?;
    stored.object().downcast_ref::<T>().cloned().ok_or_else(missing)
}

/// Passes a connection through admission, with the options as the object.
pub(super) async fn admit_connect(cx: &ApiCx, request: &Request<Authorized>) -> Result<(), ApiError> {
    let info = request.info();
    if request.query().first("dryRun").is_some() {
        return Err(ApiError::bad_request("dryRun is not supported"));
    }
    let attributes = admission::Attributes {
        operation: admission::Operation::Connect,
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
        user: request.user().clone(),
        dry_run: false,
        warnings: admission::Warnings::default(),
        annotations: admission::Annotations::default(),
        findings: admission::Findings::default(),
    };
    cx.admission().mutate(&attributes, None, None).await?;
    cx.admission().validate(&attributes, None, None).await
}

/// Sessions change things, so whoever opens one must be allowed to create it, whatever the method was.
pub(super) async fn require_create(cx: &ApiCx, request: &Request<Authorized>) -> Result<(), ApiError> {
    if request.info().verb == "create" {
        return Ok(());
    }
    let attributes = Attributes { verb: "create".to_owned(), ..attributes(request.user(), request.info()) };
    let outcome = cx.authorizer().authorize(&attributes).await;
    if outcome.decision == Decision::Allow { Ok(()) } else { Err(forbidden(&attributes, &outcome)) }
}
