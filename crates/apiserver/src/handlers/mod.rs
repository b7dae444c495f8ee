//! What requests come to once they may pass: one file per verb or subresource.

mod admitting;
mod bounded_write;
mod create;
mod delete;
mod delete_collection;
mod deprecation;
mod get;
mod incoming;
mod index;
mod list;
mod ownership;
mod patch;
mod patch_body;
mod pods;
mod scale;
mod target;
mod update;
mod watch;
mod watch_frames;
mod watch_socket;

use std::sync::Arc;

use api_machinery::status::ApiError;
use component_base::serving::{Response, text};
use http::{Method, StatusCode};
use kinds::rules::Endpoint;

pub(crate) use target::Target;

use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::routes::Routes;

/// Adds the places that are answered here without a target.
pub(crate) fn install(routes: &mut Routes) {
    index::install(routes);
    pods::install(routes);
}

/// Finds who answers a request, and lets it.
pub(crate) async fn dispatch(cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
    if let Some(endpoint) = cx.routes.find(request.info()) {
        return endpoint.serve(cx, request).await;
    }
    if !request.info().is_resource {
        return unknown_path(cx);
    }
    if !target::is_served(cx, request.info()) || target::is_out_of_scope(cx, request.info()) {
        return unknown_path(cx);
    }
    let target = Target::find(cx, request.info())?;
    deprecation::note(cx, &request, &target);
    match target.subresource {
        None => on_resource(cx, request, target).await,
        Some(_) => on_subresource(cx, request, target).await,
    }
}

/// Nobody knows the path: for good, or just not yet.
fn unknown_path(cx: &ApiCx) -> Result<Response, ApiError> {
    if cx.lifecycle.events().mux_and_discovery_complete.has_happened() {
        return Ok(text(StatusCode::NOT_FOUND, "404 page not found\n"));
    }
    let text = "the request has been made before all known HTTP paths have been installed, please try again";
    Err(ApiError::service_unavailable(text).with_retry_after(5))
}

async fn on_resource(cx: &Arc<ApiCx>, request: Request<Authorized>, target: Target) -> Result<Response, ApiError> {
    let verb = request.info().verb.clone();
    if verb == "watch" {
        target.check_verb("watch")?;
        return watch::watch(cx, request, &target).await;
    }
    match (request.method(), target.name.is_some()) {
        (&Method::GET, false) => {
            target.check_verb("list")?;
            list::list(cx, &request, &target).await
        }
        (&Method::GET, true) => {
            target.check_verb("get")?;
            get::get(cx, &request, &target).await
        }
        (&Method::POST, false) if target.has_home() => {
            target.check_verb("create")?;
            create::create(cx, request, &target).await
        }
        (&Method::PUT, true) => {
            target.check_verb("update")?;
            update::update(cx, request, &target, Endpoint::Main).await
        }
        (&Method::PATCH, true) => {
            target.check_verb("patch")?;
            patch::patch(cx, request, &target, Endpoint::Main).await
        }
        (&Method::DELETE, true) => {
            target.check_verb("delete")?;
            delete::delete(cx, request, &target).await
        }
        (&Method::DELETE, false) if target.has_home() => {
            target.check_verb("deletecollection")?;
            delete_collection::delete_collection(cx, request, &target).await
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

async fn on_subresource(cx: &Arc<ApiCx>, request: Request<Authorized>, target: Target) -> Result<Response, ApiError> {
    let Some(subresource) = target.subresource else { return Err(ApiError::unknown_resource()) };
    let verb = match *request.method() {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    };
    if !subresource.verbs.contains(&verb) {
        return Err(ApiError::method_not_allowed());
    }
    let endpoint = match subresource.name {
        "status" => Endpoint::Status,
        other => Endpoint::Other(other),
    };
    match (subresource.name, verb) {
        ("scale", "get") => scale::get(cx, &request, &target).await,
        ("scale", "update") => scale::update(cx, request, &target).await,
        ("scale", "patch") => scale::patch(cx, request, &target).await,
        ("binding", "create") => pods::bind(cx, request, &target).await,
        ("eviction", "create") => pods::evict(cx, request, &target).await,
        (_, "get") => get::get(cx, &request, &target).await,
        (_, "update") => update::update(cx, request, &target, endpoint).await,
        (_, "patch") => patch::patch(cx, request, &target, endpoint).await,
        _ => Err(ApiError::unknown_resource()),
    }
}
