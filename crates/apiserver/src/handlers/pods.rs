//! The actions on pods: binding one to a node, and evicting one.

use std::sync::Arc;

use api_machinery::meta::Status;
use api_machinery::status::ApiError;
use api_types::core_v1::Binding;
use api_types::policy_v1::Eviction;
use component_base::serving::Response;
use http::StatusCode;
use registry::Hooks;

use super::Target;
use super::admitting::Admitting;
use super::bounded_write::bounded;
use super::incoming;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::request::WriteOptions;
use crate::respond;

pub(super) async fn bind(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let options = WriteOptions::of_write("CreateOptions", request.query(), request.user_agent())?;
    let mut binding: Binding = request.decode().await?;
    incoming::settle_namespace(target, &mut binding.metadata)?;
    let admission = Admitting::new(cx, &request, target, options.dry_run);
    let hooks = Hooks { admission: &admission, track: None };
    let in_registry = target.request_cx(cx, &request, options.dry_run);
    let name = target.name()?;
    let status = bounded(registry::pods::bind(&cx.registry, &in_registry, name, &binding, &hooks)).await?;
    Ok(created(&request, &status))
}

pub(super) async fn evict(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let options = WriteOptions::of_write("CreateOptions", request.query(), request.user_agent())?;
    let mut eviction: Eviction = request.decode().await?;
    incoming::settle_namespace(target, &mut eviction.metadata)?;
    let in_body = eviction.delete_options.as_ref().is_some_and(|options| !options.dry_run.is_empty());
    let admission = Admitting::new(cx, &request, target, options.dry_run || in_body);
    let hooks = Hooks { admission: &admission, track: None };
    let in_registry = target.request_cx(cx, &request, options.dry_run);
    let name = target.name()?;
    let status = bounded(registry::pods::evict(&cx.registry, &in_registry, name, &eviction, &hooks)).await?;
    Ok(created(&request, &status))
}

fn created(request: &Request<Authorized>, status: &Status) -> Response {
    respond::success(request.wish(), StatusCode::CREATED, status)
}
