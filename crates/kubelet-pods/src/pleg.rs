//! The pod lifecycle event generator: notices what changed in the runtime by listing it each second, keeps the cache
//! of pod records fresh, and tells the sync loop which pods to look at.
//!
//! Deliberately not here: the runtime's own event stream (gate `EventedPLEG`, off by default upstream too).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use node_api::cri::v1::{Container, PodSandbox};
use node_api::cri::{CriError, Runtime};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use crate::metrics::KubeletMetrics;
use crate::runtime::cache::{Outline, RuntimeCache};
use crate::runtime::inspect::inspect_listed;
use crate::runtime::labels;
use crate::runtime::record::RecordState;
use crate::runtime::text::go_duration;

/// Time between two complete looks.
const RELIST_PERIOD: Duration = Duration::from_secs(1);
/// Without a complete look for this long, the generator is not healthy.
const HEALTH_THRESHOLD: Duration = Duration::from_secs(180);
/// Events that may wait for the sync loop; more are dropped, the periodic sync makes up for them.
pub(crate) const EVENT_QUEUE: usize = 1000;
/// Requests for a look at one pod that may wait; more are dropped, the next complete look makes up for them.
const REQUEST_QUEUE: usize = 200;

/// Something changed in a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodChange {
    pub uid: String,
    /// Names of the containers that ended.
    pub died: Vec<String>,
}

/// Why the generator is not healthy, as the node's Ready condition tells it. It is, again, after one complete look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlegError {
    #[error("pleg has yet to be successful")]
    NeverLooked,
    #[error("pleg was last seen active {} ago; threshold is {}", go_duration(*.ago), go_duration(HEALTH_THRESHOLD))]
    Late { ago: Duration },
}

/// Asks for a look at one pod, soon.
#[derive(Clone)]
pub(crate) struct Relist(mpsc::Sender<String>);

impl Relist {
    pub(crate) fn request(&self, uid: &str) {
        // Full: the next complete look comes within a second.
        let _ = self.0.try_send(uid.to_owned());
    }
}

/// The generator. One task runs it.
pub(crate) struct Pleg {
    runtime: Arc<dyn Runtime>,
    cache: Arc<RuntimeCache>,
    events: mpsc::Sender<PodChange>,
    requests: Mutex<Option<mpsc::Receiver<String>>>,
    relist: Relist,
    metrics: Arc<KubeletMetrics>,
}

impl Pleg {
    pub(crate) fn new(
        runtime: Arc<dyn Runtime>,
        cache: Arc<RuntimeCache>,
        events: mpsc::Sender<PodChange>,
        metrics: Arc<KubeletMetrics>,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(REQUEST_QUEUE);
        let requests = Mutex::new(Some(receiver));
        Self { runtime, cache, events, requests, relist: Relist(sender), metrics }
    }

    pub(crate) fn relist_handle(&self) -> Relist {
        self.relist.clone()
    }

    /// Looks until the caller drops the future.
    pub(crate) async fn run(&self) {
        let Some(mut requests) = self.requests.lock().take() else { return };
        let mut ticks = tokio::time::interval(RELIST_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    if let Err(error) = self.relist().await {
                        tracing::warn!(%error, "Listing pods and containers failed");
                    }
                }
                Some(uid) = requests.recv() => self.look_at(&uid).await,
            }
        }
    }

    /// One complete look.
    pub(crate) async fn relist(&self) -> Result<(), CriError> {
        let at = Instant::now();
        let (mut sandboxes, mut containers) = (BTreeMap::new(), BTreeMap::new());
        for sandbox in self.runtime.list_pod_sandboxes(None).await? {
            if let Some(uid) = sandbox.labels.get(labels::POD_UID) {
                sandboxes.entry(uid.clone()).or_insert_with(Vec::new).push(sandbox);
            }
        }
        for container in self.runtime.list_containers(None).await? {
            if let Some(uid) = container.labels.get(labels::POD_UID) {
                containers.entry(uid.clone()).or_insert_with(Vec::new).push(container);
            }
        }
        let known = self.cache.outlined();
        let uids: BTreeSet<_> = sandboxes.keys().chain(containers.keys()).chain(&known).cloned().collect();
        for uid in uids {
            let sandboxes = sandboxes.get(&uid).map_or(&[][..], Vec::as_slice);
            let containers = containers.get(&uid).map_or(&[][..], Vec::as_slice);
            self.compare(&uid, sandboxes, containers, at, false).await;
        }
        if let Some(last) = self.cache.last_relist() {
            self.metrics.pleg_interval.with(&[]).observe((at - last).as_secs_f64());
        }
        self.metrics.pleg_duration.with(&[]).observe(at.elapsed().as_secs_f64());
        self.cache.relisted(at);
        Ok(())
    }

    /// A look at one pod, whose worker has just changed it.
    async fn look_at(&self, uid: &str) {
        let at = Instant::now();
        let selector = std::collections::HashMap::from([(labels::POD_UID.to_owned(), uid.to_owned())]);
        let filter = node_api::cri::v1::PodSandboxFilter { label_selector: selector.clone(), ..Default::default() };
        let sandboxes = self.runtime.list_pod_sandboxes(Some(filter)).await;
        let filter = node_api::cri::v1::ContainerFilter { label_selector: selector, ..Default::default() };
        let containers = self.runtime.list_containers(Some(filter)).await;
        match (sandboxes, containers) {
            (Ok(sandboxes), Ok(containers)) => self.compare(uid, &sandboxes, &containers, at, true).await,
            (Err(error), _) | (_, Err(error)) => tracing::debug!(uid, %error, "Looking at a pod failed"),
        }
    }

    /// Compares a pod with how it was; on a change (or when asked) reads it in full and tells the loop.
    async fn compare(&self, uid: &str, sandboxes: &[PodSandbox], containers: &[Container], at: Instant, asked: bool) {
        let now = outline(sandboxes, containers);
        let before = self.cache.outline(uid);
        if now == before && !asked {
            return;
        }
        let last = self.cache.get(uid);
        match inspect_listed(&*self.runtime, uid, sandboxes, containers, last.as_deref()).await {
            Ok(pod) => drop(self.cache.put(uid, pod, at)),
            // The old outline stays, so that the change is seen again.
            Err(error) => return tracing::warn!(uid, %error, "Reading a pod from the runtime failed"),
        }
        if now == before {
            // Whoever asked has changed nothing; telling would only make it ask again.
            return;
        }
        let died = died(&before, &now);
        self.cache.tell(uid, now);
        if self.events.try_send(PodChange { uid: uid.to_owned(), died }).is_err() {
            self.metrics.pleg_discarded.with(&[]).inc();
            tracing::warn!(uid, "Pod event dropped, the sync loop is behind");
        }
    }

    /// Whether complete looks succeed.
    pub(crate) fn health(&self) -> Result<(), PlegError> {
        let ago = self.cache.last_relist().ok_or(PlegError::NeverLooked)?.elapsed();
        if ago <= HEALTH_THRESHOLD { Ok(()) } else { Err(PlegError::Late { ago }) }
    }
}

fn outline(sandboxes: &[PodSandbox], containers: &[Container]) -> Outline {
    let ready = i32::from(node_api::cri::v1::PodSandboxState::SandboxReady);
    let sandboxes = sandboxes.iter().map(|sandbox| {
        let state = if sandbox.state == ready { RecordState::Running } else { RecordState::Exited };
        (sandbox.id.clone(), (String::new(), state))
    });
    let containers = containers.iter().map(|container| {
        let name = container.metadata.as_ref().map(|metadata| metadata.name.clone()).unwrap_or_default();
        (container.id.clone(), (name, RecordState::of(container.state)))
    });
    sandboxes.chain(containers).collect()
}

/// The containers that had not ended before and have now, or are gone.
fn died(before: &Outline, now: &Outline) -> Vec<String> {
    let ended = |id: &String| now.get(id).is_none_or(|(_, state)| *state == RecordState::Exited);
    let alive = before.iter().filter(|(_, (name, state))| !name.is_empty() && *state != RecordState::Exited);
    alive.filter(|(id, _)| ended(id)).map(|(_, (name, _))| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::{TaskGroup, TokioClock};
    use node_api::cri::Code;
    use node_api::cri::fake::FakeRuntime;
    use node_api::cri::v1::{PodSandboxConfig, PodSandboxMetadata};

    use super::*;

    fn sandbox() -> PodSandboxConfig {
        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata { uid: "u".into(), ..Default::default() }),
            labels: std::collections::HashMap::from([(labels::POD_UID.to_owned(), "u".to_owned())]),
            ..Default::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_that_cannot_be_read_is_told_later() {
        let runtime = FakeRuntime::new(TokioClock::shared(), &TaskGroup::new("test"));
        let (events, mut changes) = mpsc::channel(EVENT_QUEUE);
        let cache = Arc::new(RuntimeCache::default());
        let pleg = Pleg::new(Arc::new(runtime.clone()), Arc::clone(&cache), events, KubeletMetrics::unseen());
        let id = runtime.run_pod_sandbox(sandbox(), "").await.unwrap();
        pleg.relist().await.unwrap();
        assert_eq!(changes.try_recv().unwrap().uid, "u");
        runtime.stop_pod_sandbox(&id).await.unwrap();
        runtime.fail_next("podsandbox_status", CriError::rpc("podsandbox_status", Code::Unknown, "stuck"));
        tokio::time::sleep(Duration::from_secs(1)).await;
        pleg.relist().await.unwrap();
        assert!(changes.try_recv().is_err(), "nothing is told that cannot be read");
        tokio::time::sleep(Duration::from_secs(1)).await;
        pleg.relist().await.unwrap();
        assert_eq!(changes.try_recv().unwrap().uid, "u");
        assert!(!cache.get("u").unwrap().has_ready_sandbox());
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_told_once() {
        let group = TaskGroup::new("test");
        let runtime = FakeRuntime::new(TokioClock::shared(), &group);
        let (events, mut changes) = mpsc::channel(EVENT_QUEUE);
        let cache = Arc::new(RuntimeCache::default());
        let pleg = Pleg::new(Arc::new(runtime.clone()), Arc::clone(&cache), events, KubeletMetrics::unseen());
        assert_eq!(pleg.health(), Err(PlegError::NeverLooked));
        let id = runtime.run_pod_sandbox(sandbox(), "").await.unwrap();
        pleg.relist().await.unwrap();
        assert_eq!(changes.try_recv().unwrap().uid, "u");
        assert!(cache.get("u").unwrap().has_ready_sandbox());
        pleg.relist().await.unwrap();
        assert!(changes.try_recv().is_err());
        runtime.stop_pod_sandbox(&id).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        pleg.relist().await.unwrap();
        assert!(!cache.get("u").unwrap().has_ready_sandbox());
        assert_eq!(pleg.health(), Ok(()));
        tokio::time::sleep(Duration::from_secs(200)).await;
        let late = pleg.health().unwrap_err().to_string();
        assert_eq!(late, "pleg was last seen active 3m20s ago; threshold is 3m0s");
    }
}
