//! Lifecycle hooks: commands, HTTP requests and sleeps at the start and end of a container.

use std::time::Duration;

use api_types::core_v1::{Container, LifecycleHandler, ObjectReference, Pod};
use base::CancellationToken;

use super::{PodRuntime, text};
use crate::interfaces::Level;
use crate::probe::http::{Get, HttpError, get};
use crate::probe::ports::{self, PortError};

/// A hook that is not cut off by a grace period ends at the latest after this.
const HTTP_HOOK_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Why a hook failed, in the words that users see. No hook is tried again: the container is.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    #[error("Exec lifecycle hook ({command}) {of} {error}, message: {output:?}")]
    Exec { command: String, of: Failing, error: String, output: String },
    #[error("HTTP lifecycle hook ({path}) {of} {source}")]
    Http { path: String, of: Failing, source: RequestError },
    #[error("Cannot run handler: invalid handler: {0}")]
    Invalid(String),
}

/// Whose hook it is.
#[derive(Debug)]
pub struct Failing {
    container: String,
    pod: String,
}

impl std::fmt::Display for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "for Container {:?} in Pod {:?} failed - error:", self.container, self.pod)
    }
}

/// Why a hook's request was not answered well.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("failed to find networking container: no pod IP")]
    NoAddress,
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Http(#[from] HttpError),
}

/// A hook at the end of a container. Where the pod is to end sooner than was said when it began, it is broken off, and has failed.
pub(super) struct Underway<'a> {
    pub(super) runtime: &'a PodRuntime,
    pub(super) about: &'a ObjectReference,
    pub(super) hook: &'a LifecycleHandler,
    /// Cancelled where the pod is to end sooner.
    pub(super) interrupt: Option<&'a CancellationToken>,
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if self.interrupt.is_some_and(CancellationToken::is_cancelled) {
            self.runtime.broken_off(self.about, self.hook, Moment::PreStop);
        }
    }
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    PostStart,
    PreStop,
}

impl PodRuntime {
    /// Tells that a hook has failed. Why is told to nobody: it may hold what is secret.
    pub(super) fn hook_failed(&self, about: &ObjectReference, moment: Moment) {
        let (reason, text) = match moment {
            Moment::PostStart => ("FailedPostStartHook", "PostStartHook failed"),
            Moment::PreStop => ("FailedPreStopHook", "PreStopHook failed"),
        };
        self.side.events.event(about.clone(), Level::Warning, reason, text);
    }

    /// A hook was broken off. Requests are not: they go on without anybody who waits for them.
    pub(super) fn broken_off(&self, about: &ObjectReference, hook: &LifecycleHandler, moment: Moment) {
        if hook.sleep.is_some() {
            self.metrics.sleeps_cut.with(&[]).inc();
            tracing::info!(pod = %about.name, error = "container terminated before sleep hook finished", "Hook failed");
        }
        if hook.sleep.is_some() || hook.exec.is_some() {
            self.hook_failed(about, moment);
        }
    }

    /// Runs a hook to its end.
    pub async fn run_hook(
        &self,
        pod: &Pod,
        container: &Container,
        id: &str,
        hook: &LifecycleHandler,
        ips: &[String],
    ) -> Result<(), HookError> {
        let of = || Failing { container: container.name.clone(), pod: text::pod(pod) };
        if let Some(exec) = &hook.exec {
            let answer = self.runtime.exec_sync(id, exec.command.clone(), Duration::ZERO).await;
            let (error, output) = match answer {
                Ok(answer) if answer.exit_code == 0 => return Ok(()),
                Ok(answer) => {
                    let stderr = String::from_utf8_lossy(&answer.stderr).into_owned();
                    let line = exec.command.join(" ");
                    let error = format!("command '{line}' exited with {}: {stderr}", answer.exit_code);
                    (error, String::from_utf8_lossy(&answer.stdout).into_owned() + &stderr)
                }
                Err(error) => (error.to_string(), String::new()),
            };
            return Err(HookError::Exec { command: text::list(&exec.command), of: of(), error, output });
        }
        if let Some(http) = &hook.http_get {
            let sent = self.http_hook(pod, container, http, ips).await;
            return sent.map_err(|source| HookError::Http { path: http.path.clone(), of: of(), source });
        }
        if let Some(sleep) = &hook.sleep {
            tokio::time::sleep(Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or(0))).await;
            return Ok(());
        }
        Err(HookError::Invalid(api_machinery::json::encode(hook)))
    }

    async fn http_hook(
        &self,
        pod: &Pod,
        container: &Container,
        http: &api_types::core_v1::HTTPGetAction,
        ips: &[String],
    ) -> Result<(), RequestError> {
        let host = match (http.host.as_str(), ips.first()) {
            ("", Some(ip)) => ip.clone(),
            ("", None) if pod.spec.host_network => {
                self.side.node.host_ips().first().map(ToString::to_string).unwrap_or_default()
            }
            ("", None) => return Err(RequestError::NoAddress),
            (host, _) => host.to_owned(),
        };
        let port = ports::resolve(&http.port, container)?;
        let headers = http.http_headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
        let mut request = Get::new(&http.scheme, &host, port, &http.path, headers, "kube-lifecycle/1.36");
        match get(&request, HTTP_HOOK_LIMIT).await {
            Ok(_) => Ok(()),
            Err(HttpError::PlainAnswerToTls) => {
                request.scheme = "http".to_owned();
                request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
                get(&request, HTTP_HOOK_LIMIT).await?;
                let text =
                    format!("request to HTTPS lifecycle hook {host} got HTTP response, retry with HTTP succeeded");
                self.metrics.http_fallbacks.with(&[]).inc();
                self.pod_event(pod, Level::Warning, "LifecycleHTTPFallback", &text);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}
