//! Stopping containers and pods: grace periods, preStop hooks, the order among sidecars.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Container, Lifecycle, LifecycleHandler, Pod};
use base::CancellationToken;
use component_helpers::pod_state::is_sidecar;
use futures_util::future::join_all;
use node_api::cri::CriError;
use tokio::time::Instant;

use super::hooks::{Moment, Underway};
use super::record::{ContainerRecord, RuntimePod};
use super::{PodRuntime, labels};
use crate::interfaces::Level;
use crate::pod::containers::{Role, field_path, member};
use crate::probe::ProbeKind;

/// The runtime is never given less than this to stop a container.
const MIN_GRACE: Duration = Duration::from_secs(2);

/// Whose grace period counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grace {
    OfPod,
    /// The failing probe's own, where it has one.
    OfProbe(ProbeKind),
    /// This many seconds.
    Seconds(i64),
}

/// What could not be stopped. It is tried again: a pod has ended only once all of it has.
#[derive(Debug, thiserror::Error)]
pub enum KillError {
    #[error("failed to \"KillContainer\" for {name:?} with KillContainerError: {source:?}")]
    Container { name: String, source: CriError },
    #[error(transparent)]
    Sandbox(CriError),
    #[error("{}", joined(.0))]
    Several(Vec<Self>),
}

fn joined(errors: &[KillError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What a container waits for before it is stopped.
#[derive(Default)]
struct Turn {
    /// Cancelled once this container has stopped.
    done: CancellationToken,
    /// Those that must have stopped before.
    after: Vec<CancellationToken>,
}

impl PodRuntime {
    /// Stops all running containers and all sandboxes of a pod. Whoever drops this for a sooner end cancels `interrupt` before.
    pub async fn kill_pod(
        &self,
        pod: &Arc<Pod>,
        seen: &RuntimePod,
        grace: Grace,
        interrupt: Option<&CancellationToken>,
    ) -> Result<(), KillError> {
        let mut turns = turns(pod, seen);
        let kills = seen.running().map(|record| {
            let turn = turns.remove(&record.id).unwrap_or_default();
            self.kill_in_turn(pod, record, String::new(), grace, turn, interrupt)
        });
        let mut errors: Vec<KillError> = join_all(kills).await.into_iter().filter_map(Result::err).collect();
        for sandbox in &seen.sandboxes {
            match self.runtime.stop_pod_sandbox(&sandbox.id).await {
                Err(error) if !error.is_not_found() => errors.push(KillError::Sandbox(error)),
                _ => {}
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(KillError::Several(errors)) }
    }

    /// Stops one container. An empty message means the usual one.
    pub async fn kill_container(
        &self,
        pod: &Arc<Pod>,
        record: &ContainerRecord,
        message: &str,
        grace: Grace,
    ) -> Result<(), KillError> {
        self.kill_in_turn(pod, record, message.to_owned(), grace, Turn::default(), None).await
    }

    async fn kill_in_turn(
        &self,
        pod: &Arc<Pod>,
        record: &ContainerRecord,
        message: String,
        grace: Grace,
        turn: Turn,
        interrupt: Option<&CancellationToken>,
    ) -> Result<(), KillError> {
        // However this ends, those that wait for it go on.
        let _done = turn.done.drop_guard();
        let began = Instant::now();
        let limit = grace_period(pod, record, grace);
        let found = member(pod, &record.name);
        let role = found.as_ref().map_or(Role::Regular, |member| member.role);
        let message = if message.is_empty() { format!("Stopping container {}", record.name) } else { message };
        let about = self.about(pod, field_path(role, &record.name));
        self.side.events.event(about.clone(), Level::Normal, "Killing", &message);
        if let Some(member) = found
            && !limit.is_zero()
            && let Some(hook) = pre_stop(&member.container)
        {
            let ips = self.cache.get(&pod.metadata.uid).map(|seen| seen.ips.clone()).unwrap_or_default();
            let underway = Underway { runtime: self, about: &about, hook, interrupt };
            let ran = tokio::time::timeout(limit, self.run_hook(pod, &member.container, &record.id, hook, &ips)).await;
            // It has ended, or has had its time.
            std::mem::forget(underway);
            if let Ok(Err(error)) = ran {
                tracing::info!(pod = %pod.metadata.name, container = %record.name, %error, "PreStop hook failed");
                self.hook_failed(&about, Moment::PreStop);
            }
        }
        let left = |whole: Duration| limit.saturating_sub(Duration::from_secs(whole.as_secs()));
        let waiting = join_all(turn.after.iter().map(CancellationToken::cancelled));
        // When the grace period is over it is stopped out of turn.
        let _ = tokio::time::timeout(left(began.elapsed()), waiting).await;
        let left = left(began.elapsed()).max(MIN_GRACE);
        match self.runtime.stop_container(&record.id, left).await {
            Err(error) if !error.is_not_found() => {
                Err(KillError::Container { name: record.name.clone(), source: error })
            }
            _ => Ok(()),
        }
    }
}

/// With sidecars: all regular containers stop first, then the sidecars, the last one of the spec first.
fn turns(pod: &Pod, seen: &RuntimePod) -> BTreeMap<String, Turn> {
    let sidecars: Vec<&Container> = pod.spec.init_containers.iter().filter(|container| is_sidecar(container)).collect();
    if sidecars.is_empty() {
        return BTreeMap::new();
    }
    let position = |record: &ContainerRecord| sidecars.iter().position(|container| container.name == record.name);
    let mut running: Vec<(&ContainerRecord, Option<usize>)> =
        seen.running().map(|record| (record, position(record))).collect();
    // Regular ones first, then the sidecars from the last to the first.
    running.sort_by_key(|(_, position)| position.map_or(0, |position| sidecars.len() - position));
    let mut out = BTreeMap::new();
    let mut regular: Vec<CancellationToken> = Vec::new();
    let mut all: Vec<CancellationToken> = Vec::new();
    for (record, position) in running {
        let done = CancellationToken::new();
        let after = if position.is_some() { all.clone() } else { Vec::new() };
        if position.is_none() {
            regular.push(done.clone());
        }
        all.push(done.clone());
        out.insert(record.id.clone(), Turn { done, after });
    }
    out
}

fn pre_stop(container: &Container) -> Option<&LifecycleHandler> {
    container.lifecycle.as_ref()?.pre_stop.as_ref()
}

/// How long a container has, before what hooks and waiting take of it.
fn grace_period(pod: &Pod, record: &ContainerRecord, grace: Grace) -> Duration {
    let probe_grace = |kind: ProbeKind| {
        let member = member(pod, &record.name)?;
        kind.of(&member.container)?.termination_grace_period_seconds
    };
    let of_pod = pod.metadata.deletion_grace_period_seconds;
    let seconds = match grace {
        Grace::Seconds(seconds) => Some(seconds),
        Grace::OfProbe(kind) => of_pod.or_else(|| probe_grace(kind)).or(pod.spec.termination_grace_period_seconds),
        Grace::OfPod => of_pod.or(pod.spec.termination_grace_period_seconds),
    };
    seconds.map_or(MIN_GRACE, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// The pod behind containers that only the runtime knows, as far as they tell.
pub fn orphan(seen: &RuntimePod) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.uid.clone_from(&seen.uid);
    pod.metadata.name.clone_from(&seen.name);
    pod.metadata.namespace.clone_from(&seen.namespace);
    for record in &seen.containers {
        if pod.spec.containers.iter().any(|container| container.name == record.name) {
            continue;
        }
        let number = |name: &str| record.annotation(name).parse::<i64>().ok();
        pod.spec.termination_grace_period_seconds =
            pod.spec.termination_grace_period_seconds.or(number(labels::TERMINATION_GRACE));
        pod.metadata.deletion_grace_period_seconds =
            pod.metadata.deletion_grace_period_seconds.or(number(labels::DELETION_GRACE));
        let mut container =
            Container { name: record.name.clone(), image: record.image.clone(), ..Container::default() };
        let hook = record.annotation(labels::PRE_STOP);
        if let Ok((hook, _)) = api_machinery::object::from_json::<LifecycleHandler>(hook.as_bytes()) {
            container.lifecycle = Some(Lifecycle { pre_stop: Some(hook), ..Lifecycle::default() }.into());
        }
        pod.spec.containers.push(container);
    }
    pod
}
