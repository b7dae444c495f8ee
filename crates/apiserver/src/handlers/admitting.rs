//! Admission of one request: the plugins, and what else must hold inside the transaction.

use std::sync::Arc;

use api_machinery::field_path::ErrorList;
use api_machinery::gvk::{GroupKind, GroupVersionKind};
use api_machinery::meta::{CreateOptions, DeleteOptions, ObjectMeta, UpdateOptions};
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use async_trait::async_trait;
use authz::{Attributes, Decision};
use kinds::info::SubresourceInfo;
use registry::{Admission, Operation};
use tokio::time::Instant;

use super::incoming::{When, drop_duplicate_owners};
use super::param_permissions::Written;
use super::target::Target;
use super::{claim_permissions, escalation, signing_permission};
use crate::authorization::attributes::attributes;
use crate::authorization::forbidden::forbidden;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::gates;
use crate::plugin_notes;
use crate::request::Query;
use crate::warnings::Warnings;

/// The admission of one request.
pub(super) struct Admitting<'a> {
    cx: &'a ApiCx,
    target: &'a Target,
    user: &'a Arc<UserInfo>,
    warnings: &'a Warnings,
    audit: &'a audit::Context,
    /// What plugins look up is looked up once.
    findings: admission::Findings,
    /// The request as authorizers see it.
    attributes: Attributes,
    dry_run: bool,
    subresource: &'a str,
    /// What the request asks for beside its object.
    query: &'a Query,
    delete_options: Option<&'a DeleteOptions>,
    deadline: Option<Instant>,
}

impl<'a> Admitting<'a> {
    pub(super) fn new(cx: &'a ApiCx, request: &'a Request<Authorized>, target: &'a Target, dry_run: bool) -> Self {
        Self {
            cx,
            target,
            user: request.user(),
            warnings: request.warnings(),
            audit: request.audited().context(),
            findings: admission::Findings::default(),
            attributes: attributes(request.user(), request.info()),
            dry_run,
            subresource: target.subresource().map(|subresource| subresource.name).unwrap_or_default(),
            query: request.query(),
            delete_options: None,
            deadline: request.deadline(),
        }
    }

    /// The same for a deletion with these options.
    pub(super) fn of_deletion(self, options: &'a DeleteOptions) -> Self {
        Self { delete_options: Some(options), ..self }
    }

    /// The admission of what an action on an object does to the object itself.
    pub(super) fn of_object_itself(self) -> Self {
        Self { subresource: "", ..self }
    }

    /// Passes the body of an action, such as a binding, which is created but never stored.
    ///
    /// # Errors
    /// What a plugin refused with.
    pub(super) async fn pass(&self, body: &mut dyn Object) -> Result<(), ApiError> {
        let attributes = self.attributes(Operation::Create, Some(body));
        let mut outcome = self.cx.admission.mutate(&attributes, Some(body), None).await;
        if outcome.is_ok() {
            outcome = self.cx.admission.validate(&attributes, Some(body), None).await;
        }
        self.hand_on(&attributes);
        outcome
    }

    fn hand_on(&self, attributes: &admission::Attributes) {
        plugin_notes::hand_on(attributes, self.warnings, self.audit);
    }

    fn attributes(&self, operation: Operation, object: Option<&dyn Object>) -> admission::Attributes {
        let own_name = || object.map(|object| object.meta().name.clone()).unwrap_or_default();
        let name = self.target.name.clone().unwrap_or_else(own_name);
        let info = self.target.info();
        let is_namespace = info.group.is_empty() && info.resource == "namespaces";
        admission::Attributes {
            operation: match operation {
                Operation::Create => admission::Operation::Create,
                Operation::Update => admission::Operation::Update,
                Operation::Delete => admission::Operation::Delete,
            },
            group: info.group.to_owned(),
            version: info.version.to_owned(),
            resource: info.resource.to_owned(),
            subresource: self.subresource.to_owned(),
            kind: self.kind(),
            namespace: if is_namespace { name.clone() } else { self.target.namespace.clone() },
            name,
            user: Arc::clone(self.user),
            dry_run: self.dry_run,
            options: self.options(operation),
            deadline: self.deadline,
            warnings: admission::Warnings::default(),
            annotations: admission::Annotations::default(),
            findings: self.findings.clone(),
            rounds: admission::Rounds::default(),
        }
    }

    /// The kind of what is sent: some subresources have one of another group.
    fn kind(&self) -> GroupVersionKind {
        let info = self.target.info();
        let part = info.subresources.iter().find(|part| part.name == self.subresource);
        let of_part = |own: &SubresourceInfo<'_>| {
            let (group, version) =
                if own.version.is_empty() { (info.group, info.version) } else { (own.group, own.version) };
            (group.to_owned(), version.to_owned(), own.kind.to_owned())
        };
        let own = || (info.group.to_owned(), info.version.to_owned(), info.kind.to_owned());
        let (group, version, kind) = part.map_or_else(own, of_part);
        GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() }
    }

    fn options(&self, operation: Operation) -> admission::OperationOptions {
        let dry_run = self.query.all("dryRun").map(str::to_owned).collect();
        let (field_manager, field_validation) = (self.query.text("fieldManager"), self.query.text("fieldValidation"));
        match operation {
            Operation::Create => {
                admission::OperationOptions::Create(CreateOptions { dry_run, field_manager, field_validation })
            }
            Operation::Update => {
                admission::OperationOptions::Update(UpdateOptions { dry_run, field_manager, field_validation })
            }
            Operation::Delete => admission::OperationOptions::Delete(self.delete_options.cloned().unwrap_or_default()),
        }
    }

    /// Nothing is created of a kind that is on its way out.
    fn check_alive(&self, operation: Operation, meta: &ObjectMeta) -> Result<(), ApiError> {
        let info = self.target.info();
        if operation != Operation::Create || !self.cx.custom_kinds.is_terminating(info.group, info.resource) {
            return Ok(());
        }
        let text = "create not allowed while custom resource definition is terminating";
        Err(ApiError::forbidden(self.target.resource.group_resource(), &meta.name, text))
    }

    /// Not everybody who may write a status may say everything in it.
    async fn check_status(&self, object: &dyn Object, old: &dyn Object) -> Result<(), ApiError> {
        let authorizer = &*self.cx.authorizer;
        let mut errors = ErrorList::new();
        if self.cx.lifecycle.gates().enabled(gates::CLAIM_RIGHTS) {
            errors.extend(claim_permissions::check(authorizer, &self.attributes, object, old).await);
        }
        errors.extend(signing_permission::check(authorizer, &self.attributes, object, old).await);
        if errors.is_empty() {
            return Ok(());
        }
        let kind = GroupKind::named(self.target.info().group, self.target.info().kind);
        Err(ApiError::invalid(&kind, &object.meta().name, &errors))
    }

    /// Nobody makes a policy tell what they may not read.
    async fn check_params(&self, object: &dyn Object, old: Option<&dyn Object>) -> Result<(), ApiError> {
        let errors = Written { cx: self.cx, user: self.user, object, old }.check().await;
        if errors.is_empty() {
            return Ok(());
        }
        let info = self.target.info();
        let kind = GroupKind { group: info.group.to_owned().into(), kind: info.kind.to_owned().into() };
        Err(ApiError::invalid(&kind, &object.meta().name, &errors))
    }
}

#[async_trait]
impl Admission for Admitting<'_> {
    fn warn(&self, texts: &[String]) {
        self.warnings.extend(texts.iter().cloned());
    }

    async fn mutate(
        &self,
        operation: Operation,
        object: &mut Box<dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        self.check_alive(operation, object.meta())?;
        let attributes = self.attributes(operation, Some(&**object));
        let outcome = self.cx.admission.mutate(&attributes, Some(&mut **object), old).await;
        self.hand_on(&attributes);
        outcome?;
        drop_duplicate_owners(object.meta_mut(), When::AfterAdmission, self.warnings);
        // As upstream: once nothing changes any more of what is handed out, and before it is held against the rules.
        if self.target.info().group == api_types::rbac_v1::GROUP {
            escalation::check(self.cx, self.target, &self.attributes, &**object, old).await?;
        }
        Ok(())
    }

    async fn validate(
        &self,
        operation: Operation,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        if let (Some(object), api_types::admissionregistration_v1::GROUP) = (object, self.target.info().group) {
            self.check_params(object, old).await?;
        }
        if let (Some(object), Some(old), "status") = (object, old, self.subresource) {
            self.check_status(object, old).await?;
        }
        let attributes = self.attributes(operation, object.or(old));
        if operation == Operation::Delete {
            // There is no object to change, but some who may change objects refuse deletions.
            let outcome = self.cx.admission.mutate(&attributes, None, old).await;
            if outcome.is_err() {
                self.hand_on(&attributes);
                return outcome;
            }
        }
        let outcome = self.cx.admission.validate(&attributes, object, old).await;
        self.hand_on(&attributes);
        outcome
    }

    async fn authorize_create(&self) -> Result<(), ApiError> {
        let attributes = Attributes { verb: "create".to_owned(), ..self.attributes.clone() };
        let outcome = self.cx.authorizer.authorize(&attributes).await;
        if outcome.decision == Decision::Allow { Ok(()) } else { Err(forbidden(&attributes, &outcome)) }
    }
}
