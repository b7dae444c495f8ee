//! Exec, attach and port-forward: the runtime streams, this passes on.

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use component_base::serving::{self, Query, Request, Response, empty, text};
use http::uri::InvalidUri;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use node_api::cri::v1::{AttachRequest, ExecRequest, PortForwardRequest};
use node_api::cri::{Code, CriError};
use streaming::{
    ClientCommand, DialError, Dialect, PortError, Protocol, Proxied, ProxyError, RemoteCommand, SessionError,
    SessionOptions, SpdyError, StreamSet, Subprotocol, accept_remote_command, dial_spdy, is_tunnel, is_upgrade,
    is_websocket, proxy_tunnel_while_used, proxy_upgrade_while_used, query_ports, spdy_request, subprotocols,
    translate,
};
use tokio::net::TcpStream;

use super::Api;
use crate::engine::LookupError;

/// Seconds after which a client shall try again when the runtime has too much to do: the life of a runtime's token.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("60");

/// `/exec/{namespace}/{pod}[/{uid}]/{container}`
pub(super) async fn exec(api: Arc<Api>, request: Request, path: &[&str], query: &Query) -> Response {
    let set = match streams_of(query) {
        Ok(set) => set,
        Err(why) => return text(StatusCode::BAD_REQUEST, why),
    };
    let (pod, container) = match target(&api, path) {
        Ok(found) => found,
        Err(refusal) => return *refusal,
    };
    let id = match api.engine.container_id(&pod, &container).await {
        Ok(id) => id,
        Err(error) => return lookup_failed(&error),
    };
    let asked = ExecRequest {
        container_id: id,
        cmd: query.all("command").map(ToOwned::to_owned).collect(),
        tty: set.tty,
        stdin: set.stdin,
        stdout: set.stdout,
        stderr: set.stderr,
    };
    match api.runtime.exec(asked).await {
        Ok(url) => pass_command(api, request, "exec", &url, set).await,
        Err(error) => runtime_failed(&error),
    }
}

/// `/attach/{namespace}/{pod}[/{uid}]/{container}`
pub(super) async fn attach(api: Arc<Api>, request: Request, path: &[&str], query: &Query) -> Response {
    let mut set = match streams_of(query) {
        Ok(set) => set,
        Err(why) => return text(StatusCode::BAD_REQUEST, why),
    };
    let (pod, container) = match target(&api, path) {
        Ok(found) => found,
        Err(refusal) => return *refusal,
    };
    let Some(tty) = terminal_of(&pod, &container) else {
        let full = component_helpers::pod_state::full_name(&pod);
        return text(StatusCode::INTERNAL_SERVER_ERROR, format!("container {container} not found in pod {full}"));
    };
    // The container has a terminal or not, whatever is asked for.
    set.tty = tty;
    set.stderr &= !tty;
    let container_id = match api.engine.container_id(&pod, &container).await {
        Ok(id) => id,
        Err(error) => return lookup_failed(&error),
    };
    let asked = AttachRequest { container_id, stdin: set.stdin, tty, stdout: set.stdout, stderr: set.stderr };
    match api.runtime.attach(asked).await {
        Ok(url) => pass_command(api, request, "attach", &url, set).await,
        Err(error) => runtime_failed(&error),
    }
}

/// `/portForward/{namespace}/{pod}[/{uid}]`
pub(super) async fn port_forward(api: Arc<Api>, mut request: Request, path: &[&str], query: &Query) -> Response {
    let (namespace, name, uid) = match path {
        [namespace, name] => (namespace, name, None),
        [namespace, name, uid] => (namespace, name, Some(*uid)),
        _ => return super::route::not_found(),
    };
    let port = match ports_of(request.headers(), query) {
        Ok(ports) => ports,
        Err(error) => return text(StatusCode::BAD_REQUEST, error.to_string()),
    };
    let pod = match pod_of(&api, namespace, name, uid) {
        Ok(pod) => pod,
        Err(refusal) => return *refusal,
    };
    let pod_sandbox_id = match api.engine.sandbox_id(&pod) {
        Ok(id) => id,
        Err(error) => return lookup_failed(&error),
    };
    let url = match api.runtime.port_forward(PortForwardRequest { pod_sandbox_id, port }).await {
        Ok(url) => url,
        Err(error) => return runtime_failed(&error),
    };
    let backend = match Backend::dial(&url).await {
        Ok(backend) => backend,
        Err(error) => return text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    };
    let Backend { io, target, host } = backend;
    let passed = if api.translates && is_websocket(request.headers()) && is_tunnel(request.headers()) {
        api.own.websocket_sessions.with(&["portforward"]).inc();
        proxy_tunnel_while_used(&mut request, io, &target, &host, idle_timeout(&api)).await
    } else {
        proxy_upgrade_while_used(&mut request, io, &target, &host, idle_timeout(&api)).await
    };
    answer(&api, passed)
}

/// `streamingConnectionIdleTimeout`
fn idle_timeout(api: &Api) -> Option<Duration> {
    Some(api.config.streaming_connection_idle_timeout.to_std()).filter(|limit| !limit.is_zero())
}

/// The ports of the query: only the old WebSocket form names them there, SPDY names one with each stream.
fn ports_of(headers: &HeaderMap, query: &Query) -> Result<Vec<i32>, PortError> {
    if !is_websocket(headers) || is_tunnel(headers) {
        return Ok(Vec::new());
    }
    let ports = query_ports(query.all("port").chain(query.all("ports")))?;
    Ok(ports.into_iter().map(i32::from).collect())
}

/// The pod and the container's name of a path.
pub(super) fn target(api: &Api, path: &[&str]) -> Result<(Arc<Pod>, String), Box<Response>> {
    let (namespace, name, uid, container) = match path {
        [namespace, name, container] => (namespace, name, None, container),
        [namespace, name, uid, container] => (namespace, name, Some(*uid), container),
        _ => return Err(Box::new(super::route::not_found())),
    };
    Ok((pod_of(api, namespace, name, uid)?, (*container).to_owned()))
}

/// The pod of this name. A uid, where there is one, has to be the pod's own, or that of its mirror: who names it does not
/// mean a successor of the same name.
fn pod_of(api: &Api, namespace: &str, name: &str, uid: Option<&str>) -> Result<Arc<Pod>, Box<Response>> {
    let is_of =
        |pod: &Pod, uid: &str| api.engine.pod_by_uid(uid).is_some_and(|found| found.metadata.uid == pod.metadata.uid);
    let pod = api.engine.pod(namespace, name).filter(|pod| uid.is_none_or(|uid| is_of(pod, uid)));
    pod.ok_or_else(|| Box::new(text(StatusCode::NOT_FOUND, "pod does not exist")))
}

fn streams_of(query: &Query) -> Result<StreamSet, &'static str> {
    let set = StreamSet {
        stdin: query.is_on("input"),
        stdout: query.is_on("output"),
        stderr: query.is_on("error"),
        tty: query.is_on("tty"),
    };
    set.checked()
}

fn terminal_of(pod: &Pod, container: &str) -> Option<bool> {
    let spec = &pod.spec;
    let usual = spec.containers.iter().chain(&spec.init_containers).find(|found| found.name == container);
    usual.map(|found| found.tty).or_else(|| {
        let common = spec.ephemeral_containers.iter().map(|found| &found.ephemeral_container_common);
        common.into_iter().find(|found| found.name == container).map(|found| found.tty)
    })
}

fn lookup_failed(error: &LookupError) -> Response {
    text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

fn runtime_failed(error: &CriError) -> Response {
    let (status, message) = match error {
        CriError::Rpc { code: Code::NotFound, message, .. } => (StatusCode::NOT_FOUND, message.clone()),
        CriError::Rpc { code: Code::ResourceExhausted, message, .. } => {
            (StatusCode::TOO_MANY_REQUESTS, message.clone())
        }
        other => (StatusCode::INTERNAL_SERVER_ERROR, other.to_string()),
    };
    let mut response = text(status, message);
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    response
}

/// A connection to the runtime's streaming server.
struct Backend {
    io: TcpStream,
    target: String,
    host: String,
}

/// Why the runtime's streaming server is not reached. The client has to ask the runtime for another URL.
#[derive(Debug, thiserror::Error)]
enum BackendError {
    #[error("the runtime's streaming URL {url:?}: {source}")]
    Url { url: String, source: InvalidUri },
    #[error("the runtime's streaming URL {0:?} has no host")]
    NoHost(String),
    #[error("the runtime's streaming URL {0:?} is not http")]
    NotHttp(String),
    #[error("error dialing backend: {0}")]
    Dial(#[from] std::io::Error),
}

impl Backend {
    async fn dial(url: &str) -> Result<Self, BackendError> {
        let own = || url.to_owned();
        let uri: Uri = url.parse().map_err(|source| BackendError::Url { url: own(), source })?;
        let authority = uri.authority().ok_or_else(|| BackendError::NoHost(own()))?;
        if uri.scheme_str() != Some("http") {
            return Err(BackendError::NotHttp(own()));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let io = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await?;
        let target = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
        Ok(Self { io, target, host: authority.as_str().to_owned() })
    }

    /// Runs a command there.
    async fn command(self, set: StreamSet, group: &base::TaskGroup) -> Result<ClientCommand, CommandError> {
        let offered = Protocol::SPDY_SERVER.map(Protocol::name);
        let request = spdy_request(&self.target, &self.host, &offered)?;
        let (io, chosen) = dial_spdy(self.io, request).await?;
        let protocol = Protocol::from_name(&chosen).unwrap_or(Protocol::V1);
        Ok(ClientCommand::over_spdy(io, protocol, set, group).await?)
    }
}

/// Why the runtime does not run a command, as the client is told.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Request(#[from] http::Error),
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Streams(#[from] SpdyError),
}

/// A command's streams: translated for clients of the newest WebSocket protocol, passed on for all others.
async fn pass_command(api: Arc<Api>, mut request: Request, kind: &str, url: &str, set: StreamSet) -> Response {
    if !is_upgrade(request.headers()) {
        return text(StatusCode::BAD_REQUEST, "Upgrade request required");
    }
    let backend = match Backend::dial(url).await {
        Ok(backend) => backend,
        Err(error) => return text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    };
    let newest = Subprotocol::TRANSLATED;
    let wants = |name: &str| newest.iter().any(|served| served.name == name);
    if api.translates && is_websocket(request.headers()) && subprotocols(request.headers()).into_iter().any(wants) {
        api.own.websocket_sessions.with(&[kind]).inc();
        return translated(&api, request, backend, set, &newest);
    }
    let Backend { io, target, host } = backend;
    answer(&api, proxy_upgrade_while_used(&mut request, io, &target, &host, idle_timeout(&api)).await)
}

fn translated(
    api: &Arc<Api>,
    mut request: Request,
    backend: Backend,
    set: StreamSet,
    served: &[Subprotocol],
) -> Response {
    let accepted = match accept_remote_command(&mut request, served) {
        Ok(accepted) => accepted,
        Err(refusal) => return refusal.into_response::<String>().map(serving::full),
    };
    let (tasks, group) = (api.tasks.clone(), api.tasks.clone());
    let (dialect, options) = (accepted.dialect, SessionOptions { idle_timeout: idle_timeout(api) });
    tasks.spawn_cancellable("remote-command", async move {
        let Ok(io) = accepted.upgrade.io().await else { return };
        if let Err(error) = join(io, dialect, backend, set, options, &group).await {
            tracing::debug!(%error, "A remote command could not be translated");
        }
    });
    accepted.response.map(|()| empty())
}

async fn join(
    io: streaming::UpgradedIo,
    dialect: Dialect,
    backend: Backend,
    set: StreamSet,
    options: SessionOptions,
    group: &base::TaskGroup,
) -> Result<(), SessionError> {
    let front = RemoteCommand::start(io, dialect, set, options, group).await?;
    match backend.command(set, group).await {
        Ok(back) => drop(translate(front, back).await),
        Err(error) => {
            front.finish(&streaming::CommandStatus::Failure(error.to_string()), streaming::StatusForm::Full).await;
        }
    }
    Ok(())
}

/// What the client is answered, and the copying that goes on after it.
fn answer(api: &Api, passed: Result<Proxied, ProxyError>) -> Response {
    match passed {
        Ok(Proxied::Switched { response, copy }) => {
            api.tasks.spawn_cancellable("stream-copy", async move {
                if let Err(error) = copy.await {
                    tracing::debug!(%error, "A stream ended early");
                }
            });
            response.map(|()| empty())
        }
        Ok(Proxied::Refused(response)) => response.map(serving::full),
        Err(ProxyError::Client(refusal)) => refusal.into_response::<String>().map(serving::full),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_old_web_socket_form_names_ports_in_the_query() {
        let headers = |upgrade: &'static str, protocol: &'static str| {
            let pairs = [(header::CONNECTION, "Upgrade"), (header::UPGRADE, upgrade)];
            let mut headers: HeaderMap =
                pairs.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect();
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
            headers
        };
        let (old, tunnel) = ("v4.channel.k8s.io", "SPDY/3.1+portforward.k8s.io");
        let required = Err(PortError::NoParameter);
        let cases = [
            ("SPDY/3.1", "", "", Ok(vec![])),
            ("websocket", tunnel, "", Ok(vec![])),
            ("websocket", old, "port=80,443", Ok(vec![80, 443])),
            ("websocket", old, "", required),
        ];
        for (upgrade, protocol, query, expected) in cases {
            let query = Query::parse(query).unwrap();
            assert_eq!(ports_of(&headers(upgrade, protocol), &query), expected, "{upgrade} {protocol}");
        }
    }
}
