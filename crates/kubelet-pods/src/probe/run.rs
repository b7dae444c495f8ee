//! Running one probe once, whatever its handler.

use std::time::Duration;

use api_types::core_v1::{Container, Pod, Probe};
use node_api::cri::Runtime;

use super::dial::dial;
use super::http::{Get, get};
use super::{exec, grpc, ports};

/// The first two parts of the version that probes call themselves.
const USER_AGENT: &str = "kube-probe/1.36";

/// How one attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProbeAttempt {
    Success,
    /// A success that people should hear of.
    Warning(String),
    /// The container answered badly or not at all.
    Failure(String),
    /// The probe itself could not be run.
    Error(String),
}

impl ProbeAttempt {
    /// As metrics call it.
    pub(super) fn metric(&self) -> &'static str {
        match self {
            Self::Success | Self::Warning(_) => "successful",
            Self::Failure(_) => "failed",
            Self::Error(_) => "unknown",
        }
    }
}

/// The container that is probed.
pub(super) struct Target<'a> {
    pub(super) pod: &'a Pod,
    pub(super) container: &'a Container,
    pub(super) id: &'a str,
    /// The pod's address, or the node's on the host's network.
    pub(super) ip: &'a str,
}

pub(super) async fn run(runtime: &dyn Runtime, target: &Target<'_>, probe: &Probe) -> ProbeAttempt {
    let limit = Duration::from_secs(u64::try_from(probe.timeout_seconds.max(1)).unwrap_or(1));
    let handler = &probe.probe_handler;
    if let Some(action) = &handler.exec {
        return exec::run(runtime, target.container, target.id, &action.command, limit).await;
    }
    if let Some(action) = &handler.http_get {
        return http(target, action, limit).await;
    }
    if let Some(action) = &handler.tcp_socket {
        let port = match ports::resolve(&action.port, target.container) {
            Ok(port) => port,
            Err(error) => return ProbeAttempt::Error(error.to_string()),
        };
        let host = if action.host.is_empty() { target.ip } else { &action.host };
        return match tokio::time::timeout(limit, dial(host, port)).await {
            Ok(Ok(_)) => ProbeAttempt::Success,
            Ok(Err(error)) => ProbeAttempt::Failure(error.to_string()),
            Err(_) => ProbeAttempt::Failure(format!("dial tcp {host}:{port}: i/o timeout")),
        };
    }
    if let Some(action) = &handler.grpc {
        let Ok(port) = u16::try_from(action.port) else {
            return ProbeAttempt::Error(format!("invalid port number: {}", action.port));
        };
        let service = action.service.as_deref().unwrap_or_default();
        return match grpc::check(target.ip, port, service, limit).await {
            Ok(()) => ProbeAttempt::Success,
            Err(error) => ProbeAttempt::Failure(error.to_string()),
        };
    }
    ProbeAttempt::Error(format!("missing probe handler for {}:{}", target.pod.metadata.name, target.container.name))
}

async fn http(target: &Target<'_>, action: &api_types::core_v1::HTTPGetAction, limit: Duration) -> ProbeAttempt {
    let port = match ports::resolve(&action.port, target.container) {
        Ok(port) => port,
        Err(error) => return ProbeAttempt::Error(error.to_string()),
    };
    let host = if action.host.is_empty() { target.ip } else { &action.host };
    let headers = action.http_headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
    let request = Get::new(&action.scheme, host, port, &action.path, headers, USER_AGENT);
    match get(&request, limit).await {
        Err(error) => ProbeAttempt::Failure(error.to_string()),
        Ok(answer) if answer.foreign_redirect => {
            ProbeAttempt::Warning(format!("Probe terminated redirects, Response body: {}", answer.body))
        }
        Ok(answer) if (200..400).contains(&answer.status) => ProbeAttempt::Success,
        Ok(answer) => ProbeAttempt::Failure(format!("HTTP probe failed with statuscode: {}", answer.status)),
    }
}
