//! The actions on pods: binding one to a node, and evicting one.

use std::sync::Arc;

use api_machinery::meta::Status;
use api_machinery::status::ApiError;
use api_types::core_v1::Binding;
use api_types::policy_v1::Eviction;
use async_trait::async_trait;
use component_base::serving::Response;
use http::{Method, StatusCode};
use kinds::info::ResourceInfo;
use registry::Hooks;

use super::admitting::Admitting;
use super::bounded_write::bounded;
use super::incoming;
use super::target::Target;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::request::WriteOptions;
use crate::respond;
use crate::routes::{Endpoint, Routes};

/// Adds the old place of bindings.
pub(super) fn install(routes: &mut Routes) {
    routes.resource("", "v1", "bindings", Arc::new(Bindings));
}

pub(super) async fn bind(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let binding: Binding = request.decode().await?;
    bind_decoded(cx, &request, target, binding).await
}

async fn bind_decoded(
    cx: &Arc<ApiCx>,
    request: &Request<Authorized>,
    target: &Target,
    mut binding: Binding,
) -> Result<Response, ApiError> {
    let options = WriteOptions::of_write("CreateOptions", request.query(), request.user_agent())?;
    incoming::ensure_namespace(target, &mut binding.metadata)?;
    Admitting::new(cx, request, target, options.dry_run).pass(&mut binding).await?;
    let in_registry = target.request_cx(cx, request, options.dry_run);
    let status = bounded(registry::bind(&cx.registry, &in_registry, target.name()?, &binding)).await?;
    Ok(created(request, &status))
}

pub(super) async fn evict(
    cx: &Arc<ApiCx>,
    mut request: Request<Authorized>,
    target: &Target,
) -> Result<Response, ApiError> {
    let options = WriteOptions::of_write("CreateOptions", request.query(), request.user_agent())?;
    let mut eviction: Eviction = request.decode().await?;
    incoming::ensure_namespace(target, &mut eviction.metadata)?;
    let in_body = eviction.delete_options.as_ref().is_some_and(|options| !options.dry_run.is_empty());
    let admission = Admitting::new(cx, &request, target, options.dry_run || in_body);
    admission.pass(&mut eviction).await?;
    let deletion = admission.of_object_itself();
    let hooks = Hooks { admission: &deletion, track: None };
    let in_registry = target.request_cx(cx, &request, options.dry_run);
    let evicting = registry::evict(&cx.registry, &in_registry, target.name()?, &eviction, &hooks);
    let status = bounded(evicting).await?;
    Ok(created(&request, &status))
}

/// What became of it; an action may also report a failure this way.
fn created(request: &Request<Authorized>, status: &Status) -> Response {
    let code = u16::try_from(status.code).ok().and_then(|code| StatusCode::from_u16(code).ok());
    respond::success(request.preferences(), code.unwrap_or(StatusCode::CREATED), status)
}

/// The resource of bindings that name their pod in the body: created, and kept nowhere.
pub(crate) static BINDINGS: ResourceInfo<'static> = ResourceInfo::review::<Binding>();

/// `POST` of a binding to the collection `bindings`: the pod is named in the body.
struct Bindings;

#[async_trait]
impl Endpoint for Bindings {
    async fn serve(&self, cx: &Arc<ApiCx>, mut request: Request<Authorized>) -> Result<Response, ApiError> {
        let info = request.info();
        if info.namespace.is_empty() || info.path_name().is_some() {
            return Err(ApiError::unknown_resource());
        }
        if request.method() != Method::POST {
            return Err(ApiError::method_not_allowed());
        }
        let binding: Binding = request.decode().await?;
        let mut info = (**request.info()).clone();
        info.resource = "pods".to_owned();
        info.subresource = "binding".to_owned();
        info.parts = vec!["pods".to_owned(), binding.metadata.name.clone(), "binding".to_owned()];
        let target = Target::find(cx, &info)?;
        bind_decoded(cx, &request, &target, binding).await
    }
}
