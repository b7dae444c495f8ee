//! Lifecycle hooks: commands, HTTP requests and sleeps at the start and end of a container.

use std::time::Duration;

use api_types::core_v1::{Container, LifecycleHandler, Pod};

use super::{PodRuntime, text};
use crate::interfaces::Level;
use crate::metrics::KubeletMetrics;
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

/// Counts a sleep that is dropped before its time.
struct CutSleep<'a>(&'a KubeletMetrics);

impl Drop for CutSleep<'_> {
    fn drop(&mut self) {
        self.0.sleeps_cut.with(&[]).inc();
    }
}

impl PodRuntime {
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
            let cut = CutSleep(&self.metrics);
            tokio::time::sleep(Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or(0))).await;
            std::mem::forget(cut);
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
