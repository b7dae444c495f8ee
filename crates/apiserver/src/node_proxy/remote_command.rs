//! `exec` and `attach`.

use std::sync::Arc;

use api_machinery::status::ApiError;
use api_types::core_v1::Pod;
use async_trait::async_trait;
use component_base::serving::{Response, empty};
use streaming::{
    Accepted, ClientCommand, CommandStatus, Protocol, RemoteCommand, SessionOptions, StatusForm, StreamSet,
    Subprotocol, accept_remote_command, dial_spdy, is_websocket, proxy_upgrade, spdy_request, subprotocols, translate,
};

use super::access::{admit_connect, read, require_create};
use super::connection::Backend;
use super::kubelet::{Kubelets, Translator};
use super::throttle::limited;
use super::{container, target, upgrade};
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::gates::TRANSLATED_COMMANDS;
use crate::routes::Endpoint;

/// The WebSocket protocol that is translated to SPDY here.
const TRANSLATED: &str = "v5.channel.k8s.io";
/// What is offered to node agents in a translation.
const OFFERED: [&str; 5] =
    [TRANSLATED, "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A new process.
    Exec,
    /// The container's own process.
    Attach,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Attach => "attach",
        }
    }
}

/// The subresource.
pub(super) struct RemoteCommands {
    pub(super) kind: Kind,
    pub(super) kubelets: Arc<Kubelets>,
}

#[async_trait]
impl Endpoint for RemoteCommands {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        if !matches!(request.info().verb.as_str(), "get" | "create") {
            return Err(ApiError::method_not_allowed());
        }
        admit_connect(cx, &request).await?;
        require_create(cx, &request).await?;
        let info = Arc::clone(request.info());
        let pod: Pod = read(cx, "pods", &info.namespace, &info.name).await?;
        let container = container::choose(&pod, &request.query().text("container"))?;
        let (backend, translator) = self.kubelets.for_sessions(cx, container::host(&pod)?).await?;
        upgrade::require_upgrade(&request)?;
        let set = streams(&request);
        let path = format!("/{}/{}/{}/{container}", self.kind.name(), info.namespace, info.name);
        let target = target::target(&path, &self.parameters(&request));
        let translates = translator == Translator::Server
            && cx.lifecycle.gates().enabled(TRANSLATED_COMMANDS)
            && is_websocket(request.headers())
            && subprotocols(request.headers()).contains(&TRANSLATED);
        let proxy_type = if translates { "translated_at_apiserver" } else { upgrade::PASSED_ON };
        cx.metrics.streaming.with(&[self.kind.name(), proxy_type]).inc();
        if translates {
            return translated(cx, request, backend, target, set);
        }
        let io = backend.dial().await.map_err(|error| upgrade::unreachable(&error))?;
        let io = limited(io, cx.config().requests.session_bytes_per_second);
        let audited = request.audited().clone();
        let mut request = upgrade::prepared(request);
        upgrade::answer(cx, audited, proxy_upgrade(&mut request, io, &target, &backend.authority).await)
    }
}

impl RemoteCommands {
    /// The parameters as node agents know them.
    fn parameters(&self, request: &Request<Authorized>) -> Vec<(&'static str, String)> {
        let query = request.query();
        let renamed = [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")];
        let switches = renamed.into_iter().filter(|(name, _)| query.flag(name)).map(|(_, name)| (name, "1".to_owned()));
        let mut parameters: Vec<(&str, String)> = switches.collect();
        if self.kind == Kind::Exec {
            parameters.extend(query.all("command").map(|argument| ("command", argument.to_owned())));
        }
        parameters
    }
}

fn streams(request: &Request<Authorized>) -> StreamSet {
    let flag = |name: &str| request.query().flag(name);
    StreamSet { stdin: flag("stdin"), stdout: flag("stdout"), stderr: flag("stderr"), tty: flag("tty") }
}

/// Accepts the WebSocket first; what goes wrong afterwards is reported within it.
fn translated(
    cx: &Arc<ApiCx>,
    request: Request<Authorized>,
    backend: Backend,
    target: String,
    set: StreamSet,
) -> Result<Response, ApiError> {
    let set = set.checked().map_err(ApiError::bad_request)?;
    let audited = request.audited().clone();
    let mut request = upgrade::prepared(request);
    let accepted = match accept_remote_command(&mut request, &Subprotocol::TRANSLATED) {
        Ok(accepted) => accepted,
        Err(refusal) => {
            cx.metrics.translated.with(&[refusal.status.as_str()]).inc();
            return Ok(upgrade::refused(refusal));
        }
    };
    let Accepted { response, dialect, upgrade } = accepted;
    let context = Arc::clone(cx);
    cx.tasks().spawn_cancellable("translated-command", async move {
        let io = match upgrade.io().await {
            Ok(io) => io,
            Err(error) => {
                tracing::debug!(%error, "The client of a remote command went away");
                return;
            }
        };
        match RemoteCommand::start(io, dialect, set, SessionOptions::default(), context.tasks()).await {
            Ok(front) => run(&context, front, &backend, &target, set).await,
            Err(error) => tracing::debug!(%error, ?dialect, "A remote command could not be started"),
        }
        drop(audited);
    });
    Ok(response.map(|()| empty()))
}

async fn run(cx: &ApiCx, front: RemoteCommand, backend: &Backend, target: &str, set: StreamSet) {
    let outcome = match open(cx, backend, target, set).await {
        Ok(back) => translate(front, back).await,
        Err(text) => {
            let outcome = CommandStatus::Failure(text);
            front.finish(&outcome, StatusForm::Full).await;
            Some(outcome)
        }
    };
    let code = outcome.map_or(200, |outcome| outcome.http_code());
    cx.metrics.translated.with(&[&code.to_string()]).inc();
}

async fn open(cx: &ApiCx, backend: &Backend, target: &str, set: StreamSet) -> Result<ClientCommand, String> {
    let io = backend.dial().await.map_err(|error| format!("error dialing backend: {error}"))?;
    let io = limited(io, cx.config().requests.session_bytes_per_second);
    let request = spdy_request(target, &backend.authority, &OFFERED).map_err(|error| error.to_string())?;
    let (io, chosen) = dial_spdy(io, request).await.map_err(|error| error.to_string())?;
    let protocol = Protocol::from_name(&chosen).unwrap_or(Protocol::V1);
    ClientCommand::over_spdy(io, protocol, set, cx.tasks()).await.map_err(|error| error.to_string())
}
