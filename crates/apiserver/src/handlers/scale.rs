//! The `scale` subresource: the replicas of a kind, whatever kind it is.

use std::sync::Arc;

use api_machinery::object::{self, Object};
use api_machinery::reflect::Reflect as _;
use api_machinery::status::ApiError;
use api_types::autoscaling_v1::Scale;
use component_base::serving::Response;
use http::StatusCode;
use registry::{Change, CreateWhenAbsent, Hooks};
use schema::TypeNode;

use super::Target;
use super::admitting::Admitting;
use super::bounded_write::bounded;
use super::incoming;
use super::ownership::Ownership;
use super::patch_body::PatchBody;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::negotiate::{PatchType, patch_type};
use crate::request::{PatchKind, WriteOptions};
use crate::respond;

pub(super) async fn get(cx: &Arc<ApiCx>, request: &Request<Authorized>, target: &Target) -> Result<Response, ApiError> {
    let scale = target.resource.scale(&target.request_cx(cx, request, false), target.name()?).await?;
    respond::object(request.wish(), StatusCode::OK, &scale)
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
    write(cx, &request, target, &options, |_| Ok(wanted.clone())).await
}

pub(super) async fn patch(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let kind = patch_type(request.headers(), target.is_custom())?;
    if kind == PatchType::Apply {
        let text = "server-side apply of the scale subresource is not supported by this server; use a merge patch";
        return Err(ApiError::unsupported_media_type(text));
    }
    let body = request.read_body().await?;
    let options = WriteOptions::of_patch(PatchKind::Other, request.query(), request.user_agent())?;
    let patch = PatchBody::read(kind, &body, options.strictness, request.warnings())?;
    write(cx, &request, target, &options, |live| {
        let node = TypeNode::of_struct(live.struct_type());
        let patched = patch.apply((live as &dyn Object).to_value(), node)?;
        let mut wanted: Scale =
            object::from_value(&patched).map_err(|error| ApiError::bad_request(error.to_string()))?;
        incoming::settle_namespace(target, &mut wanted.metadata)?;
        incoming::check_name(target, &wanted.metadata)?;
        Ok(wanted)
    })
    .await
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
    let admission = Admitting::new(cx, request, target, options.dry_run);
    let ownership = Ownership::new(target, target.type_node(), cx.clock().wall().into());
    let track = |live: &dyn Object, new: &mut dyn Object| {
        ownership.track(live, new, &options.manager);
        Ok(())
    };
    let hooks = Hooks { admission: &admission, track: Some(&track) };
    let in_registry = target.request_cx(cx, request, options.dry_run);
    let scaling = Scaling(make);
    let scale = bounded(target.resource.update_scale(&in_registry, target.name()?, &scaling, &hooks)).await?;
    respond::object(request.wish(), StatusCode::OK, &scale)
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
