//! What creating an object that is never stored has in common: the method, and admission.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use http::Method;

use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;

/// Refuses everything but creation in the collection.
///
/// # Errors
/// 405, and 404 for paths that name an object.
pub(crate) fn expect_post(request: &Request<Authorized>) -> Result<(), ApiError> {
    if request.info().subresource.is_empty() && request.info().path_name().is_some() {
        return Err(ApiError::unknown_resource());
    }
    if request.method() == Method::POST { Ok(()) } else { Err(ApiError::method_not_allowed()) }
}

/// Passes an object through admission.
///
/// # Errors
/// What a plugin refused with.
pub(crate) async fn admit(cx: &ApiCx, request: &Request<Authorized>, object: &mut dyn Object) -> Result<(), ApiError> {
    let info = request.info();
    let name = if info.name.is_empty() { object.meta().name.clone() } else { info.name.clone() };
    let attributes = admission::Attributes {
        operation: admission::Operation::Create,
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        name,
        user: request.user().clone(),
        dry_run: request.query().first("dryRun").is_some_and(|value| value == "All"),
        warnings: admission::Warnings::default(),
        findings: admission::Findings::default(),
    };
    cx.admission().mutate(&attributes, Some(object), None).await?;
    cx.admission().validate(&attributes, Some(object), None).await
}
