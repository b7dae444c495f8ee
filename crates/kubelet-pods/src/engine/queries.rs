//! What the rest of the kubelet asks about pods, and the one thing it may demand: that a pod goes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Container, ContainerStatus, Pod, PodStatus};
use node_api::cri::v1::{ContainerFilter, ContainerState, ContainerStateValue, StatusResponse};
use tokio::sync::broadcast;

use super::state::Input;
use super::sync_loop::LoopStuck;
use super::{Inner, PodEngine};
use crate::interfaces::{Level, SideError};
use crate::pod::containers::member;
use crate::pod::news::PodNews;
use crate::pod::status::Forced;
use crate::runtime::labels;
use crate::runtime::record::{ContainerRecord, RecordState, RuntimePod};
use crate::runtime::text::full_name;

/// How often a pod is looked at of which nothing is to be left.
const CLEAN_LOOK: Duration = Duration::from_millis(100);
/// A pod that is put to its end by waits at least this long for it.
const MIN_KILL_WAIT: Duration = Duration::from_secs(10);

/// Why a container or sandbox cannot be had; the texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// No such pod or container, or nothing of it yet.
    #[error("{0}")]
    NotFound(String),
    /// It is there but cannot serve.
    #[error("{0}")]
    NotAvailable(String),
}

/// Where a container's output is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSource {
    /// The live file, in CRI's format.
    pub path: PathBuf,
    /// The instance that wrote it.
    pub container_id: String,
}

/// Why a pod must go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// `status.reason`, such as `Evicted`; also the event's.
    pub reason: String,
    /// `status.message`.
    pub message: String,
    /// Seconds for its containers; `None` for the pod's own.
    pub grace: Option<i64>,
    /// The message of the `DisruptionTarget` condition, where one is due.
    pub condition_message: Option<String>,
    /// What else the event carries.
    pub annotations: BTreeMap<String, String>,
}

impl PodEngine {
    /// The configured pods with the kubelet's own statuses; mirrors are left out.
    #[must_use]
    pub fn pods(&self) -> Vec<Arc<Pod>> {
        self.inner.store.all().into_iter().map(|pod| self.with_status(pod)).collect()
    }

    /// A pod by name.
    #[must_use]
    pub fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.inner.store.by_full_name(&format!("{name}_{namespace}")).map(|pod| self.with_status(pod))
    }

    /// A pod by uid, also by its mirror's.
    #[must_use]
    pub fn pod_by_uid(&self, uid: &str) -> Option<Arc<Pod>> {
        self.inner.store.translated(uid).map(|pod| self.with_status(pod))
    }

    /// What becomes of pods from now on.
    #[must_use]
    pub fn follow_pods(&self) -> broadcast::Receiver<PodNews> {
        self.inner.herald.follow()
    }

    /// The kubelet's own status of a pod, by its uid.
    #[must_use]
    pub fn status(&self, uid: &str) -> Option<Arc<PodStatus>> {
        self.inner.board.get(uid)
    }

    fn with_status(&self, pod: Arc<Pod>) -> Arc<Pod> {
        match self.inner.board.get(&pod.metadata.uid) {
            Some(status) => {
                let Pod { metadata, spec, .. } = &*pod;
                Arc::new(Pod { metadata: metadata.clone(), spec: spec.clone(), status: PodStatus::clone(&status) })
            }
            None => pod,
        }
    }

    /// What runs, as far as the runtime alone tells.
    #[expect(clippy::unused_async, reason = "part of the interface; the runtime's records are in memory today")]
    pub async fn running_pods(&self) -> Vec<Pod> {
        let all = self.inner.runtime.cache.all();
        all.iter().filter(|seen| seen.is_alive()).map(|seen| of_runtime(seen)).collect()
    }

    /// Admitted pods that have not ended: their requests are taken.
    #[must_use]
    pub fn active_pods(&self) -> Vec<Arc<Pod>> {
        self.inner.workers.active()
    }

    /// What the runtime showed last of a pod; `None` where it has nothing of it.
    #[must_use]
    pub fn seen(&self, uid: &str) -> Option<Arc<RuntimePod>> {
        self.inner.runtime.cache.get(uid)
    }

    /// Whether complete looks at the runtime succeed, so that what it showed last can be relied on.
    #[must_use]
    pub fn sees_runtime(&self) -> bool {
        self.inner.pleg.health().is_ok()
    }

    /// The running instance of a container, asked of the runtime now: it may have been started anew a moment ago.
    ///
    /// # Errors
    /// There is none, or the runtime does not tell.
    pub async fn container_id(&self, pod: &Pod, container: &str) -> Result<String, LookupError> {
        let own = [(labels::POD_UID, pod.metadata.uid.as_str()), (labels::CONTAINER_NAME, container)];
        let running = ContainerStateValue { state: ContainerState::ContainerRunning.into() };
        let filter = ContainerFilter {
            state: Some(running),
            label_selector: own.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..ContainerFilter::default()
        };
        let found = self.inner.runtime.runtime.list_containers(Some(filter)).await;
        let found = found.map_err(|error| LookupError::NotAvailable(error.to_string()))?;
        let newest = found.into_iter().max_by_key(|container| container.created_at);
        let missing = || LookupError::NotFound(format!("container not found ({container:?})"));
        newest.map(|container| container.id).ok_or_else(missing)
    }

    /// The pod's ready sandbox.
    ///
    /// # Errors
    /// There is none.
    pub fn sandbox_id(&self, pod: &Pod) -> Result<String, LookupError> {
        let seen = self.inner.runtime.cache.get(&pod.metadata.uid);
        let found = seen.as_ref().and_then(|seen| seen.sandboxes.iter().find(|sandbox| sandbox.ready));
        let missing = || LookupError::NotFound(format!("pod not found ({:?})", full_name(pod)));
        found.map(|sandbox| sandbox.id.clone()).ok_or_else(missing)
    }

    /// Where to read a container's output: of the current instance, or of the one before.
    ///
    /// # Errors
    /// There is none yet, or none any more.
    pub fn log_source(&self, pod: &Pod, container: &str, previous: bool) -> Result<LogSource, LookupError> {
        let name = &pod.metadata.name;
        if member(pod, container).is_none() {
            let text = format!("container {container:?} in pod {name:?} is not available");
            return Err(LookupError::NotFound(text));
        }
        let status = self.inner.board.get(&pod.metadata.uid);
        let status = status.as_deref().unwrap_or(&pod.status);
        let lists = [&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses];
        let own = lists.into_iter().flatten().find(|own| own.name == container);
        let seen = self.inner.runtime.cache.get(&pod.metadata.uid).unwrap_or_default();
        let records: Vec<&ContainerRecord> = seen.records(container).collect();
        let record = if previous {
            let ended = records.iter().filter(|record| record.state == RecordState::Exited);
            let wanted = if records.first().is_some_and(|first| first.state == RecordState::Exited) && waits(own) {
                ended.clone().next()
            } else {
                records.iter().skip(1).find(|record| record.state == RecordState::Exited)
            };
            let text = format!("previous terminated container {container:?} in pod {name:?} not found");
            wanted.ok_or(LookupError::NotAvailable(text))?
        } else {
            // Where the newest one never ran, the one before it is read.
            let usable = records.iter().find(|record| record.state != RecordState::Created);
            usable.ok_or_else(|| LookupError::NotAvailable(why_no_logs(container, name, own)))?
        };
        Ok(LogSource { path: PathBuf::from(&record.log_path), container_id: record.id.clone() })
    }

    /// Whether a container still runs, asked of the runtime now.
    pub async fn container_running(&self, id: &str) -> bool {
        let status = self.inner.runtime.runtime.container_status(id, false).await;
        status
            .ok()
            .and_then(|answer| answer.status)
            .is_some_and(|status| RecordState::of(status.state) == RecordState::Running)
    }

    /// Makes a pod fail and waits until its containers are stopped.
    ///
    /// # Errors
    /// The pod is unknown, or took too long (it is being stopped all the same).
    pub async fn evict(&self, uid: &str, eviction: Eviction) -> Result<(), SideError> {
        self.inner.evict(uid, eviction).await
    }

    /// Makes a pod fail without an event about it, and waits until nothing of it is left.
    ///
    /// # Errors
    /// The pod is unknown, or took too long (it is being stopped all the same).
    pub async fn end(&self, uid: &str, why: Eviction) -> Result<(), SideError> {
        self.inner.stop(uid, why, false).await?;
        while !self.inner.workers.is_finished(uid) {
            tokio::time::sleep(CLEAN_LOOK).await;
        }
        Ok(())
    }

    /// `/healthz` check `syncloop`.
    ///
    /// # Errors
    /// The loop is stuck.
    pub fn sync_loop_health(&self) -> Result<(), LoopStuck> {
        self.inner.loop_health()
    }

    /// What keeps the node from being ready, as far as the runtime is concerned.
    #[must_use]
    pub fn ready_errors(&self) -> Vec<String> {
        let mut out = self.inner.runtime_errors();
        out.extend(self.inner.health.network_error());
        out
    }

    /// The runtime's last good answer about itself.
    #[must_use]
    pub fn runtime_status(&self) -> Option<StatusResponse> {
        self.inner.health.status()
    }

    /// Whether every source has delivered its pods at least once.
    #[must_use]
    pub fn sources_ready(&self) -> bool {
        self.inner.sources_ready()
    }
}

impl Inner {
    /// Why the runtime cannot be used, if it cannot.
    pub(super) fn runtime_errors(&self) -> Vec<String> {
        self.health.runtime_errors(self.pleg.health())
    }

    pub(super) async fn evict(&self, uid: &str, eviction: Eviction) -> Result<(), SideError> {
        let Some(pod) = self.workers.pod(uid) else {
            return Err(SideError::new(format!("pod {uid:?} is not running")));
        };
        let (about, annotations) = (client::object_reference(&*pod), &eviction.annotations);
        self.side.events.annotated(about, annotations, Level::Warning, &eviction.reason, &eviction.message);
        self.stop(uid, eviction, true).await
    }

    /// Makes a pod fail and waits until its containers are stopped.
    async fn stop(&self, uid: &str, eviction: Eviction, evict: bool) -> Result<(), SideError> {
        let Some(pod) = self.workers.pod(uid) else {
            return Err(SideError::new(format!("pod {uid:?} is not running")));
        };
        let Some(stopped) = self.workers.stopped(uid) else { return Ok(()) };
        let forced =
            Forced { reason: eviction.reason, message: eviction.message, disruption: eviction.condition_message };
        self.workers.step(uid, Input::Kill { grace: eviction.grace, forced: Some(forced), evict });
        let grace = eviction.grace.or(pod.spec.termination_grace_period_seconds).unwrap_or(0);
        let wait = Duration::from_secs(u64::try_from(grace).unwrap_or(0)).mul_f64(1.5).max(MIN_KILL_WAIT);
        if tokio::time::timeout(wait, stopped).await.is_err() {
            let text = "Container runtime did not kill the pod within specified grace period.";
            self.runtime.pod_event(&pod, Level::Warning, "ExceededGracePeriod", text);
            return Err(SideError::new("timeout waiting to kill pod"));
        }
        Ok(())
    }
}

fn waits(status: Option<&ContainerStatus>) -> bool {
    status.is_some_and(|status| status.state.waiting.is_some())
}

/// The instance whose output a status promises: its identifier, which is empty where no instance ever was.
fn promised(status: &ContainerStatus) -> Option<&str> {
    let (state, last) = (&status.state, status.last_state.terminated.as_ref());
    let last = last.map(|ended| ended.container_id.as_str());
    if state.running.is_some() {
        return Some(&status.container_id);
    }
    let ended = state.terminated.as_ref().map(|ended| ended.container_id.as_str());
    match ended {
        Some("") => last.or(ended),
        Some(id) => Some(id),
        None => last,
    }
}

fn why_no_logs(container: &str, pod: &str, status: Option<&ContainerStatus>) -> String {
    let place = format!("container {container:?} in pod {pod:?}");
    match status.and_then(promised) {
        Some("") => return format!("{place} is terminated"),
        Some(id) => return format!("unable to retrieve container logs for {id}"),
        None => {}
    }
    let Some(waiting) = status.and_then(|status| status.state.waiting.as_ref()) else {
        return format!("{place} is waiting to start - no logs yet");
    };
    match waiting.reason.as_str() {
        "ErrImagePull" => format!("{place} is waiting to start: image can't be pulled"),
        "ImagePullBackOff" => format!("{place} is waiting to start: trying and failing to pull image"),
        "" => format!("{place} is waiting to start - no logs yet"),
        reason => format!("{place} is waiting to start: {reason}"),
    }
}

/// A pod with what its containers' labels tell.
fn of_runtime(seen: &RuntimePod) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.uid.clone_from(&seen.uid);
    pod.metadata.name.clone_from(&seen.name);
    pod.metadata.namespace.clone_from(&seen.namespace);
    pod.spec.containers = seen
        .running()
        .map(|record| Container { name: record.name.clone(), image: record.image.clone(), ..Container::default() })
        .collect();
    pod
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_told_why_there_is_no_log() {
        let place = "container \"main\" in pod \"web\"";
        let ended = |id: &str| json!({"exitCode": 1, "containerID": id});
        for (state, last, expected) in [
            (json!({}), json!({}), format!("{place} is waiting to start - no logs yet")),
            (json!({"waiting": {}}), json!({}), format!("{place} is waiting to start - no logs yet")),
            (
                json!({"waiting": {"reason": "ErrImagePull"}}),
                json!({}),
                format!("{place} is waiting to start: image can't be pulled"),
            ),
            (
                json!({"waiting": {"reason": "ImagePullBackOff"}}),
                json!({}),
                format!("{place} is waiting to start: trying and failing to pull image"),
            ),
            (
                json!({"waiting": {"reason": "PodInitializing"}}),
                json!({}),
                format!("{place} is waiting to start: PodInitializing"),
            ),
            (json!({"running": {}}), json!({}), "unable to retrieve container logs for cri://now".to_owned()),
            (
                json!({"terminated": ended("cri://a")}),
                json!({"terminated": ended("cri://b")}),
                "unable to retrieve container logs for cri://a".to_owned(),
            ),
            (
                json!({"terminated": ended("")}),
                json!({"terminated": ended("cri://b")}),
                "unable to retrieve container logs for cri://b".to_owned(),
            ),
            (json!({"terminated": ended("")}), json!({}), format!("{place} is terminated")),
            (
                json!({"waiting": {"reason": "CrashLoopBackOff"}}),
                json!({"terminated": ended("cri://b")}),
                "unable to retrieve container logs for cri://b".to_owned(),
            ),
            (json!({"waiting": {}}), json!({"terminated": ended("")}), format!("{place} is terminated")),
        ] {
            let status = json!({"name": "main", "ready": false, "restartCount": 0, "image": "", "imageID": "",
                "containerID": "cri://now", "state": state, "lastState": last});
            let status: ContainerStatus = api_machinery::object::from_value(&status).unwrap();
            assert_eq!(why_no_logs("main", "web", Some(&status)), expected, "{state} {last}");
        }
        assert_eq!(why_no_logs("main", "web", None), format!("{place} is waiting to start - no logs yet"));
    }
}
