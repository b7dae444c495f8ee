//! Carrying a plan out: kill, make the sandbox, start containers in order.

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use base::CancellationToken;
use node_api::cri::v1::{PodSandboxConfig, PodSandboxStatus};
use tokio::time::Instant;

use super::PodRuntime;
use super::cache::Hold;
use super::failure::{Failure, WaitingReason};
use super::kill::{Grace, KillError};
use super::plan::{Plan, ProbeResults, plan};
use super::record::{RecordState, RuntimePod, SandboxRecord};
use super::registry_auth::Keyring;
use super::sandbox;
use super::security::Defaults;
use super::starts::Kind;
use super::sync_error::{SandboxError, SyncError};
use crate::interfaces::Level;
use crate::pod::containers::{Member, Role, member};

/// How a sync of a pod with the runtime went.
#[derive(Default)]
pub struct PodSyncResult {
    /// Whether anything was done.
    pub acted: bool,
    /// Whether what comes next must not wait: containers were removed to begin anew.
    pub again: bool,
    /// What could not be done.
    pub errors: Vec<SyncError>,
    /// All that the runtime has of the pod, where it had nothing before.
    pub made: Option<Made>,
}

/// What was made of a pod of which the runtime had nothing.
pub struct Made {
    /// As it was right after it was made.
    pub sandbox: PodSandboxStatus,
    /// The ids of those that were started.
    pub containers: Vec<String>,
    /// Others may look once this is dropped.
    _hold: Option<Hold>,
}

#[cfg(test)]
impl Made {
    pub fn of(sandbox: PodSandboxStatus, containers: Vec<String>) -> Self {
        Self { sandbox, containers, _hold: None }
    }
}

/// What a sync did.
#[derive(Default)]
struct Done {
    errors: Vec<SyncError>,
    made: Option<Made>,
}

impl PodSyncResult {
    /// After how long the first of what failed is worth another try, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.errors.iter().filter_map(SyncError::retry_after).min()
    }
}

/// What a sync goes by, beside the pod and what the runtime has of it.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    pub results: &'a (dyn ProbeResults + Sync),
    pub keyring: &'a Keyring,
    /// Cancelled when the pod is to end: nobody waits for its images and hooks any more, which may take for ever.
    pub interrupt: &'a CancellationToken,
    /// How often a container was started anew as the pod's status has it, where the runtime knows nothing of it.
    pub restarts: &'a (dyn Fn(&str) -> i32 + Sync),
    /// Told once a new sandbox is up.
    pub on_sandbox: &'a (dyn Fn(&RuntimePod) + Sync),
}

/// A sandbox that containers can be started in.
pub struct ReadySandbox {
    pub id: String,
    pub config: PodSandboxConfig,
    pub ips: Vec<String>,
    /// The handler of the pod's RuntimeClass; empty for the default.
    pub handler: String,
    /// What the runtime says of it, where it was made just now.
    made: Option<PodSandboxStatus>,
}

impl PodRuntime {
    /// Brings the runtime closer to the pod's spec. Failures of containers are remembered for the pod's status.
    pub async fn sync(&self, pod: &Arc<Pod>, seen: &RuntimePod, terms: Terms<'_>) -> PodSyncResult {
        let actions = plan(pod, seen, terms.results);
        let acted = !actions.is_idle();
        let done = self.carry_out(pod, seen, &actions, terms).await;
        let Done { errors, made } = done.unwrap_or_else(|error| Done { errors: vec![error], made: None });
        PodSyncResult { acted, again: !actions.remove.is_empty(), errors, made }
    }

    /// What fails ends it, but for containers that do without each other: their failures are given back together.
    async fn carry_out(
        &self,
        pod: &Arc<Pod>,
        seen: &RuntimePod,
        actions: &Plan,
        terms: Terms<'_>,
    ) -> Result<Done, SyncError> {
        self.stop_first(pod, seen, actions).await?;
        if actions.kill_pod && !actions.create_sandbox {
            return Ok(Done::default());
        }
        if !actions.remove.is_empty() {
            self.remove_all(pod, seen, actions).await?;
            return Ok(Done::default());
        }
        self.prune_init(pod, seen, actions).await;
        if actions.is_idle() {
            return Ok(Done::default());
        }
        // The first of several may be of use to somebody while the others are on their way.
        let is_soon_done = seen.is_empty() && actions.starts().count() == 1;
        let hold = is_soon_done.then(|| self.cache.hold(&pod.metadata.uid));
        let Some(mut sandbox) = self.ready_sandbox(pod, seen, actions, terms).await? else {
            return Ok(Done::default());
        };
        let status = sandbox.made.take().filter(|_| seen.is_empty());
        let (containers, errors) = self.start_all(pod, seen, actions, terms, &sandbox).await;
        // Of what failed or was broken off there may be something.
        let is_whole = errors.is_empty() && !terms.interrupt.is_cancelled();
        let made = status.filter(|_| is_whole).map(|sandbox| Made { sandbox, containers, _hold: hold });
        Ok(Done { errors, made })
    }

    /// Stops what the plan wants stopped.
    async fn stop_first(&self, pod: &Arc<Pod>, seen: &RuntimePod, actions: &Plan) -> Result<(), KillError> {
        if actions.kill_pod {
            if actions.create_sandbox && actions.sandbox_id.is_some() {
                let text = "Pod sandbox changed, it will be killed and re-created.";
                self.pod_event(pod, Level::Normal, "SandboxChanged", text);
            }
            self.kill_pod(pod, seen, Grace::OfPod, None).await?;
            if actions.create_sandbox {
                self.remove_init_records(pod, seen).await;
            }
            return Ok(());
        }
        for kill in &actions.kill {
            let Some(record) = seen.containers.iter().find(|record| record.id == kill.id) else { continue };
            let grace = kill.probe.map_or(Grace::OfPod, Grace::OfProbe);
            self.kill_container(pod, record, &kill.message, grace).await?;
        }
        Ok(())
    }

    /// Removes instances one after the other, so that all containers begin anew. Their logs stay.
    async fn remove_all(&self, pod: &Arc<Pod>, seen: &RuntimePod, actions: &Plan) -> Result<(), SyncError> {
        for id in &actions.remove {
            let Some(record) = seen.containers.iter().find(|record| record.id == *id) else { continue };
            if matches!(record.state, RecordState::Running | RecordState::Unknown) {
                self.kill_container(pod, record, "killing", Grace::Seconds(0)).await?;
            }
            let removed = self.runtime.remove_container(id).await;
            removed.map_err(|source| SyncError::Remove { name: record.name.clone(), source })?;
        }
        Ok(())
    }

    /// Forgets all init containers, so that a new sandbox starts with the first.
    async fn remove_init_records(&self, pod: &Pod, seen: &RuntimePod) {
        for container in &pod.spec.init_containers {
            for record in seen.records(&container.name) {
                if let Err(error) = self.runtime.remove_container(&record.id).await {
                    tracing::warn!(pod = %pod.metadata.name, container = %record.name, %error, "Removing an init container failed");
                }
            }
        }
    }

    /// Keeps the newest ended instance of each init container, so that restarts do not pile up.
    async fn prune_init(&self, pod: &Pod, seen: &RuntimePod, actions: &Plan) {
        if actions.create_sandbox {
            return;
        }
        for name in &actions.start_init {
            for record in seen.records(name).filter(|record| !record.is_running()).skip(1) {
                if let Err(error) = self.runtime.remove_container(&record.id).await {
                    tracing::warn!(pod = %pod.metadata.name, container = %name, %error, "Removing an old init container failed");
                }
            }
        }
    }

    /// The sandbox to start in, made if need be. `None` where the pod is going anyway.
    async fn ready_sandbox(
        &self,
        pod: &Arc<Pod>,
        seen: &RuntimePod,
        actions: &Plan,
        terms: Terms<'_>,
    ) -> Result<Option<ReadySandbox>, SyncError> {
        let failed = |error: SandboxError| {
            let error = SyncError::from(error);
            self.pod_event(pod, Level::Warning, "FailedCreatePodSandBox", &error.to_string());
            error
        };
        if actions.create_sandbox {
            tokio::select! {
                biased;
                () = terms.interrupt.cancelled() => return Ok(None),
                prepared = self.prepare_claims(pod) => prepared?,
            }
        }
        let setup = self.side.setup.sandbox(pod).await.map_err(|error| failed(error.into()))?;
        let logs = sandbox::log_directory(&self.settings.pod_logs_dir, pod);
        let seccomp_root = self.settings.root_dir.join("seccomp");
        let defaults = self.security_defaults(pod, &seccomp_root);
        let config = sandbox::config(pod, actions.attempt, &setup, &logs, &defaults);
        if let (false, Some(id)) = (actions.create_sandbox, &actions.sandbox_id) {
            let (id, ips, handler) = (id.clone(), seen.ips.clone(), setup.runtime_handler);
            return Ok(Some(ReadySandbox { id, config, ips, handler, made: None }));
        }
        make_log_directory(&logs).map_err(|error| failed(SandboxError::LogDirectory(error)))?;
        let Some(turn) = self.starts.turn_of(pod, Kind::Sandbox, terms.interrupt).await else { return Ok(None) };
        let began = Instant::now();
        let made = self.runtime.run_pod_sandbox(config.clone(), &setup.runtime_handler).await;
        drop(turn);
        self.metrics.sandbox(&setup.runtime_handler, began.elapsed(), made.is_ok());
        if pod.spec.host_users == Some(false) {
            self.metrics.user_namespaced_sandbox(made.is_ok());
        }
        let id = match made {
            Ok(id) => id,
            // The pod was asked to go while the sandbox was made: nobody wants to hear of it.
            Err(_) if pod.metadata.deletion_timestamp.is_some() => return Ok(None),
            Err(error) => return Err(failed(error.into())),
        };
        let status = self.runtime.pod_sandbox_status(&id, false).await.map_err(|error| {
            let error = SyncError::SandboxStatus(error);
            self.pod_event(pod, Level::Warning, "FailedPodSandBoxStatus", &error.to_string());
            error
        })?;
        let made = status.status;
        let record = made.as_ref().map(SandboxRecord::from_status);
        let ips = record.as_ref().map(|record| record.ips.clone()).unwrap_or_default();
        let sandboxes = record.into_iter().chain(seen.sandboxes.iter().cloned()).collect();
        (terms.on_sandbox)(&RuntimePod { sandboxes, ips: ips.clone(), ..seen.clone() });
        Ok(Some(ReadySandbox { id, config, ips, handler: setup.runtime_handler, made }))
    }

    /// Has the drivers of the pod's claims make them ready.
    async fn prepare_claims(&self, pod: &Arc<Pod>) -> Result<(), SyncError> {
        let prepared = match &self.side.claims {
            Some(claims) => claims.prepare(pod).await.map_err(SyncError::Claims),
            None if pod.spec.resource_claims.is_empty() => Ok(()),
            None => Err(SyncError::NoClaims),
        };
        prepared.inspect_err(|error| {
            let text = format!("Failed to prepare dynamic resources: {error}");
            self.pod_event(pod, Level::Warning, "FailedPrepareDynamicResources", &text);
        })
    }

    pub fn security_defaults<'a>(&self, pod: &Pod, seccomp_root: &'a std::path::Path) -> Defaults<'a> {
        Defaults {
            seccomp_default: self.settings.seccomp_default,
            seccomp_root,
            volume_groups: self.side.volumes.supplemental_groups(pod),
        }
    }

    /// Ephemeral containers, then init containers, then regular ones. A failed init container ends the run; a failed
    /// sidecar or regular container does not. Gives back the ids of those that were started, and what failed.
    async fn start_all(
        &self,
        pod: &Arc<Pod>,
        seen: &RuntimePod,
        actions: &Plan,
        terms: Terms<'_>,
        sandbox: &ReadySandbox,
    ) -> (Vec<String>, Vec<SyncError>) {
        let (mut ids, mut errors) = (Vec::new(), Vec::new());
        for name in actions.starts() {
            let Some(member) = member(pod, name) else { continue };
            let started = self.start_and_remember(pod, &member, seen, terms, sandbox).await;
            if terms.interrupt.is_cancelled() {
                break;
            }
            match started {
                Ok(id) => ids.push(id),
                Err(failure) => {
                    errors.push(SyncError::Container { name: name.clone(), failure });
                    if member.role == Role::Init {
                        break;
                    }
                }
            }
        }
        (ids, errors)
    }

    async fn start_and_remember(
        &self,
        pod: &Arc<Pod>,
        member: &Member<'_>,
        seen: &RuntimePod,
        terms: Terms<'_>,
        sandbox: &ReadySandbox,
    ) -> Result<String, Failure> {
        let (uid, name) = (&pod.metadata.uid, &member.container.name);
        let started = self.start(pod, member, seen, terms, sandbox).await;
        if terms.interrupt.is_cancelled() {
            // What was broken off has not failed.
            return started;
        }
        let failure = started.as_ref().err().map(|failure| failure.reason);
        if failure.is_none_or(WaitingReason::is_attempt) {
            self.metrics.container(kind_of(member.role), failure.map(WaitingReason::name));
        }
        match &started {
            Ok(_) => self.failures.clear(uid, name),
            Err(failure) => self.failures.set(uid, name, failure.clone()),
        }
        started
    }
}

/// The type of a container as metrics call it.
fn kind_of(role: Role) -> &'static str {
    match role {
        Role::Init | Role::Sidecar => "init_container",
        Role::Regular => "container",
        Role::Ephemeral => "ephemeral_container",
    }
}

fn make_log_directory(path: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(path)
}
