//! A node's agent for one pod: a fixed log, commands that echo, ports that answer in capitals.

use std::sync::Arc;

use base::{Rng, SystemClock, TaskGroup};
use component_base::serving::{Handler, Request, Response, ServerHandle, empty, full, handler_fn, text};
use http::StatusCode;
use streaming::{
    CommandStatus, PortForward, RemoteCommand, SessionOptions, StatusForm, StreamSet, Subprotocol, accept_port_forward,
    accept_remote_command, query_ports,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::https::serving;
use crate::request::Query;
use crate::server::self_signed;

/// What every container has written.
pub(super) const LOG: &str = "one\ntwo\n";
/// What tests send to commands and ports.
pub(super) const INPUT: &[u8] = b"hello";

/// Serves on a port of its own for as long as the tasks run.
pub(super) fn start(tasks: &TaskGroup) -> ServerHandle {
    let sessions = tasks.clone();
    let handler = handler_fn(move |request| {
        let sessions = sessions.clone();
        async move { answer(&sessions, request) }
    });
    start_with(tasks, Arc::new(handler))
}

/// An agent that answers in another way.
pub(super) fn start_with(tasks: &TaskGroup, handler: Arc<dyn Handler>) -> ServerHandle {
    let serving = serving();
    let generate = self_signed::generator(&SystemClock::shared(), &Rng::seeded(3));
    let certificates = serving.certificates(&["127.0.0.1".to_owned()], &generate).unwrap();
    serving.serve(tasks, certificates, &[], handler).unwrap()
}

fn answer(tasks: &TaskGroup, request: Request) -> Response {
    let query = Query::parse(request.uri().query().unwrap_or_default());
    let path = request.uri().path().to_owned();
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["", "containerLogs", "default", "p", "c"] => text(StatusCode::OK, LOG),
        ["", "exec", "default", "p", "c"] => command(tasks, request, &query, query.all("command").collect()),
        ["", "attach", "default", "p", "c"] => command(tasks, request, &query, vec!["attached"]),
        ["", "headers"] => text(StatusCode::OK, format!("{:?}", request.headers())),
        ["", "portForward", "default", "p"] => forward(tasks, request, &query),
        _ => text(StatusCode::NOT_FOUND, "pod does not exist"),
    }
}

/// Writes its name, then its input in capitals, and ends with code 3.
fn command(tasks: &TaskGroup, mut request: Request, query: &Query, name: Vec<&str>) -> Response {
    let is_on = |name: &str| query.first(name) == Some("1");
    let set = StreamSet { stdin: is_on("input"), stdout: is_on("output"), stderr: is_on("error"), tty: is_on("tty") };
    let accepted = match accept_remote_command(&mut request, &Subprotocol::SERVED) {
        Ok(accepted) => accepted,
        Err(refusal) => return refusal.into_response::<String>().map(full),
    };
    let (name, own) = (name.join(" "), tasks.clone());
    tasks.spawn_cancellable("fake-command", async move {
        let io = accepted.upgrade.io().await.unwrap();
        let started = RemoteCommand::start(io, accepted.dialect, set, SessionOptions::default(), &own).await;
        let mut session = started.unwrap();
        let (mut stdin, mut stdout) = (session.stdin.take().unwrap(), session.stdout.take().unwrap());
        stdout.write_all(format!("{name}:").as_bytes()).await.unwrap();
        let mut input = [0; INPUT.len()];
        if stdin.read_exact(&mut input).await.is_err() {
            return;
        }
        stdout.write_all(&input.to_ascii_uppercase()).await.unwrap();
        drop(stdout);
        session.finish(&CommandStatus::exit(3), StatusForm::Short).await;
    });
    accepted.response.map(|()| empty())
}

fn forward(tasks: &TaskGroup, mut request: Request, query: &Query) -> Response {
    let accepted = match accept_port_forward(&mut request) {
        Ok(accepted) => accepted,
        Err(refusal) => return refusal.into_response::<String>().map(full),
    };
    let ports = query_ports(query.all("port")).unwrap_or_default();
    let own = tasks.clone();
    tasks.spawn_cancellable("fake-forward", async move {
        let io = accepted.upgrade.io().await.unwrap();
        let options = SessionOptions::default();
        let mut session = PortForward::start(io, accepted.dialect, &ports, "peer", options, &own).await;
        while let Some(mut forward) = session.next().await {
            let mut input = [0; INPUT.len()];
            if forward.data.read_exact(&mut input).await.is_err() {
                continue;
            }
            forward.data.write_all(&input.to_ascii_uppercase()).await.unwrap();
            forward.data.shutdown().await.unwrap();
            forward.finish();
        }
    });
    accepted.response.map(|()| empty())
}
