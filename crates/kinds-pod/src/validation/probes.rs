//! Rules of probes and lifecycle handlers.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::intstr::IntOrString;
use api_machinery::names;
use api_types::core_v1::constants::{signal, uri_scheme};
use api_types::core_v1::{Container, ExecAction, HTTPGetAction, Lifecycle, LifecycleHandler, Probe, TCPSocketAction};
use kinds_frame::field_rules as rules;

use super::Around;

/// The handlers of one probe or hook: the first counts, more are refused.
struct Handlers<'a> {
    path: &'a Path,
    found: bool,
}

impl Handlers<'_> {
    /// Whether this one is the first.
    fn admit(&mut self, name: &'static str, errors: &mut ErrorList) -> bool {
        if self.found {
            errors.push(self.path.child(name).forbidden("may not specify more than 1 handler type"));
            return false;
        }
        self.found = true;
        true
    }

    /// Those that probes and hooks both may have.
    fn common(
        &mut self,
        exec: &Option<ExecAction>,
        get: &Option<HTTPGetAction>,
        socket: &Option<TCPSocketAction>,
        errors: &mut ErrorList,
    ) {
        if let Some(exec) = exec
            && self.admit("exec", errors)
        {
            validate_exec(exec, self.path, errors);
        }
        if let Some(get) = get
            && self.admit("httpGet", errors)
        {
            validate_http(get, &self.path.child("httpGet"), errors);
        }
        if let Some(socket) = socket
            && self.admit("tcpSocket", errors)
        {
            port_or_name(&self.path.child("tcpSocket").child("port"), &socket.port, errors);
        }
    }

    fn finish(&self, errors: &mut ErrorList) {
        if !self.found {
            errors.push(self.path.required("must specify a handler type"));
        }
    }
}

pub(super) fn validate_all(container: &Container, path: &Path, errors: &mut ErrorList) {
    let at = path.child("livenessProbe");
    if let Some(probe) = &container.liveness_probe {
        validate_probe(probe, &at, errors);
        validate_single_success(probe, &at, errors);
    }
    let at = path.child("readinessProbe");
    if let Some(probe) = &container.readiness_probe {
        validate_probe(probe, &at, errors);
        if let Some(seconds) = probe.termination_grace_period_seconds {
            let at = at.child("terminationGracePeriodSeconds");
            errors.push(at.invalid(seconds, "must not be set for readinessProbes"));
        }
    }
    let at = path.child("startupProbe");
    if let Some(probe) = &container.startup_probe {
        validate_probe(probe, &at, errors);
        validate_single_success(probe, &at, errors);
    }
}

fn validate_single_success(probe: &Probe, path: &Path, errors: &mut ErrorList) {
    if probe.success_threshold != 1 {
        errors.push(path.child("successThreshold").invalid(probe.success_threshold, "must be 1"));
    }
}

fn validate_probe(probe: &Probe, path: &Path, errors: &mut ErrorList) {
    let handler = &probe.probe_handler;
    let mut handlers = Handlers { path, found: false };
    handlers.common(&handler.exec, &handler.http_get, &handler.tcp_socket, errors);
    if let Some(grpc) = &handler.grpc
        && handlers.admit("grpc", errors)
    {
        rules::port(&path.child("grpc").child("port"), grpc.port, errors);
    }
    handlers.finish(errors);
    for (field, value) in [
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ] {
        rules::not_negative(&path.child(field), value.into(), errors);
    }
    if let Some(seconds) = probe.termination_grace_period_seconds
        && seconds <= 0
    {
        errors.push(path.child("terminationGracePeriodSeconds").invalid(seconds, "must be greater than 0"));
    }
}

pub(super) fn validate_lifecycle(
    around: &Around<'_>,
    lifecycle: Option<&Lifecycle>,
    grace_seconds: Option<i64>,
    path: &Path,
    errors: &mut ErrorList,
) {
    let Some(lifecycle) = lifecycle else { return };
    for (field, handler) in [("postStart", &lifecycle.post_start), ("preStop", &lifecycle.pre_stop)] {
        if let Some(handler) = handler {
            validate_handler(handler, grace_seconds, &path.child(field), errors);
        }
    }
    if let Some(stop) = &lifecycle.stop_signal {
        validate_stop_signal(around, stop, &path.child("stopSignal"), errors);
    }
}

/// What a container is stopped with is known by its system.
fn validate_stop_signal(around: &Around<'_>, stop: &str, path: &Path, errors: &mut ErrorList) {
    match around.spec.os.as_ref().map(|os| os.name.as_str()) {
        None | Some("") => errors.push(path.forbidden("may not be set for containers with empty `spec.os.name`")),
        Some("windows") => rules::one_of(path, stop, &[signal::SIGKILL, signal::SIGTERM], errors),
        Some("linux") => rules::one_of(path, stop, signal::ALL, errors),
        Some(_) => {}
    }
}

fn validate_handler(handler: &LifecycleHandler, grace_seconds: Option<i64>, path: &Path, errors: &mut ErrorList) {
    let mut handlers = Handlers { path, found: false };
    handlers.common(&handler.exec, &handler.http_get, &handler.tcp_socket, errors);
    if let Some(sleep) = &handler.sleep
        && handlers.admit("sleep", errors)
    {
        let limit = grace_seconds.unwrap_or_default();
        if sleep.seconds < 0 || sleep.seconds > limit {
            let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({limit})");
            errors.push(path.child("sleep").invalid(sleep.seconds, detail));
        }
    }
    handlers.finish(errors);
}

fn validate_exec(exec: &ExecAction, path: &Path, errors: &mut ErrorList) {
    if exec.command.is_empty() {
        errors.push(path.child("exec").child("command").required(""));
    }
}

fn validate_http(get: &HTTPGetAction, path: &Path, errors: &mut ErrorList) {
    rules::required(&path.child("path"), &get.path, errors);
    port_or_name(&path.child("port"), &get.port, errors);
    rules::one_of(&path.child("scheme"), &get.scheme, uri_scheme::ALL, errors);
    for header in &get.http_headers {
        errors.push_invalid(&path.child("httpHeaders"), &header.name, names::http_header_name(&header.name));
    }
}

/// A port by number, or by the name it has in the container.
pub fn port_or_name(path: &Path, port: &IntOrString, errors: &mut ErrorList) {
    match port {
        IntOrString::Int(number) => rules::port(path, *number, errors),
        IntOrString::Str(name) => {
            let problems = names::port_name(name);
            errors.extend(problems.into_iter().map(|detail| path.invalid(BadValue::from(name), detail)));
        }
    }
}
