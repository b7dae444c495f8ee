//! What requests come to once they may pass: one file per verb or subresource.

mod admitting;
mod bounded_write;
mod claim_permissions;
mod create;
mod debugging;
mod delete;
mod delete_collection;
mod deprecation;
mod escalation;
mod get;
#[cfg(test)]
mod golden;
mod incoming;
mod index;
mod list;
mod own_paths;
pub(crate) mod ownership;
mod param_permissions;
mod patch;
mod patch_body;
mod patch_focus;
mod pods;
mod scale;
mod signing_permission;
mod target;
mod unread_permission;
mod update;
mod watch;
mod watch_frames;
mod watch_socket;
mod watch_stream;

use std::sync::Arc;

use api_machinery::status::ApiError;
use component_base::serving::{Response, text};
use http::{Method, StatusCode};
use kinds::rules::Endpoint;

pub(crate) use debugging::install as debugging;
pub(crate) use deprecation::note_kind as note_deprecation;
pub(crate) use index::install as index;
pub(crate) use ownership::Ownership;
pub(crate) use pods::BINDINGS;
pub(crate) use target::Target;

use crate::chain::{Authorized, Request, traced};
use crate::cx::ApiCx;
use crate::negotiate::routing::{self, Produced};
use crate::peers;
use crate::routes::Routes;

/// Adds the places that are answered here without a target.
pub(crate) fn install(routes: &mut Routes) {
    own_paths::install(routes);
    pods::install(routes);
}

/// Finds who answers a request, and lets it.
pub(crate) async fn dispatch(
    cx: &Arc<ApiCx>,
    routes: &Routes,
    request: Request<Authorized>,
) -> Result<Response, ApiError> {
    let info = request.info();
    if let Some(endpoint) = routes.elsewhere(info) {
        return endpoint.serve(cx, request).await;
    }
    if let Some(endpoint) = routes.find(info) {
        if info.is_resource && !info.is_long_running() && request.method() == Method::POST {
            routing::require_accepted(request.headers(), request.preferences().forms(), Produced::Documents)?;
        }
        return endpoint.serve(cx, request).await;
    }
    if let Some(peers) = cx.peers.as_ref().filter(|_| may_be_elsewhere(cx, &request)) {
        let fitting = peers.that_serve(info);
        if !fitting.is_empty() {
            return Box::pin(peers::serve(peers, fitting, cx, request)).await;
        }
    }
    if !info.is_resource || !target::is_served(cx, info) || target::is_out_of_scope(cx, info) {
        return unknown_path(cx, &info.path);
    }
    if info.verb == "proxy" {
        // The old prefix is nothing but a verb for authorization.
        return Err(ApiError::unknown_resource());
    }
    let target = Target::find(cx, info)?;
    deprecation::note(cx, &request, &target);
    match target.subresource() {
        None => on_resource(cx, request, target).await,
        Some(_) => on_subresource(cx, request, target).await,
    }
}

/// Whether a request is for a resource that this server does not have, and has not been passed on already.
fn may_be_elsewhere(cx: &ApiCx, request: &Request<Authorized>) -> bool {
    let info = request.info();
    let is_own = || cx.registry.resource(&info.group, &info.version, &info.resource).is_some();
    info.is_resource && !peers::is_proxied(request.headers()) && !is_own()
}

/// Nobody knows the path: for good, or just not yet. Below the built-in groups upstream's router says so, elsewhere a
/// plain text does.
pub(crate) fn unknown_path(cx: &ApiCx, path: &str) -> Result<Response, ApiError> {
    if is_built_in(path) {
        return Err(ApiError::unknown_resource());
    }
    if cx.lifecycle.events().mux_and_discovery_complete.has_happened() {
        return Ok(text(StatusCode::NOT_FOUND, "404 page not found\n"));
    }
    let text = "the request has been made before all known HTTP paths have been installed, please try again";
    Err(ApiError::service_unavailable(text).with_retry_after(5))
}

/// Whether a path is below the core API, a built-in group or the version.
fn is_built_in(path: &str) -> bool {
    let mut segments = path.split('/').skip(1);
    match (segments.next(), segments.next()) {
        (Some("api" | "version"), _) => true,
        (Some("apis"), Some(group)) => kinds::all().any(|rules| rules.info().group == group && !group.is_empty()),
        _ => false,
    }
}

async fn on_resource(cx: &Arc<ApiCx>, request: Request<Authorized>, target: Target) -> Result<Response, ApiError> {
    let verb = match (request.method(), target.name.is_some()) {
        _ if request.info().verb == "watch" => "watch",
        (&Method::GET, false) => "list",
        (&Method::GET, true) => "get",
        (&Method::HEAD, named) if target.is_custom() => ["list", "get"][usize::from(named)],
        (&Method::POST, false) if target.has_home() => "create",
        (&Method::PUT, true) => "update",
        (&Method::PATCH, true) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) if target.has_home() => "deletecollection",
        (&Method::PUT | &Method::PATCH, false) if target.is_custom() => return Err(Target::nameless()),
        _ if target.is_custom() => return Err(target.without_verb(&request.info().verb)),
        _ => return Err(ApiError::method_not_allowed()),
    };
    target.check_verb(verb)?;
    check_route(&request, &target, verb)?;
    let span = traced::handling(span_name(&request, verb), &request);
    // Each on the heap: a future is as large as the largest that it may wait for, and a get must not pay for a patch.
    let answer = match verb {
        "watch" => Box::pin(watch::watch(cx, request, &target)).await,
        "list" => Box::pin(list::list(cx, &request, &target)).await,
        "get" => Box::pin(get::get(cx, &request, &target)).await,
        "create" => Box::pin(create::create(cx, request, &target)).await,
        "update" => Box::pin(update::update(cx, request, &target, Endpoint::Main)).await,
        "patch" => Box::pin(patch::patch(cx, request, &target, Endpoint::Main)).await,
        "delete" => Box::pin(delete::delete(cx, request, &target)).await,
        _ => Box::pin(delete_collection::delete_collection(cx, request, &target)).await,
    };
    drop(span);
    answer
}

/// What a request is called in its trace.
fn span_name(request: &Request<Authorized>, verb: &str) -> &'static str {
    match verb {
        "watch" if request.query().flag("sendInitialEvents") => "WatchList",
        "watch" => "Watch",
        "list" => "List",
        "get" => "Get",
        "create" => "Create",
        "update" => "Update",
        "patch" => "Patch",
        "delete" => "Delete",
        _ => "DeleteCollection",
    }
}

/// What upstream's router asks of requests for built-in kinds; those that came at run time do not pass it.
fn check_route(request: &Request<Authorized>, target: &Target, verb: &str) -> Result<(), ApiError> {
    if target.is_custom() {
        return Ok(());
    }
    if verb == "patch" {
        routing::require_patch(request.headers(), request.preferences().forms())?;
    }
    let produced = if matches!(verb, "list" | "watch") { Produced::Lists } else { Produced::Documents };
    routing::require_accepted(request.headers(), request.preferences().forms(), produced)
}

async fn on_subresource(cx: &Arc<ApiCx>, request: Request<Authorized>, target: Target) -> Result<Response, ApiError> {
    let Some(subresource) = target.subresource() else { return Err(ApiError::unknown_resource()) };
    let verb = match *request.method() {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    };
    if !subresource.verbs.contains(&verb) {
        return Err(target.without_verb(verb));
    }
    check_route(&request, &target, verb)?;
    let _span = traced::handling(span_name(&request, verb), &request);
    match (subresource.name, verb) {
        ("scale", "get") => Box::pin(scale::get(cx, &request, &target)).await,
        ("scale", "update") => Box::pin(scale::update(cx, request, &target)).await,
        ("scale", "patch") => Box::pin(scale::patch(cx, request, &target)).await,
        ("binding", "create") => Box::pin(pods::bind(cx, request, &target)).await,
        ("eviction", "create") => Box::pin(pods::evict(cx, request, &target)).await,
        (_, "get") => Box::pin(get::get(cx, &request, &target)).await,
        (_, "update") => Box::pin(update::update(cx, request, &target, target.endpoint()?)).await,
        (_, "patch") => Box::pin(patch::patch(cx, request, &target, target.endpoint()?)).await,
        _ => Err(ApiError::unknown_resource()),
    }
}
