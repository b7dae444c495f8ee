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

/// A creation that is on its way: who may change the object has done so.
pub(crate) struct Passing<'a> {
    cx: &'a ApiCx,
    request: &'a Request<Authorized>,
    attributes: admission::Attributes,
}

impl<'a> Passing<'a> {
    /// Records the writer's fields, which answers show although nothing is kept, and passes the object through mutating
    /// admission. What the object has to be like is looked at after that.
    ///
    /// # Errors
    /// What a plugin refused with.
    pub(crate) async fn begin(
        cx: &'a ApiCx,
        request: &'a Request<Authorized>,
        options: &WriteOptions,
        object: &mut dyn Object,
    ) -> Result<Self, ApiError> {
        let info = request.info();
        let ownership = Ownership::of_virtual(object, &info.subresource, cx.clock().wall().into());
        ownership.track(None, object, &options.manager);
        let passing = Self { cx, request, attributes: attributes(request, options, object) };
        let outcome = cx.admission().mutate(&passing.attributes, Some(object), None).await;
        passing.hand_on();
        outcome.map(|()| passing)
    }

    /// Passes the object, as it is answered, through validating admission.
    ///
    /// # Errors
    /// What a plugin refused with.
    pub(crate) async fn end(self, object: &dyn Object) -> Result<(), ApiError> {
        let outcome = self.cx.admission().validate(&self.attributes, Some(object), None).await;
        self.hand_on();
        outcome
    }

    fn hand_on(&self) {
        plugin_notes::hand_on(&self.attributes, self.request.warnings(), self.request.audited().context());
    }
}

fn attributes(request: &Request<Authorized>, options: &WriteOptions, object: &dyn Object) -> admission::Attributes {
    let info = request.info();
    let name = if info.name.is_empty() { object.meta().name.clone() } else { info.name.clone() };
    admission::Attributes {
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
    }
}
