//! `PATCH` of an object or a subresource of it.

use std::sync::Arc;

use api_machinery::meta::ManagedFieldsEntry;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_machinery::value::{self, Value, ValueMap};
use component_base::serving::Response;
use http::StatusCode;
use kinds::rules::Endpoint;
use registry::{Change, CreateWhenAbsent, Hooks, Track};

use super::admitting::Admitting;
use super::bounded_write::bounded;
use super::incoming::{self, When};
use super::ownership::Ownership;
use super::patch_body::{self, Form, PatchBody, as_object};
use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::custom_kinds;
use crate::cx::ApiCx;
use crate::negotiate::patch_type;
use crate::request::{PatchKind, WriteOptions};
use crate::respond;
use crate::warnings::Warnings;

pub(super) async fn patch(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
    endpoint: Endpoint,
) -> Result<Response, ApiError> {
    let kind = patch_type(request.headers(), request.preferences().forms(), target.is_custom())?;
    target.rendering(cx, &request)?;
    let body = patch_body::receive(&mut request, kind).await?;
    let class = if kind.is_apply() { PatchKind::Apply } else { PatchKind::Other };
    let options = WriteOptions::of_patch(class, request.query(), request.user_agent())?;
    let patch = PatchBody::read(kind, &body, options.strictness, request.warnings())?;

    let admission = Admitting::new(cx, &request, target, options.dry_run);
    let ownership = Ownership::new(target, target.type_node(), cx.lifecycle.gates(), cx.clock().wall().into());
    let track = |live: Option<&dyn Object>, new: &mut dyn Object| {
        ownership.track(live, new, &options.manager);
        Ok(())
    };
    let warnings = request.warnings();
    let patching = Patching { target, patch: &patch, ownership: &ownership, options: &options, endpoint, warnings };
    // An apply keeps the record itself.
    let track: Option<&Track<'_>> = if kind.is_apply() { None } else { Some(&track) };
    let hooks = Hooks { admission: &admission, track };
    let in_registry = target.request_cx(cx, &request, options.dry_run);
    let update = target.resource.update(&in_registry, target.name()?, endpoint, &patching, &hooks);
    let written = bounded(update).await?;
    let status = if written.created { StatusCode::CREATED } else { StatusCode::OK };
    respond::stored(&target.rendering(cx, &request)?, status, &written.item)
}

/// A patch of one object; runs again on what is there after a lost race.
struct Patching<'a> {
    target: &'a Target,
    patch: &'a PatchBody,
    ownership: &'a Ownership<'a>,
    options: &'a WriteOptions,
    endpoint: Endpoint,
    warnings: &'a Warnings,
}

impl Change for Patching<'_> {
    fn apply(&self, live: Option<&dyn Object>) -> Result<Box<dyn Object>, ApiError> {
        let target = self.target;
        let mut object = match (&self.patch.form, live) {
            (Form::Apply(applied), live) => self.applied(live, applied)?,
            (_, Some(live)) => match patch_body::focused(target, live, self.patch) {
                Some(object) => object,
                None => self.typed(&self.patch.apply(live.to_value(), target.type_node())?)?,
            },
            (_, None) => return Err(ApiError::not_found(target.resource.group_resource(), target.name()?)),
        };
        incoming::ensure_namespace(target, object.meta_mut())?;
        incoming::check_name(target, object.meta())?;
        incoming::drop_duplicate_owners(object.meta_mut(), When::Received, self.warnings);
        Ok(object)
    }

    fn names_uid(&self) -> bool {
        false
    }

    fn creates(&self) -> CreateWhenAbsent {
        match (&self.patch.form, self.endpoint) {
            (Form::Apply(_), Endpoint::Main) => CreateWhenAbsent::Always,
            _ => CreateWhenAbsent::Never,
        }
    }
}

impl Patching<'_> {
    fn applied(&self, live: Option<&dyn Object>, applied: &Value) -> Result<Box<dyn Object>, ApiError> {
        refuse_uid_of_absent(self.target, live, applied)?;
        let (manager, force) = (&self.options.manager, self.options.force);
        let (merged, record) = self.ownership.apply(live, applied, manager, force)?;
        if let Ok(mut object) = self.typed(&merged) {
            object.meta_mut().managed_fields = record;
            return Ok(object);
        }
        // Who is told that it does not fit is shown all of it.
        self.typed(&with_record(merged, &record))
    }

    fn typed(&self, patched: &Value) -> Result<Box<dyn Object>, ApiError> {
        let object = as_object(self.target, patched, self.patch, self.options.strictness, self.warnings)?;
        // A write of a part leaves the kind as it is, whatever the body says.
        let kind = patched.get("kind").and_then(Value::as_str).filter(|_| self.endpoint == Endpoint::Main);
        let info = self.target.info();
        match kind.filter(|kind| *kind != info.kind && self.target.is_custom()) {
            Some(kind) => Err(custom_kinds::of_other_kind(info.group, kind, info.kind, &object.meta().name)),
            None => Ok(object),
        }
    }
}

fn with_record(mut object: Value, record: &Vec<ManagedFieldsEntry>) -> Value {
    if let Some(members) = object.as_object_mut().filter(|_| !record.is_empty()) {
        let metadata = members.entry("metadata").or_insert_with(|| Value::Object(ValueMap::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".into(), value::to_value(record));
        }
    }
    object
}

/// Who names a uid means an object that exists.
fn refuse_uid_of_absent(target: &Target, live: Option<&dyn Object>, applied: &Value) -> Result<(), ApiError> {
    let uid = applied.get("metadata").and_then(|meta| meta.get("uid")).and_then(|uid| uid.as_str()).unwrap_or_default();
    if live.is_some() || uid.is_empty() {
        return Ok(());
    }
    let cause = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
    Err(ApiError::conflict(target.resource.group_resource(), target.name()?, cause))
}
