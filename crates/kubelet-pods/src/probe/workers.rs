//! The probe workers: one task for each container and kind, started with the pod and ended with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::{ContainerStatus, Pod, PodStatus, Probe};
use base::{CancellationToken, SharedClock, SharedRng, TaskGroup};
use client::object_reference;
use node_api::cri::Runtime;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::run::{ProbeAttempt, Target, run};
use super::step::{Action, State, Tick};
use super::{ProbeKind, ProbeResult, Results};
use crate::interfaces::{Events, Level, NodeView};
use crate::metrics::{KubeletMetrics, Probed};
use crate::pod::containers::{long_running, member};
use crate::pod::restart;

/// Tries before a probe that cannot be run counts as one.
const TRIES: usize = 3;
/// How much older than the kubelet a container must be to count as one that an earlier kubelet knew.
const RESTART_MARGIN_SECONDS: i64 = 10;
/// Results that may wait for the sync loop.
pub(crate) const RESULT_QUEUE: usize = 1000;

/// A result that the sync loop must know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct News {
    pub uid: String,
    pub kind: ProbeKind,
    pub container_id: String,
    pub result: ProbeResult,
}

/// Where workers read the pod and its status.
pub(crate) trait Statuses: Send + Sync + 'static {
    fn pod(&self, uid: &str) -> Option<Arc<Pod>>;
    fn status(&self, uid: &str) -> Option<Arc<PodStatus>>;
}

type Key = (String, String, ProbeKind);

/// All probe workers of the node.
pub(crate) struct Probes {
    shared: Arc<Shared>,
    workers: Arc<Mutex<BTreeMap<Key, Worker>>>,
}

struct Worker {
    stop: CancellationToken,
    poke: Arc<Notify>,
}

struct Shared {
    runtime: Arc<dyn Runtime>,
    node: Arc<dyn NodeView>,
    events: Arc<dyn Events>,
    results: Arc<Results>,
    statuses: Arc<dyn Statuses>,
    news: mpsc::Sender<News>,
    metrics: Arc<KubeletMetrics>,
    clock: SharedClock,
    rng: SharedRng,
    tasks: TaskGroup,
    started: Instant,
    /// The same by the wall clock, which dates containers.
    started_at: Time,
    keeps_readiness: bool,
}

/// What the workers share.
pub(crate) struct ProbeDependencies {
    pub runtime: Arc<dyn Runtime>,
    pub node: Arc<dyn NodeView>,
    pub events: Arc<dyn Events>,
    pub statuses: Arc<dyn Statuses>,
    pub results: Arc<Results>,
    pub news: mpsc::Sender<News>,
    pub metrics: Arc<KubeletMetrics>,
    pub clock: SharedClock,
    pub rng: SharedRng,
    pub tasks: TaskGroup,
    /// What an earlier kubelet found holds until a probe has spoken; not with the gate
    /// `ChangeContainerStatusOnKubeletRestart`.
    pub keeps_readiness: bool,
}

impl Probes {
    pub(crate) fn new(given: ProbeDependencies) -> Self {
        let (started, started_at) = (given.clock.monotonic(), Time::from(given.clock.wall()));
        let shared = Shared {
            runtime: given.runtime,
            node: given.node,
            events: given.events,
            results: given.results,
            statuses: given.statuses,
            news: given.news,
            metrics: given.metrics,
            clock: given.clock,
            rng: given.rng,
            tasks: given.tasks,
            started,
            started_at,
            keeps_readiness: given.keeps_readiness,
        };
        Self { shared: Arc::new(shared), workers: Arc::default() }
    }

    pub(crate) fn results(&self) -> &Arc<Results> {
        &self.shared.results
    }

    /// Starts the workers that the pod needs and that do not run yet.
    pub(crate) fn add(&self, pod: &Pod) {
        for container in long_running(pod) {
            for kind in ProbeKind::ALL {
                if let Some(probe) = kind.of(container) {
                    self.start(pod, &container.name, kind, probe);
                }
            }
        }
    }

    fn start(&self, pod: &Pod, container: &str, kind: ProbeKind, probe: &Probe) {
        let key = (pod.metadata.uid.clone(), container.to_owned(), kind);
        let mut workers = self.workers.lock();
        if workers.contains_key(&key) {
            return;
        }
        let worker = Worker { stop: self.shared.tasks.token().child_token(), poke: Arc::default() };
        let (stop, poke) = (worker.stop.clone(), Arc::clone(&worker.poke));
        workers.insert(key.clone(), worker);
        drop(workers);
        let (shared, all, probe) = (Arc::clone(&self.shared), Arc::clone(&self.workers), probe.clone());
        let (namespace, name) = (pod.metadata.namespace.clone(), pod.metadata.name.clone());
        self.shared.tasks.spawn("probe", async move {
            let mut state = State::default();
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = shared.work(&key, &probe, &poke, &mut state) => {}
            }
            shared.results.remove(kind, &state.id);
            let (uid, container, _) = &key;
            let of = Probed { namespace: &namespace, pod: &name, uid, container, kind: kind.name() };
            shared.metrics.forget_probe(&of);
            // Who stops a worker takes it off the list under this lock; by now another one may stand there.
            let mut all = all.lock();
            if !stop.is_cancelled() {
                all.remove(&key);
            }
        });
    }

    /// Whether a probe of this kind is at work on a container.
    pub(crate) fn has(&self, uid: &str, container: &str, kind: ProbeKind) -> bool {
        self.workers.lock().contains_key(&(uid.to_owned(), container.to_owned(), kind))
    }

    /// Makes a readiness probe run at once.
    pub(crate) fn poke_readiness(&self, uid: &str, container: &str) {
        let key = (uid.to_owned(), container.to_owned(), ProbeKind::Readiness);
        if let Some(worker) = self.workers.lock().get(&key) {
            worker.poke.notify_one();
        }
    }

    /// A pod that is going is no longer restarted; readiness goes on until its containers are gone.
    pub(crate) fn stop_liveness_and_startup(&self, uid: &str) {
        self.stop(|(of, _, kind)| of == uid && *kind != ProbeKind::Readiness);
    }

    pub(crate) fn remove(&self, uid: &str) {
        self.stop(|(of, _, _)| of == uid);
    }

    /// Ends the workers of all pods but these.
    pub(crate) fn keep(&self, uids: &BTreeSet<String>) {
        self.stop(|(of, _, _)| !uids.contains(of));
    }

    fn stop(&self, which: impl Fn(&Key) -> bool) {
        self.workers.lock().retain(|key, worker| {
            let stop = which(key);
            if stop {
                worker.stop.cancel();
            }
            !stop
        });
    }
}

impl Shared {
    async fn work(&self, key: &Key, probe: &Probe, poke: &Notify, state: &mut State) {
        let period = Duration::from_secs(u64::try_from(probe.period_seconds.max(1)).unwrap_or(1));
        // After a restart of the kubelet all probes would come at once.
        if self.clock.monotonic() - self.started < period {
            tokio::time::sleep(period.mul_f64(self.rng.unit())).await;
        }
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = poke.notified() => ticks.reset(),
            }
            // On the heap while it lasts, so that a worker that waits is small.
            if Box::pin(self.tick(key, probe, state)).await == Next::End {
                return;
            }
        }
    }

    async fn tick(&self, key: &Key, probe: &Probe, state: &mut State) -> Next {
        let (uid, name, kind) = key;
        let Some(pod) = self.statuses.pod(uid) else { return Next::End };
        let Some(found) = member(&pod, name) else { return Next::End };
        let status = self.statuses.status(uid);
        let own = status.as_ref().and_then(|status| container_status(status, name));
        let exit_code = own.and_then(|own| own.state.terminated.as_ref()).map_or(0, |ended| ended.exit_code);
        let phase = status.as_ref().map_or("", |status| status.phase.as_str());
        let seen = Tick {
            status: own,
            pod_ended: matches!(phase, "Failed" | "Succeeded"),
            pod_deleted: pod.metadata.deletion_timestamp.is_some(),
            restartable: restart::restarts_after(&pod, &found.container, exit_code),
            precedes_kubelet: self.keeps_readiness && own.is_some_and(|own| self.precedes(own)),
            now: Time::from(self.clock.wall()),
        };
        let mut initial = None;
        let before = state.id.clone();
        let action = state.tick(*kind, probe, &seen, &mut initial);
        if state.id != before {
            self.results.remove(*kind, &before);
            self.begin(uid, *kind, &state.id, initial);
        }
        match action {
            Action::Skip => {}
            Action::Publish(result) => self.publish(uid, *kind, &state.id, result),
            Action::End(result) => {
                if let Some(result) = result {
                    self.publish(uid, *kind, &state.id, result);
                }
                return Next::End;
            }
            Action::Probe => {
                let ip = status.map(|status| status.pod_ip.clone()).unwrap_or_default();
                let target =
                    Target { pod: &pod, container: &found.container, id: &state.id, ip: &self.address(&pod, ip) };
                let began = Instant::now();
                let outcome = self.attempt(&target, probe).await;
                self.metrics.probed(&probed(&pod, name, *kind), outcome.metric(), began.elapsed());
                self.tell(&pod, &found.field_path(), *kind, &outcome);
                if let Some(result) = state.count(*kind, probe, &outcome) {
                    self.publish(uid, *kind, &state.id, result);
                }
            }
        }
        Next::Again
    }

    /// Notes what a container counts as until its probe has spoken.
    fn begin(&self, uid: &str, kind: ProbeKind, id: &str, initial: Option<ProbeResult>) {
        match initial {
            // Taken over from an earlier kubelet: what waits for a sidecar to be started may go on.
            Some(ProbeResult::Success) if kind == ProbeKind::Startup => {
                self.publish(uid, kind, id, ProbeResult::Success)
            }
            Some(initial) => drop(self.results.set(kind, id, initial)),
            None => {}
        }
    }

    /// Whether a container ran already when the kubelet was started, with some room for clocks.
    fn precedes(&self, container: &ContainerStatus) -> bool {
        let running = container.state.running.as_ref().filter(|running| !running.started_at.is_zero());
        running.is_some_and(|running| self.started_at.seconds_since(running.started_at) > RESTART_MARGIN_SECONDS)
    }

    fn address(&self, pod: &Pod, pod_ip: String) -> String {
        if pod_ip.is_empty() && pod.spec.host_network {
            return self.node.host_ips().first().map(ToString::to_string).unwrap_or_default();
        }
        pod_ip
    }

    async fn attempt(&self, target: &Target<'_>, probe: &Probe) -> ProbeAttempt {
        let mut outcome = ProbeAttempt::Error(String::new());
        for _ in 0..TRIES {
            outcome = run(&*self.runtime, target, probe).await;
            if !matches!(outcome, ProbeAttempt::Error(_)) {
                break;
            }
        }
        outcome
    }

    fn tell(&self, pod: &Pod, field: &str, kind: ProbeKind, outcome: &ProbeAttempt) {
        let name = kind.name();
        let (reason, message) = match outcome {
            ProbeAttempt::Success => return,
            ProbeAttempt::Warning(output) => ("ProbeWarning", format!("{name} probe warning: {output}")),
            ProbeAttempt::Failure(output) => ("Unhealthy", format!("{name} probe failed: {output}")),
            ProbeAttempt::Error(error) => {
                ("Unhealthy", format!("{name} probe errored and resulted in unknown state: {error}"))
            }
        };
        let about = api_types::core_v1::ObjectReference { field_path: field.to_owned(), ..object_reference(pod) };
        self.events.event(about, Level::Warning, reason, &message);
    }

    fn publish(&self, uid: &str, kind: ProbeKind, id: &str, result: ProbeResult) {
        if !self.results.set(kind, id, result) {
            return;
        }
        let news = News { uid: uid.to_owned(), kind, container_id: id.to_owned(), result };
        if self.news.try_send(news).is_err() {
            tracing::warn!(uid, kind = kind.name(), "Probe result not told, the sync loop is behind");
        }
    }
}

fn probed<'a>(pod: &'a Pod, container: &'a str, kind: ProbeKind) -> Probed<'a> {
    let meta = &pod.metadata;
    Probed { namespace: &meta.namespace, pod: &meta.name, uid: &meta.uid, container, kind: kind.name() }
}

#[derive(PartialEq, Eq)]
enum Next {
    Again,
    End,
}

fn container_status<'a>(status: &'a PodStatus, name: &str) -> Option<&'a ContainerStatus> {
    status.init_container_statuses.iter().chain(&status.container_statuses).find(|own| own.name == name)
}
