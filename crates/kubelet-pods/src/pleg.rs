//! The pod lifecycle event generator: notices what changed in the runtime by listing it each second, keeps the cache
//! of pod records fresh, and tells the sync loop which pods to look at.
//!
//! Where the runtime tells its events (gate `EventedPLEG`, <https://kep.k8s.io/3386>) they do that, and the runtime is
//! listed only once in a while, for what they miss. Upstream also takes what is known of all pods for the present every five
//! seconds; here whoever needs newer knowledge asks the runtime, so that nothing is taken for newer than it is.

mod feed;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use base::SharedClock;
use node_api::cri::v1::{Container, ContainerEventResponse, PodSandbox, PodSandboxState};
use node_api::cri::{CriError, Runtime, Sketch};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::metrics::KubeletMetrics;
use crate::runtime::cache::{Outline, RuntimeCache};
use crate::runtime::inspect::{inspect_listed, inspect_made, of_event};
use crate::runtime::labels;
use crate::runtime::record::{RecordState, RuntimePod};
use crate::runtime::sync::Made;
use crate::runtime::text::go_duration;
use feed::{Feed, Word};

/// Time between two complete looks.
const RELIST_PERIOD: Duration = Duration::from_secs(1);
/// The same while the runtime tells its events.
const EVENTED_RELIST_PERIOD: Duration = Duration::from_secs(300);
/// Without a complete look for this long, the generator is not healthy.
const HEALTH_THRESHOLD: Duration = Duration::from_secs(180);
/// The same while the runtime tells its events.
const EVENTED_HEALTH_THRESHOLD: Duration = Duration::from_secs(600);
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
    #[error("pleg was last seen active {} ago; threshold is {}", go_duration(*.ago), go_duration(*.threshold))]
    Late { ago: Duration, threshold: Duration },
}

/// Asks for a look at one pod, soon.
#[derive(Clone)]
pub(crate) struct Relist(mpsc::Sender<String>);

impl Relist {
    pub(crate) fn request(&self, uid: &str) {
        // Full: the next complete look comes within a second, or the runtime tells by itself.
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
    clock: SharedClock,
    /// Whether the runtime's events are followed.
    is_evented: AtomicBool,
    /// Something could not be read and has to be looked at again soon.
    is_behind: AtomicBool,
}

impl Pleg {
    pub(crate) fn new(
        runtime: Arc<dyn Runtime>,
        cache: Arc<RuntimeCache>,
        events: mpsc::Sender<PodChange>,
        metrics: Arc<KubeletMetrics>,
        clock: SharedClock,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(REQUEST_QUEUE);
        let (requests, relist) = (Mutex::new(Some(receiver)), Relist(sender));
        let (is_evented, is_behind) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { runtime, cache, events, requests, relist, metrics, clock, is_evented, is_behind }
    }

    /// Follows the runtime's events as long as it has some.
    #[must_use]
    pub(crate) fn evented(self, is_wanted: bool) -> Self {
        Self { is_evented: AtomicBool::new(is_wanted), ..self }
    }

    pub(crate) fn relist_handle(&self) -> Relist {
        self.relist.clone()
    }

    /// Looks until the caller drops the future.
    pub(crate) async fn run(&self) {
        let Some(mut requests) = self.requests.lock().take() else { return };
        let (runtime, metrics) = (self.runtime.clone(), self.metrics.clone());
        let mut feed = if self.is_evented() { Feed::on(runtime, metrics) } else { Feed::off(runtime, metrics) };
        let mut next = Instant::now();
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next) => next = self.relist_and_rest().await,
                Some(uid) = requests.recv() => self.look_at(&uid).await,
                word = feed.next() => match word {
                    Word::Event(event) => self.take(*event).await,
                    // The runtime may begin to tell a moment after it is asked to.
                    Word::Begun => self.is_behind.store(true, Ordering::Relaxed),
                    Word::Failed(error) => {
                        tracing::warn!(%error, gives_up = !feed.is_on(), "The runtime's events cannot be had");
                        self.is_evented.store(feed.is_on(), Ordering::Relaxed);
                        next = self.relist_and_rest().await;
                    }
                },
            }
            if self.is_behind.swap(false, Ordering::Relaxed) {
                next = next.min(Instant::now() + RELIST_PERIOD);
            }
        }
    }

    fn is_evented(&self) -> bool {
        self.is_evented.load(Ordering::Relaxed)
    }

    /// A complete look; when the next one is due.
    async fn relist_and_rest(&self) -> Instant {
        if let Err(error) = self.relist().await {
            tracing::warn!(%error, "Listing pods and containers failed");
            self.is_behind.store(true, Ordering::Relaxed);
        }
        Instant::now() + if self.is_evented() { EVENTED_RELIST_PERIOD } else { RELIST_PERIOD }
    }

    /// Takes what the runtime tells of a pod.
    async fn take(&self, event: ContainerEventResponse) {
        let age = self.age(event.created_at);
        self.metrics.pleg_latency.with(&[]).observe(age.as_secs_f64());
        let Some(sandbox) = event.pod_sandbox_status else {
            // The sandbox is gone: whose it was is known here.
            if let Some(uid) = self.cache.owner(&event.container_id) {
                self.look_at(&uid).await;
            }
            return;
        };
        let Some(uid) = sandbox.labels.get(labels::POD_UID).cloned() else { return };
        let last = self.cache.get(&uid);
        let now = Instant::now();
        let pod = of_event(&uid, &sandbox, event.containers_statuses, last.as_deref()).await;
        // What is newer stays, and is told all the same: the loop may not know of it.
        let (pod, _) = self.cache.put(&uid, pod, now.checked_sub(age).unwrap_or(now));
        self.tell(&uid, &self.cache.outline(&uid), outline_of(&pod));
    }

    /// How long ago a time was that the runtime tells, in nanoseconds since 1970.
    fn age(&self, at: i64) -> Duration {
        let now = self.clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(Duration::from_nanos(u64::try_from(at).unwrap_or_default()))
    }

    /// One complete look.
    pub(crate) async fn relist(&self) -> Result<(), CriError> {
        let at = Instant::now();
        let listed = self.list().await?;
        let mut unread = HashSet::new();
        for (uid, pod) in &listed {
            if self.cache.is_outlined_as(uid, pod.parts().into_iter()) {
                continue;
            }
            let is_read = !self.cache.is_held(uid) && {
                let (sandboxes, containers) = pod.whole()?;
                self.compare(uid, &sandboxes, &containers, at, false).await
            };
            if !is_read {
                unread.insert(uid.clone());
            }
        }
        for uid in self.cache.outlined_but_for(|uid| listed.contains_key(uid)) {
            self.compare(&uid, &[], &[], at, false).await;
        }
        if let Some(last) = self.cache.last_relist() {
            self.metrics.pleg_interval.with(&[]).observe((at - last).as_secs_f64());
        }
        self.metrics.pleg_duration.with(&[]).observe(at.elapsed().as_secs_f64());
        self.cache.relisted(at, unread);
        Ok(())
    }

    /// All there is, by the pods that it belongs to.
    async fn list(&self) -> Result<BTreeMap<String, ListedPod>, CriError> {
        let mut pods: BTreeMap<String, ListedPod> = BTreeMap::new();
        for sandbox in self.runtime.sketch_pod_sandboxes().await? {
            if let Some(uid) = sandbox.label(labels::POD_UID) {
                pods.entry(uid).or_default().sandboxes.push(sandbox);
            }
        }
        for container in self.runtime.sketch_containers().await? {
            if let Some(uid) = container.label(labels::POD_UID) {
                pods.entry(uid).or_default().containers.push(container);
            }
        }
        Ok(pods)
    }

    /// A look at one pod, whose worker has just changed it.
    async fn look_at(&self, uid: &str) {
        let at = Instant::now();
        let selector = HashMap::from([(labels::POD_UID.to_owned(), uid.to_owned())]);
        let filter = node_api::cri::v1::PodSandboxFilter { label_selector: selector.clone(), ..Default::default() };
        let sandboxes = self.runtime.list_pod_sandboxes(Some(filter)).await;
        let filter = node_api::cri::v1::ContainerFilter { label_selector: selector, ..Default::default() };
        let containers = self.runtime.list_containers(Some(filter)).await;
        match (sandboxes, containers) {
            (Ok(sandboxes), Ok(containers)) => drop(self.compare(uid, &sandboxes, &containers, at, true).await),
            (Err(error), _) | (_, Err(error)) => {
                tracing::debug!(uid, %error, "Looking at a pod failed");
                self.is_behind.store(true, Ordering::Relaxed);
            }
        }
    }

    /// The same by the worker itself where it made all there is of the pod: what the runtime says of the containers is the
    /// rest. False where that cannot be read.
    pub(crate) async fn look_at_new(&self, uid: &str, made: Made) -> bool {
        let at = Instant::now();
        match inspect_made(&*self.runtime, uid, &made).await {
            Ok(pod) => {
                let (pod, _) = self.cache.put(uid, pod, at);
                self.tell(uid, &self.cache.outline(uid), outline_of(&pod));
                true
            }
            Err(error) => {
                tracing::debug!(uid, %error, "Looking at a new pod failed");
                false
            }
        }
    }

    /// Compares a pod with how it was; on a change (or when asked) reads it in full and tells the loop. False where it
    /// cannot be read.
    async fn compare(
        &self,
        uid: &str,
        sandboxes: &[PodSandbox],
        containers: &[Container],
        at: Instant,
        asked: bool,
    ) -> bool {
        let mut now = outline(sandboxes, containers);
        let before = self.cache.outline(uid);
        if now == before && !asked {
            return true;
        }
        let last = self.cache.get(uid);
        match inspect_listed(&*self.runtime, uid, sandboxes, containers, last.as_deref()).await {
            Ok(pod) => {
                let (pod, is_this) = self.cache.put(uid, pod, at);
                if !is_this {
                    now = outline_of(&pod);
                }
            }
            Err(error) => {
                // The old outline stays, so that the change is seen again.
                self.is_behind.store(true, Ordering::Relaxed);
                tracing::warn!(uid, %error, "Reading a pod from the runtime failed");
                return false;
            }
        }
        // Whoever asked may have changed nothing; telling would only make it ask again.
        self.tell(uid, &before, now);
        true
    }

    /// Tells the loop of what has changed.
    fn tell(&self, uid: &str, before: &Outline, now: Outline) {
        if now == *before {
            return;
        }
        let died = died(before, &now);
        self.cache.tell(uid, now);
        if self.events.try_send(PodChange { uid: uid.to_owned(), died }).is_err() {
            self.metrics.pleg_discarded.with(&[]).inc();
            tracing::warn!(uid, "Pod event dropped, the sync loop is behind");
        }
    }

    /// Whether complete looks succeed.
    pub(crate) fn health(&self) -> Result<(), PlegError> {
        let ago = self.cache.last_relist().ok_or(PlegError::NeverLooked)?.elapsed();
        let threshold = if self.is_evented() { EVENTED_HEALTH_THRESHOLD } else { HEALTH_THRESHOLD };
        if ago <= threshold { Ok(()) } else { Err(PlegError::Late { ago, threshold }) }
    }
}

/// What the runtime lists of a pod.
#[derive(Default)]
struct ListedPod {
    sandboxes: Vec<Sketch<PodSandbox>>,
    containers: Vec<Sketch<Container>>,
}

impl ListedPod {
    /// Ids, names and states, as an outline has them.
    fn parts(&self) -> Vec<(&str, &str, RecordState)> {
        let sandboxes = self.sandboxes.iter().map(|own| (own.id.as_str(), "", state_of_sandbox(own.state)));
        let containers =
            self.containers.iter().map(|own| (own.id.as_str(), own.name.as_str(), RecordState::of(own.state)));
        sandboxes.chain(containers).collect()
    }

    fn whole(&self) -> Result<(Vec<PodSandbox>, Vec<Container>), CriError> {
        let sandboxes = self.sandboxes.iter().map(Sketch::whole).collect::<Result<_, _>>()?;
        Ok((sandboxes, self.containers.iter().map(Sketch::whole).collect::<Result<_, _>>()?))
    }
}

fn state_of_sandbox(state: i32) -> RecordState {
    let is_ready = state == i32::from(PodSandboxState::SandboxReady);
    if is_ready { RecordState::Running } else { RecordState::Exited }
}

fn outline(sandboxes: &[PodSandbox], containers: &[Container]) -> Outline {
    let sandboxes =
        sandboxes.iter().map(|sandbox| (sandbox.id.clone(), (String::new(), state_of_sandbox(sandbox.state))));
    let containers = containers.iter().map(|container| {
        let name = container.metadata.as_ref().map(|metadata| metadata.name.clone()).unwrap_or_default();
        (container.id.clone(), (name, RecordState::of(container.state)))
    });
    sandboxes.chain(containers).collect()
}

/// The same of a pod that was read.
fn outline_of(pod: &RuntimePod) -> Outline {
    let sandboxes = pod.sandboxes.iter().map(|sandbox| {
        let state = if sandbox.ready { RecordState::Running } else { RecordState::Exited };
        (sandbox.id.clone(), (String::new(), state))
    });
    let containers = pod.containers.iter().map(|record| (record.id.clone(), (record.name.clone(), record.state)));
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

    fn pleg(runtime: &FakeRuntime, cache: &Arc<RuntimeCache>, events: mpsc::Sender<PodChange>) -> Pleg {
        let runtime = Arc::new(runtime.clone());
        Pleg::new(runtime, Arc::clone(cache), events, KubeletMetrics::unseen(), TokioClock::shared())
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_that_cannot_be_read_is_told_later() {
        let runtime = FakeRuntime::new(TokioClock::shared(), &TaskGroup::new("test"));
        let (events, mut changes) = mpsc::channel(EVENT_QUEUE);
        let cache = Arc::new(RuntimeCache::default());
        let pleg = pleg(&runtime, &cache, events);
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
    async fn a_pod_that_is_being_made_is_left_alone_for_a_while() {
        let runtime = FakeRuntime::new(TokioClock::shared(), &TaskGroup::new("test"));
        let (events, mut changes) = mpsc::channel(EVENT_QUEUE);
        let cache = Arc::new(RuntimeCache::default());
        let pleg = pleg(&runtime, &cache, events);
        let (hold, before) = (cache.hold("u"), Instant::now());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let id = runtime.run_pod_sandbox(sandbox(), "").await.unwrap();
        pleg.relist().await.unwrap();
        assert!(changes.try_recv().is_err());
        // Whoever needs to know nevertheless is not told that there is nothing.
        assert!(cache.newer_than(&runtime, "u", Some(before)).await.unwrap().has_ready_sandbox());
        drop(hold);
        pleg.relist().await.unwrap();
        assert_eq!(changes.try_recv().unwrap().uid, "u");
        // The worker tells of what it made itself; what has become of that since is seen at the next look.
        let sandbox = runtime.pod_sandbox_status(&id, false).await.unwrap().status.unwrap();
        runtime.stop_pod_sandbox(&id).await.unwrap();
        assert!(pleg.look_at_new("u", Made::of(sandbox, Vec::new())).await);
        assert!(cache.get("u").unwrap().has_ready_sandbox());
        tokio::time::sleep(Duration::from_secs(1)).await;
        pleg.relist().await.unwrap();
        assert!(!cache.get("u").unwrap().has_ready_sandbox());
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_is_older_than_what_is_known_takes_nothing_back() {
        let runtime = FakeRuntime::new(TokioClock::shared(), &TaskGroup::new("test"));
        let (events, mut changes) = mpsc::channel(EVENT_QUEUE);
        let cache = Arc::new(RuntimeCache::default());
        let pleg = pleg(&runtime, &cache, events);
        // A complete look begins, and lists before its worker makes the pod.
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let id = runtime.run_pod_sandbox(sandbox(), "").await.unwrap();
        let made = runtime.pod_sandbox_status(&id, false).await.unwrap().status.unwrap();
        assert!(pleg.look_at_new("u", Made::of(made, Vec::new())).await);
        assert_eq!(changes.try_recv().unwrap().uid, "u");
        assert!(pleg.compare("u", &[], &[], begun, false).await);
        assert!(changes.try_recv().is_err(), "it has not gone");
        assert!(cache.get("u").unwrap().has_ready_sandbox() && cache.outline("u").contains_key(&id));
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_told_once() {
        let group = TaskGroup::new("test");
        let runtime = FakeRuntime::new(TokioClock::shared(), &group);
        let (events, mut changes) = mpsc::channel(EVENT_QUEUE);
        let cache = Arc::new(RuntimeCache::default());
        let pleg = pleg(&runtime, &cache, events);
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
