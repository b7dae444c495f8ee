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
use registry::{Change, CreateWhenAbsent, Hooks};
use schema::TypeNode;
use schema::apply::ReplicasPath;
use serde_json::json;

use super::admitting::Admitting;
use super::bounded_write::bounded;
use super::incoming;
use super::ownership::Ownership;
use super::patch_body::{self, Form, PatchBody, as_scale};
use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::negotiate::{Offer, patch_type};
use crate::request::IncludeObject;
use crate::request::{PatchKind, WriteOptions};
use crate::respond::{self, Rendering};

pub(super) async fn get(cx: &Arc<ApiCx>, request: &Request<Authorized>, target: &Target) -> Result<Response, ApiError> {
    let rendering = rendering(cx, request)?;
    let scale = target.resource.scale(&target.request_cx(cx, request, false), target.name()?).await?;
    respond::view(&rendering, StatusCode::OK, &scale)
}

pub(super) async fn update(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let options = WriteOptions::of_write("UpdateOptions", request.query(), request.user_agent())?;
    let mut wanted: Scale = request.decode().await?;
    incoming::ensure_namespace(target, &mut wanted.metadata)?;
    incoming::check_name(target, &wanted.metadata)?;
    let ownership = ScaleOwnership::new(cx, target);
    let make = |live: &Scale| ownership.track(live, wanted.clone(), &options.manager);
    write(cx, &request, target, &options, make).await
}

pub(super) async fn patch(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let kind = patch_type(request.headers(), request.preferences().forms(), target.is_custom())?;
    let body = patch_body::receive(&mut request, kind).await?;
    let class = if kind.is_apply() { PatchKind::Apply } else { PatchKind::Other };
    let options = WriteOptions::of_patch(class, request.query(), request.user_agent())?;
    let patch = PatchBody::read(kind, &body, options.strictness, request.warnings())?;
    if let Form::Apply(applied) = &patch.form {
        return apply(cx, &request, target, &options, applied).await;
    }
    let ownership = ScaleOwnership::new(cx, target);
    write(cx, &request, target, &options, |live| {
        let (bare, node) = (bare(live), TypeNode::of_struct(live.struct_type()));
        let patched = patch.apply((&bare as &dyn Object).to_value(), node)?;
        let mut wanted = as_scale(&patched, &patch, options.strictness, request.warnings())?;
        incoming::ensure_namespace(target, &mut wanted.metadata)?;
        incoming::check_name(target, &wanted.metadata)?;
        ownership.track(live, wanted, &options.manager)
    })
    .await
}

/// Applies a scale.
async fn apply(
    cx: &Arc<ApiCx>,
    request: &Request<Authorized>,
    target: &Target,
    options: &WriteOptions,
    applied: &Value,
) -> Result<Response, ApiError> {
    let ownership = ScaleOwnership::new(cx, target);
    write(cx, request, target, options, |live| {
        let (merged, record) =
            ownership.of_scale.apply(Some(&ownership.shown(live)?), applied, &options.manager, options.force)?;
        let mut wanted: Scale =
            object::from_value(&merged).map_err(|error| ApiError::bad_request(error.to_string()))?;
        wanted.metadata.managed_fields = record;
        incoming::ensure_namespace(target, &mut wanted.metadata)?;
        incoming::check_name(target, &wanted.metadata)?;
        ownership.handed_back(live, wanted)
    })
    .await
}

/// Who owns the replicas of an object owns those of its scale, and back: writes are tracked on the scale.
struct ScaleOwnership {
    of_scale: Ownership<'static>,
    replicas: ReplicasPath,
}

impl ScaleOwnership {
    fn new(cx: &ApiCx, target: &Target) -> Self {
        let of_scale = Ownership::of_virtual(&Scale::default(), "scale", cx.clock().wall().into());
        Self { of_scale, replicas: ReplicasPath::new(target.replicas_path(), &target.api_version()) }
    }

    /// The live scale with its own record; as it is handed to a change, it has that of the object.
    fn shown(&self, live: &Scale) -> Result<Scale, ApiError> {
        let record = self.replicas.to_scale(&(live as &dyn Object).to_value()).map_err(ApiError::internal)?;
        let mut shown = bare(live);
        shown.metadata.managed_fields = record_of(record)?;
        Ok(shown)
    }

    /// The wanted scale with the record of the object after an ordinary write.
    fn track(&self, live: &Scale, mut wanted: Scale, manager: &str) -> Result<Scale, ApiError> {
        self.of_scale.track(Some(&self.shown(live)?), &mut wanted, manager);
        self.handed_back(live, wanted)
    }

    /// The wanted scale with the record of the object instead of its own.
    fn handed_back(&self, live: &Scale, mut wanted: Scale) -> Result<Scale, ApiError> {
        let values = [live, &wanted].map(|scale| (scale as &dyn Object).to_value());
        let record = self.replicas.to_parent(&values[0], &values[1]).map_err(ApiError::internal)?;
        wanted.metadata.managed_fields = record_of(record)?;
        Ok(wanted)
    }
}

/// The scale without a record of managers.
fn bare(scale: &Scale) -> Scale {
    let mut bare = scale.clone();
    bare.metadata.managed_fields.clear();
    bare
}

/// A record of managers, read.
fn record_of(record: Option<Value>) -> Result<Vec<ManagedFieldsEntry>, ApiError> {
    let mut read = ObjectMeta::default();
    if let Some(record) = record {
        value::from_value(&json!({ "managedFields": record }), &mut read).map_err(ApiError::internal)?;
    }
    Ok(read.managed_fields)
}

async fn write<F>(
    cx: &Arc<ApiCx>,
    request: &Request<Authorized>,
    target: &Target,
    options: &WriteOptions,
    make: F,
) -> Result<Response, ApiError>
where
    F: Fn(&Scale) -> Result<Scale, ApiError> + Send + Sync,
{
    let rendering = rendering(cx, request)?;
    let admission = Admitting::new(cx, request, target, options.dry_run);
    let hooks = Hooks { admission: &admission, track: None };
    let in_registry = target.request_cx(cx, request, options.dry_run);
    let scaling = Scaling(make);
    let scale = bounded(target.resource.update_scale(&in_registry, target.name()?, &scaling, &hooks)).await?;
    respond::view(&rendering, StatusCode::OK, &scale)
}

/// How the request wants its scale. A write asks before it writes: one that could not be answered must change nothing.
fn rendering<'r>(cx: &ApiCx, request: &'r Request<Authorized>) -> Result<Rendering<'r>, ApiError> {
    Ok(Rendering {
        preferences: request.preferences(),
        choice: request.preferences().choose(Offer::resource(false))?,
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
