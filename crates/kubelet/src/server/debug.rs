//! Handlers for people: running a command, the log's verbosity, checkpoints.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use component_base::serving::{Query, Request, Response, text};
use http::StatusCode;

use super::logs::has_container;
use super::route::{disabled, json_answer};
use super::{Api, streams};

/// `/run/{namespace}/{pod}[/{uid}]/{container}?cmd=`
pub(super) async fn run(api: Arc<Api>, path: &[&str], query: &Query) -> Response {
    let (pod, container) = match streams::target(&api, path) {
        Ok(found) => found,
        Err(refusal) => return *refusal,
    };
    let command = query.get("cmd").unwrap_or_default().split(' ').map(ToOwned::to_owned).collect();
    let id = match api.engine.container_id(&pod, &container).await {
        Ok(id) => id,
        Err(error) => return text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    };
    match api.runtime.exec_sync(&id, command, Duration::ZERO).await {
        Ok(answer) => json_answer([answer.stdout, answer.stderr].concat()),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// `/checkpoint/{namespace}/{pod}/{container}`
pub(super) async fn checkpoint(api: Arc<Api>, path: &[&str], query: &Query) -> Response {
    let [namespace, name, container] = path else { return super::route::not_found() };
    let Some(pod) = api.engine.pod(namespace, name) else {
        return text(StatusCode::NOT_FOUND, "pod does not exist");
    };
    if !has_container(&pod, container) {
        return text(StatusCode::NOT_FOUND, format!("container {container} does not exist"));
    }
    let timeout = match query.get("timeout").map(str::parse::<i64>) {
        None => 0,
        Some(Ok(seconds)) => seconds,
        Some(Err(_)) => return text(StatusCode::NOT_FOUND, "cannot parse value of timeout parameter"),
    };
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("checkpointing of {namespace}/{name}/{container} failed ({error})");
        text(StatusCode::INTERNAL_SERVER_ERROR, message)
    };
    let Ok(timeout) = u64::try_from(timeout) else { return failed(&"timeout is negative") };
    let id = match api.engine.container_id(&pod, container).await {
        Ok(id) => id,
        Err(error) => return failed(&error),
    };
    let time = Time::from(api.clock.wall());
    let file = format!("checkpoint-{name}_{namespace}-{container}-{time}.tar");
    let location = api.stats.root_dir().join("checkpoints").join(file).display().to_string();
    let timeout = Duration::from_secs(timeout).max(api.config.runtime_request_timeout.to_std());
    match api.runtime.checkpoint_container(&id, &location, timeout).await {
        Ok(()) => json_answer(serde_json::json!({"items": [location]}).to_string()),
        Err(error) => failed(&error),
    }
}

/// `/debug/pprof`
pub(super) async fn profiles(api: &Api, request: Request) -> Response {
    if api.config.enable_profiling_handler == Some(false) {
        return disabled("profiling endpoint is disabled.");
    }
    debugging(api, request).await
}

/// `PUT /debug/flags/v`
pub(super) async fn verbosity(api: &Api, request: Request) -> Response {
    if api.config.enable_debug_flags_handler == Some(false) {
        return disabled("flags endpoint is disabled.");
    }
    debugging(api, request).await
}

async fn debugging(api: &Api, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    api.debugging.answer(parts.uri.path(), &parts.method, body).await
}
