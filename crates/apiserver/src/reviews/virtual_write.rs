//! What creating an object that is never stored has in common: the method, options, the record of fields, admission.

use api_machinery::meta::CreateOptions;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use http::Method;

use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::handlers::Ownership;
use crate::plugin_notes;
use crate::request::WriteOptions;

/// Refuses everything but creation in the collection; the options of the create.
///
/// # Errors
/// 405, 404 for paths that name an object, and 422.
pub(crate) fn expect_post(request: &Request<Authorized>) -> Result<WriteOptions, ApiError> {
    if request.info().subresource.is_empty() && request.info().path_name().is_some() {
        return Err(ApiError::unknown_resource());
    }
    if request.method() != Method::POST {
        return Err(ApiError::method_not_allowed());
    }
    WriteOptions::of_write("CreateOptions", request.query(), request.user_agent())
}

/// Records the writer's fields, which answers show although nothing is kept, and passes the object through admission.
///
/// # Errors
/// What a plugin refused with.
pub(crate) async fn admit(
    cx: &ApiCx,
    request: &Request<Authorized>,
    options: &WriteOptions,
    object: &mut dyn Object,
) -> Result<(), ApiError> {
    let info = request.info();
    let ownership = Ownership::of_virtual(object, &info.subresource, cx.clock().wall().into());
    ownership.track(None, object, &options.manager);
    let name = if info.name.is_empty() { object.meta().name.clone() } else { info.name.clone() };
    let attributes = admission::Attributes {
        operation: admission::Operation::Create,
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        kind: object.gvk(),
        namespace: info.namespace.clone(),
        name,
        user: request.user().clone(),
        dry_run: options.dry_run,
        options: admission::OperationOptions::Create(CreateOptions {
            dry_run: request.query().all("dryRun").map(str::to_owned).collect(),
            field_manager: request.query().text("fieldManager"),
            field_validation: request.query().text("fieldValidation"),
        }),
        deadline: request.deadline(),
        warnings: admission::Warnings::default(),
        annotations: admission::Annotations::default(),
        findings: admission::Findings::default(),
        rounds: admission::Rounds::default(),
    };
    let mut outcome = cx.admission().mutate(&attributes, Some(object), None).await;
    if outcome.is_ok() {
        outcome = cx.admission().validate(&attributes, Some(object), None).await;
    }
    plugin_notes::hand_on(&attributes, request.warnings(), request.audited().context());
    outcome
}
