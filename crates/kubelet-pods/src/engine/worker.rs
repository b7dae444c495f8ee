//! One pod's worker: sync until the pod ends or must go, then stop its containers, then take its resources away.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Pod, PodStatus};
use base::CancellationToken;
use base::trace::Span;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing_otlp::traced;

use super::Inner;
use super::state::{Input, Stage, WorkerState};
use super::workers::Job;
use crate::interfaces::{Level, MountError, SideError};
use crate::pod::status::{self, Forced, Inputs, ProbeView, Retry, Shown, is_terminal};
use crate::pod::{is_static, mirror};
use crate::probe::{ProbeKind, ProbeResult, Probes};
use crate::runtime::docker_config::CredentialsError;
use crate::runtime::kill::Grace;
use crate::runtime::record::RuntimePod;
use crate::runtime::registry_auth::Keyring;
use crate::runtime::sync::{PodSyncResult, Terms};

/// Time between two tries after an error that says nothing about when to try again.
const RETRY: Duration = Duration::from_secs(10);
const NETWORK_RETRY: Duration = Duration::from_secs(1);
/// How old what is known of the runtime may be for a worker that has changed nothing since: complete looks, one each second,
/// have shown what others did.
const FRESH: Duration = Duration::from_secs(2);
/// How long volumes may take to come or go before the attempt counts as failed.
const VOLUMES_LIMIT: Duration = Duration::from_secs(123);
/// The reason of pods whose volumes are too many for the node.
const AT_LIMIT: &str = "VolumeAttachmentLimitExceeded";
/// How often a static pod looks whether the older one of its name is gone.
const STATIC_WAIT: Duration = Duration::from_secs(1);

/// What a run of a worker came to.
enum Ran {
    /// Run again after this, or earlier when woken.
    Again(Duration),
    /// The pod's state has moved on; run at once.
    Moved(Input),
}

/// What a worker has done so far.
#[derive(Default)]
struct Past {
    has_run: bool,
    /// When it changed something in the runtime last.
    changed: Option<Instant>,
}

impl Past {
    /// How new what is known of the runtime has to be; `None` before the first run.
    fn since(&self) -> Option<Instant> {
        self.has_run.then(|| self.changed.max(Instant::now().checked_sub(FRESH))).flatten()
    }

    fn changes(&mut self) {
        self.changed = Some(Instant::now());
    }
}

/// Why the credentials of a pod's images are not known.
#[derive(Debug, thiserror::Error)]
enum KeyringError {
    #[error(transparent)]
    Read(#[from] SideError),
    #[error(transparent)]
    Content(#[from] CredentialsError),
}

impl Inner {
    /// Starts the task of a new worker.
    pub(super) fn start_worker(self: &Arc<Self>, uid: &str, wake: Arc<Notify>) {
        let (me, uid) = (Arc::clone(self), uid.to_owned());
        self.tasks.spawn_cancellable("pod-worker", async move { me.work(&uid, &wake).await });
    }

    pub(super) async fn work(self: &Arc<Self>, uid: &str, wake: &Notify) {
        let mut past = Past::default();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                () = wake.notified() => {}
                () = tokio::time::sleep_until(due) => {}
            }
            let Some(job) = self.workers.job(uid) else { return };
            if job.state.stage == Stage::Finished {
                return;
            }
            if self.workers.must_wait(&job.pod) {
                due = Instant::now() + STATIC_WAIT;
                continue;
            }
            let began = Instant::now();
            // On the heap while it lasts: what a run needs at most, some 30 KiB, would be every worker's for all its life.
            let ran = Box::pin(self.run_once(uid, &job, &mut past)).await;
            self.measure_run(uid, &job, began, !past.has_run);
            past.has_run = true;
            match ran {
                Ran::Again(after) => due = Instant::now() + after,
                Ran::Moved(input) => {
                    self.workers.step(uid, input);
                    due = Instant::now();
                }
            }
        }
    }

    fn measure_run(&self, uid: &str, job: &Job, began: Instant, first: bool) {
        self.metrics.worker_duration.with(&[job.operation(first)]).observe(began.elapsed().as_secs_f64());
        if let Some(age) = self.workers.age(uid).filter(|_| first) {
            let before = age.saturating_sub(began.elapsed());
            self.metrics.worker_start.with(&[]).observe(before.as_secs_f64());
        }
    }

    async fn run_once(self: &Arc<Self>, uid: &str, job: &Job, past: &mut Past) -> Ran {
        let tracer = self.tracer.as_ref();
        let first = !past.has_run;
        let tell = |span: &mut Span| job.tell(first, span);
        if job.state.stage == Stage::Terminated {
            return traced(tracer, "syncTerminatedPod", tell, self.clean(uid, job)).await;
        }
        let seen = match self.runtime.cache.newer_than(&*self.runtime.runtime, uid, past.since()).await {
            Ok(seen) => seen,
            Err(error) => {
                let text = format!("error determining status: {error}");
                self.runtime.pod_event(&job.pod, Level::Warning, "FailedSync", &text);
                return Ran::Again(self.jittered(RETRY));
            }
        };
        match job.state.stage {
            Stage::Syncing => {
                let pod = self.allocate(&job.pod);
                let job = Job { state: job.state.clone(), pod, interrupt: job.interrupt.clone() };
                traced(tracer, "syncPod", tell, self.sync_pod(&job, &seen, past)).await
            }
            _ => {
                let ran = traced(tracer, "syncTerminatingPod", tell, self.terminate(uid, job, &seen)).await;
                past.changes();
                ran
            }
        }
    }

    async fn sync_pod(self: &Arc<Self>, job: &Job, seen: &RuntimePod, past: &mut Past) -> Ran {
        let pod = &job.pod;
        let status = self.set_status(pod, &job.state, seen, false);
        if is_terminal(&status.phase) {
            return Ran::Moved(Input::SyncedToEnd);
        }
        if !pod.spec.host_network
            && let Some(error) = self.health.network_error()
        {
            let text = format!("network is not ready: {error}");
            self.runtime.pod_event(pod, Level::Warning, "NetworkNotReady", &text);
            return Ran::Again(self.jittered(NETWORK_RETRY));
        }
        let actuated = self.actuate(pod, seen).await;
        if !matches!(actuated, Ok(false)) {
            past.changes();
        }
        if let Err(error) = actuated {
            tracing::info!(pod = %pod.metadata.name, namespace = %pod.metadata.namespace, %error, "Resizing a pod failed");
            self.set_status(pod, &job.state, seen, false);
            return Ran::Again(self.jittered(RETRY));
        }
        self.set_status(pod, &job.state, seen, false);
        if let Err(ran) = self.prepare(pod, &job.interrupt).await {
            return ran;
        }
        let keyring = match self.keyring(pod).await {
            Ok(keyring) => keyring,
            Err(error) => {
                tracing::error!(pod = %pod.metadata.name, %error, "Reading pull secrets failed");
                return Ran::Again(self.jittered(RETRY));
            }
        };
        if job.interrupt.is_cancelled() {
            return Ran::Again(Duration::ZERO);
        }
        self.probes.add(pod);
        let on_sandbox = |seen: &RuntimePod| drop(self.set_status(pod, &job.state, seen, false));
        let results = Arc::clone(self.probes.results());
        let status = self.board.get(&pod.metadata.uid).unwrap_or_default();
        let terms = Terms {
            results: &*results,
            keyring: &keyring,
            interrupt: &job.interrupt,
            restarts: &|container| status::restarts(&status, container),
            on_sandbox: &on_sandbox,
        };
        let mut result = self.runtime.sync(pod, seen, terms).await;
        let is_known = match result.made.take() {
            Some(made) if self.settings.on_demand_relists => self.pleg.look_at_new(&pod.metadata.uid, made).await,
            _ => false,
        };
        if !is_known && (result.acted || !result.errors.is_empty()) {
            past.changes();
        }
        if job.interrupt.is_cancelled() {
            return Ran::Again(Duration::ZERO);
        }
        self.conclude(job, &result, is_known).await
    }

    /// When to run again after a sync, which may be known of already; what went wrong is told.
    async fn conclude(self: &Arc<Self>, job: &Job, result: &PodSyncResult, is_known: bool) -> Ran {
        let pod = &job.pod;
        if result.errors.is_empty() {
            if result.acted && !is_known && self.settings.on_demand_relists {
                self.pleg.relist_handle().request(&pod.metadata.uid);
            }
            if result.again {
                return Ran::Again(Duration::ZERO);
            }
            return Ran::Again(self.jittered(self.settings.sync_frequency));
        }
        let errors: Vec<String> = result.errors.iter().map(ToString::to_string).collect();
        tracing::info!(pod = %pod.metadata.name, namespace = %pod.metadata.namespace, ?errors, "Error syncing pod");
        // What went wrong shows at once, not only at the next try.
        let uid = &pod.metadata.uid;
        if let Ok(seen) = self.runtime.cache.newer_than(&*self.runtime.runtime, uid, Some(Instant::now())).await {
            self.set_status(pod, &job.state, &seen, false);
        }
        let after = result.retry_after().unwrap_or_else(|| self.jittered(RETRY));
        Ran::Again(after.min(self.settings.sync_frequency))
    }

    /// What must be in place before the runtime is asked: the group, the mirror, the volumes.
    async fn prepare(&self, pod: &Arc<Pod>, interrupt: &CancellationToken) -> Result<(), Ran> {
        let began = Instant::now();
        let ensured = self.side.cgroups.ensure(pod).await;
        self.metrics.cgroup_duration.with(&["update"]).observe(began.elapsed().as_secs_f64());
        if let Err(error) = ensured {
            let text = format!("unable to ensure pod container exists: {error}");
            self.runtime.pod_event(pod, Level::Warning, "FailedCreatePodContainer", &text);
            return Err(Ran::Again(self.jittered(RETRY)));
        }
        self.reconcile_mirror(pod).await;
        let mounting = tokio::time::timeout(VOLUMES_LIMIT, self.side.volumes.mount(pod));
        let mounted = tokio::select! {
            biased;
            () = interrupt.cancelled() => return Err(Ran::Again(Duration::ZERO)),
            mounted = mounting => mounted,
        };
        let uid = &pod.metadata.uid;
        let error = match mounted {
            Ok(Ok(())) => {
                self.mounting.forget(uid);
                return Ok(());
            }
            Ok(Err(error @ MountError::Stale(_))) => {
                self.tell_mount_error(pod, &error);
                return Ok(());
            }
            Ok(Err(error)) => {
                self.tell_mount_error(pod, &error);
                error.to_string()
            }
            Err(_) => {
                if let Some(message) = self.side.volumes.at_limit(pod).await {
                    return Err(self.reject(pod, AT_LIMIT, &message));
                }
                "timed out waiting for the condition".to_owned()
            }
        };
        tracing::info!(pod = %pod.metadata.name, namespace = %pod.metadata.namespace, %error, "Mounting volumes failed");
        // What is missing is often on its way, such as the root CA's config map of a new namespace.
        self.mounting.step(uid, None, &*self.clock);
        Err(Ran::Again(self.mounting.delay(uid)))
    }

    fn tell_mount_error(&self, pod: &Pod, error: &MountError) {
        match error {
            MountError::Directories(_) => self.runtime.pod_event(pod, Level::Warning, "Failed", &error.to_string()),
            MountError::Volumes(problems) | MountError::Stale(problems) => {
                for problem in problems {
                    self.runtime.pod_event(pod, Level::Warning, problem.reason, &problem.text);
                }
            }
        }
    }

    /// The pod was admitted and cannot run here all the same.
    fn reject(&self, pod: &Pod, reason: &str, message: &str) -> Ran {
        self.metrics.refused(reason);
        tracing::info!(pod = %pod.metadata.name, namespace = %pod.metadata.namespace, reason, message, "Pod rejected");
        self.runtime.pod_event(pod, Level::Warning, reason, message);
        let message = format!("Pod was rejected: {message}");
        let forced = Some(Forced { reason: reason.to_owned(), message, disruption: None });
        Ran::Moved(Input::Kill { grace: None, forced, evict: false })
    }

    pub(super) async fn reconcile_mirror(&self, pod: &Arc<Pod>) {
        let Some(client) = self.client.as_ref().filter(|_| is_static(pod)) else { return };
        let (mirror, node) = (self.store.mirror_of(pod), self.side.node.node());
        if let Err(error) = mirror::reconcile(client, pod, mirror.as_ref(), node.as_ref()).await {
            tracing::info!(pod = %pod.metadata.name, %error, "Failed creating a mirror pod");
        }
    }

    async fn keyring(&self, pod: &Pod) -> Result<Keyring, KeyringError> {
        let mut keyring = Keyring::default();
        let mut missing = Vec::new();
        for reference in &pod.spec.image_pull_secrets {
            let found = self.side.setup.pull_secret(&pod.metadata.namespace, &reference.name).await;
            match found? {
                Some(secret) => keyring.add_secret(&secret)?,
                None => missing.push(reference.name.clone()),
            }
        }
        if !missing.is_empty() {
            let text = format!(
                "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
                missing.join(", ")
            );
            self.runtime.pod_event(pod, Level::Warning, "FailedToRetrieveImagePullSecret", &text);
        }
        keyring.add_node_files(&self.settings.root_dir);
        Ok(keyring)
    }

    async fn terminate(self: &Arc<Self>, uid: &str, job: &Job, seen: &RuntimePod) -> Ran {
        let pod = &job.pod;
        if !job.state.orphan {
            self.set_status(pod, &job.state, seen, false);
        }
        self.probes.stop_liveness_and_startup(uid);
        let grace = Grace::Seconds(job.state.grace.unwrap_or(1));
        let killed = tokio::select! {
            biased;
            // A shorter grace period begins anew.
            () = job.interrupt.cancelled() => return Ran::Again(Duration::ZERO),
            killed = self.runtime.kill_pod(pod, seen, grace, Some(&job.interrupt)) => killed,
        };
        if let Err(error) = killed {
            self.runtime.pod_event(pod, Level::Warning, "FailedKillPod", &format!("error killing pod: {error}"));
            return Ran::Again(self.jittered(RETRY));
        }
        let after = self.runtime.cache.newer_than(&*self.runtime.runtime, uid, Some(Instant::now())).await;
        let after = match after {
            Ok(after) => after,
            Err(error) => {
                tracing::warn!(pod = %pod.metadata.name, %error, "Reading a stopped pod failed");
                return Ran::Again(self.jittered(RETRY));
            }
        };
        let running: Vec<&str> = after.running().map(|record| record.name.as_str()).collect();
        if !running.is_empty() {
            tracing::error!(pod = %pod.metadata.name, ?running, "Detected running containers after a successful KillPod, CRI violation");
            return Ran::Again(self.jittered(RETRY));
        }
        // After the last container has stopped, and before the API hears of it: the devices are given to others then.
        if let Some(claims) = &self.side.claims
            && let Err(error) = claims.unprepare(uid).await
        {
            tracing::info!(pod = %pod.metadata.name, namespace = %pod.metadata.namespace, %error, "Unpreparing claims failed");
            return Ran::Again(self.jittered(RETRY));
        }
        if !job.state.orphan {
            self.set_status(pod, &job.state, &after, true);
        }
        self.probes.remove(uid);
        self.wake_pending_resizes(Retry::PodsRemoved);
        Ran::Moved(Input::Stopped)
    }

    async fn clean(&self, uid: &str, job: &Job) -> Ran {
        let unmounted = tokio::time::timeout(VOLUMES_LIMIT, self.side.volumes.unmount(uid)).await;
        let error = match unmounted {
            Ok(Ok(())) => {
                let began = Instant::now();
                let removed = self.side.cgroups.remove(uid).await;
                self.metrics.cgroup_duration.with(&["destroy"]).observe(began.elapsed().as_secs_f64());
                removed.err().map(|error| error.to_string())
            }
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("timed out waiting for volumes to unmount".to_owned()),
        };
        if let Some(error) = error {
            tracing::info!(pod = %job.pod.metadata.name, %error, "Cleaning up after a pod failed");
            return Ran::Again(self.jittered(RETRY));
        }
        if !job.state.orphan {
            if self.board.get(uid).is_none() {
                // Ended before this kubelet was started: the API has its last word.
                self.board.set(&job.pod, job.pod.status.clone());
            }
            self.board.finish(&job.pod);
        }
        Ran::Moved(Input::Cleaned)
    }

    /// Computes the pod's status and has it published.
    pub(super) fn set_status(&self, pod: &Arc<Pod>, state: &WorkerState, seen: &RuntimePod, ended: bool) -> PodStatus {
        let uid = &pod.metadata.uid;
        let in_api = self.store.in_api(pod);
        let of_api = in_api.as_ref().map_or(&pod.status, |pod| &pod.status);
        let on_board = self.board.get(uid);
        let old = on_board.as_deref().unwrap_or(of_api);
        let deadline = self.deadline(pod, old);
        let host_ips: Vec<IpAddr> = self.side.node.host_ips();
        let inputs = Inputs {
            pod,
            old,
            seen,
            probes: &OfPod { probes: &self.probes, uid },
            failure: &|container| self.runtime.failures.get(uid, container),
            runtime_name: &self.health.runtime_name(),
            host_ips: &host_ips,
            ended,
            is_static: is_static(pod),
            forced: state.forced.as_ref().or(deadline.as_ref()),
            resize: &self.allocations.state(uid),
            resources: &|container| self.resource_health(pod, container),
            actuated: &|container| self.runtime.actuated.get(uid, container),
            shows: Shown {
                sandbox: self.settings.sandbox_condition,
                former_readiness: self.settings.keeps_readiness,
                stop_signals: self.settings.stop_signals,
                image_digests: self.settings.image_volume_digests,
                pod_resources: self.settings.pod_level_resizes,
            },
            now: self.now(),
        };
        let computed = status::compute(&inputs);
        let starts = computed.phase == "Running" && old.phase != "Running" && of_api.phase != "Running";
        if let Some(age) = self.workers.age(uid).filter(|_| starts) {
            self.metrics.pod_start.with(&[]).observe(age.as_secs_f64());
            self.measure_start(pod, &computed);
        }
        self.board.set(pod, computed.clone());
        computed
    }

    /// A pod of the API runs: how long after its object was made, and how long it waited for images and init containers.
    fn measure_start(&self, pod: &Pod, status: &PodStatus) {
        if is_static(pod) {
            return;
        }
        let seconds = |count: i64| Duration::from_secs(u64::try_from(count).unwrap_or_default());
        let ended = status.init_container_statuses.iter().filter_map(|own| own.state.terminated.as_ref());
        let ran = ended.map(|ended| seconds(ended.finished_at.seconds_since(ended.started_at))).sum::<Duration>();
        let total = seconds(self.now().seconds_since(pod.metadata.creation_timestamp));
        self.metrics.pod_runs(total, ran + self.runtime.puller.spent(&pod.metadata.uid));
    }

    /// The failure of a pod that has been active for longer than it may.
    pub(super) fn deadline(&self, pod: &Pod, status: &PodStatus) -> Option<Forced> {
        let limit = pod.spec.active_deadline_seconds?;
        let since = status.start_time?;
        (self.now().seconds_since(since) >= limit).then(|| Forced {
            reason: "DeadlineExceeded".to_owned(),
            message: "Pod was active on the node longer than the specified deadline".to_owned(),
            disruption: None,
        })
    }
}

/// Probes as the status of one pod sees them.
struct OfPod<'a> {
    probes: &'a Probes,
    uid: &'a str,
}

impl ProbeView for OfPod<'_> {
    fn result(&self, kind: ProbeKind, container_id: &str) -> Option<ProbeResult> {
        self.probes.results().get(kind, container_id)
    }

    fn has_worker(&self, container: &str, kind: ProbeKind) -> bool {
        self.probes.has(self.uid, container, kind)
    }

    fn poke(&self, container: &str) {
        self.probes.poke_readiness(self.uid, container);
    }
}
