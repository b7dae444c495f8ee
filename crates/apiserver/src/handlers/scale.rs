//! The `scale` subresource: the replicas of a kind, whatever kind it is.

use std::sync::Arc;

use api_machinery::meta::{ManagedFieldsEntry, ObjectMeta};
use api_machinery::object::{self, Object};
use api_machinery::reflect::Reflect as _;
use api_machinery::status::ApiError;
use api_machinery::value::{self, Value};
use api_types::autoscaling_v1::Scale;
use component_base::serving::Response;
use http::StatusCode;
use kinds::scale::SCALE;
use registry::{Change, CreateWhenAbsent, Hooks, Track};
use schema::TypeNode;
use schema::apply::ReplicasPath;
use serde_json::json;

use super::Target;
use super::admitting::Admitting;
use super::bounded_write::bounded;
use super::incoming;
use super::ownership::Ownership;
use super::patch_body::{Form, PatchBody, as_scale};
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::negotiate::{Offer, PatchType, patch_type};
use crate::request::{PatchKind, WriteOptions};
use crate::respond::{self, Shown};
use crate::table::IncludeObject;

pub(super) async fn get(cx: &Arc<ApiCx>, request: &Request<Authorized>, target: &Target) -> Result<Response, ApiError> {
    let shown = shown(cx, request)?;
    let scale = target.resource.scale(&target.request_cx(cx, request, false), target.name()?).await?;
    respond::view(&shown, StatusCode::OK, &scale)
}

pub(super) async fn update(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let options = WriteOptions::of_write("UpdateOptions", request.query(), request.user_agent())?;
    let mut wanted: Scale = request.decode().await?;
    incoming::settle_namespace(target, &mut wanted.metadata)?;
    incoming::check_name(target, &wanted.metadata)?;
    write(cx, &request, target, &options, Record::Tracked, |_| Ok(wanted.clone())).await
}

pub(super) async fn patch(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let kind = patch_type(request.headers(), target.is_custom())?;
    let body = request.read_body().await?;
    let class = if kind == PatchType::Apply { PatchKind::Apply } else { PatchKind::Other };
    let options = WriteOptions::of_patch(class, request.query(), request.user_agent())?;
    let patch = PatchBody::read(kind, &body, options.strictness, request.warnings())?;
    if let Form::Apply(applied) = &patch.form {
        return apply(cx, &request, target, &options, applied).await;
    }
    write(cx, &request, target, &options, Record::Tracked, |live| {
        let node = TypeNode::of_struct(live.struct_type());
        let patched = patch.apply((live as &dyn Object).to_value(), node)?;
        let mut wanted = as_scale(&patched, &patch, options.strictness, request.warnings())?;
        incoming::settle_namespace(target, &mut wanted.metadata)?;
        incoming::check_name(target, &wanted.metadata)?;
        Ok(wanted)
    })
    .await
}

/// Applies a scale: who owns the replicas of the object owns those of its scale, and back.
async fn apply(
    cx: &Arc<ApiCx>,
    request: &Request<Authorized>,
    target: &Target,
    options: &WriteOptions,
    applied: &Value,
) -> Result<Response, ApiError> {
    let replicas = ReplicasPath::new(target.replicas_path(), &target.api_version());
    let ownership = Ownership::of_scale(TypeNode::of_struct(Scale::default().struct_type()), cx.clock().wall().into());
    write(cx, request, target, options, Record::ByChange, |live| {
        // The record is that of the object; the scale's follows from it.
        let object = (live as &dyn Object).to_value();
        let mut shown = live.clone();
        let record = replicas.to_scale(&object).map_err(ApiError::internal)?;
        shown.metadata.managed_fields = record_of(record)?;
        let merged = ownership.apply(Some(&shown), applied, &options.manager, options.force)?;
        let mut wanted: Scale =
            object::from_value(&merged).map_err(|error| ApiError::bad_request(error.to_string()))?;
        incoming::settle_namespace(target, &mut wanted.metadata)?;
        incoming::check_name(target, &wanted.metadata)?;
        let record = replicas.to_parent(&object, &merged).map_err(ApiError::internal)?;
        wanted.metadata.managed_fields = record_of(record)?;
        Ok(wanted)
    })
    .await
}

/// A record of managers, read.
fn record_of(record: Option<Value>) -> Result<Vec<ManagedFieldsEntry>, ApiError> {
    let mut read = ObjectMeta::default();
    if let Some(record) = record {
        value::from_value(&json!({ "managedFields": record }), &mut read).map_err(ApiError::internal)?;
    }
    Ok(read.managed_fields)
}

/// Who keeps the record of managers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Record {
    Tracked,
    ByChange,
}

async fn write<F>(
    cx: &Arc<ApiCx>,
    request: &Request<Authorized>,
    target: &Target,
    options: &WriteOptions,
    record: Record,
    make: F,
) -> Result<Response, ApiError>
where
    F: Fn(&Scale) -> Result<Scale, ApiError> + Send + Sync,
{
    let shown = shown(cx, request)?;
    let admission = Admitting::new(cx, request, target, options.dry_run);
    let ownership = Ownership::new(target, target.type_node(), cx.clock().wall().into());
    let track = |live: Option<&dyn Object>, new: &mut dyn Object| {
        ownership.track(live, new, &options.manager);
        Ok(())
    };
    let track: Option<&Track<'_>> = if record == Record::Tracked { Some(&track) } else { None };
    let hooks = Hooks { admission: &admission, track };
    let in_registry = target.request_cx(cx, request, options.dry_run);
    let scaling = Scaling(make);
    let scale = bounded(target.resource.update_scale(&in_registry, target.name()?, &scaling, &hooks)).await?;
    respond::view(&shown, StatusCode::OK, &scale)
}

/// How the request wants its scale. A write asks before it writes: one that could not be answered must change nothing.
fn shown<'r>(cx: &ApiCx, request: &'r Request<Authorized>) -> Result<Shown<'r>, ApiError> {
    Ok(Shown {
        wish: request.wish(),
        choice: request.wish().choose(Offer::resource(false))?,
        rules: SCALE,
        include: IncludeObject::read(request.query())?,
        now: cx.clock().wall().into(),
        list_kind: "ScaleList".to_owned(),
    })
}

/// A change of the scale that an object shows.
struct Scaling<F>(F);

impl<F> Change for Scaling<F>
where
    F: Fn(&Scale) -> Result<Scale, ApiError> + Send + Sync,
{
    fn apply(&self, live: Option<&dyn Object>) -> Result<Box<dyn Object>, ApiError> {
        let live = live.and_then(|live| live.downcast_ref::<Scale>());
        let live = live.ok_or_else(|| ApiError::internal("a scale is changed by way of its object"))?;
        Ok(Box::new((self.0)(live)?))
    }

    fn creates(&self) -> CreateWhenAbsent {
        CreateWhenAbsent::Never
    }
}
