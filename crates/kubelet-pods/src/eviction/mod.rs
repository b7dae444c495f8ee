//! Keeping the node alive when memory, disk or processes run short: first what nobody needs, then pods.
//!
//! One pass every ten seconds: measure the node ([`usage`], [`measure`]), decide ([`pressure`]), reclaim, or end the pod
//! that [`ranking`] puts first and tell it why ([`message`]). Pods over their own storage limits ([`limits`]) go
//! regardless. Pods are measured only where they have such limits, or when one of them has to go.
//! See <https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/>.

mod limits;
mod measure;
mod message;
mod pressure;
mod ranking;
#[cfg(test)]
mod tests;
mod usage;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use async_trait::async_trait;
use base::SharedClock;
use node_api::cri::CriError;

pub(crate) use measure::log_uses;
pub use measure::{LogUse, Measure};
use pressure::Pressure;
use usage::FileSystems;
pub use usage::{ContainerUse, Gauge, Parts, PodUse, PodUses, Room, Snapshot, VolumeUse};

use crate::engine::Eviction;
use crate::interfaces::{Events, Level, SideError};
use crate::node::{self, NodeState};
use crate::pod::is_critical;
use crate::resources::thresholds::{Signal, Threshold};

const PERIOD: Duration = Duration::from_secs(10);
/// How long and how often an evicted pod's leftovers are waited for.
const CLEAN_LIMIT: Duration = Duration::from_secs(30);
const CLEAN_POLL: Duration = Duration::from_secs(1);
/// Grace of a pod that must go at once, in seconds.
const AT_ONCE: i64 = 1;

/// What the configuration says.
#[derive(Debug, Clone, Default)]
pub struct EvictionSettings {
    pub thresholds: Vec<Threshold>,
    /// `evictionMaxPodGracePeriod`, in seconds.
    pub max_pod_grace: i64,
    /// `evictionPressureTransitionPeriod`
    pub hold: Duration,
    /// `enforceNodeAllocatable` has `pods`.
    pub pods_are_limited: bool,
}

/// What can be taken back.
#[async_trait]
pub trait Reclaim: Send + Sync + 'static {
    /// Whether the runtime has been up, so that measuring makes sense.
    fn is_up(&self) -> bool;
    /// Pods that run and may be ended.
    fn candidates(&self) -> Vec<Arc<Pod>>;
    async fn evict(&self, uid: &str, eviction: Eviction) -> Result<(), SideError>;
    /// Whether nothing of a pod is left.
    fn is_clean(&self, uid: &str) -> bool;
    async fn remove_dead_containers(&self);
    async fn remove_unused_images(&self);
}

/// What node-level reclaim removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waste {
    Containers,
    Images,
}

/// Takes note of an eviction: its signal's name, and how old the figures were.
pub type Count = Box<dyn Fn(&str, Option<Duration>) + Send + Sync>;

/// The watch over the node.
pub struct Evictor {
    pub settings: EvictionSettings,
    pub node_name: String,
    pub gauge: Arc<dyn Gauge>,
    pub pods: Arc<dyn Reclaim>,
    pub state: Arc<NodeState>,
    pub events: Arc<dyn Events>,
    pub clock: SharedClock,
    pub count: Count,
}

impl Evictor {
    /// Watches until the caller drops the future.
    pub async fn run(self) {
        let mut pressure = Pressure::default();
        let mut layout = None;
        loop {
            let evicted = if self.pods.is_up() { self.pass(&mut pressure, &mut layout).await } else { Vec::new() };
            if evicted.is_empty() {
                tokio::time::sleep(PERIOD).await;
            } else {
                self.wait_until_clean(&evicted).await;
            }
        }
    }

    /// One pass; returns the pods that were ended.
    async fn pass(&self, pressure: &mut Pressure, layout: &mut Option<FileSystems>) -> Vec<String> {
        let Some(snapshot) = measured(self.gauge.node().await) else { return Vec::new() };
        // Learned once: the copies of thresholds follow from it. Nothing is judged before, memory neither: who goes for
        // what depends on all of it.
        let Some(known) = layout.or(snapshot.layout) else {
            tracing::info!("Eviction manager: waiting for the first full measurement of the disks");
            return Vec::new();
        };
        *layout = Some(known);
        let thresholds = pressure::all(&self.settings.thresholds, known, self.settings.pods_are_limited);
        let now = self.clock.monotonic();
        let assessment = pressure.step(&thresholds, &snapshot.observations, now, self.settings.hold);
        self.state.set_pressures(assessment.conditions);
        let over = self.evict_over_limits(known).await;
        if !over.is_empty() {
            return over;
        }
        let Some(threshold) = assessment.due.first().and_then(|index| thresholds.get(*index)) else {
            return Vec::new();
        };
        let resource = threshold.signal.resource();
        tracing::warn!(resource, signal = threshold.signal.name(), "Eviction manager: attempting to reclaim");
        let text = format!("Attempting to reclaim {resource}");
        self.events.event(node::reference(&self.node_name), Level::Warning, "EvictionThresholdMet", &text);
        match self.reclaim(threshold.signal, &thresholds, snapshot, known).await {
            Some(snapshot) => self.evict_worst(threshold, &snapshot, known).await.into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Removes what nobody needs. Returns the newest measurement while that was not enough.
    async fn reclaim(
        &self,
        signal: Signal,
        thresholds: &[Threshold],
        before: Snapshot,
        layout: FileSystems,
    ) -> Option<Snapshot> {
        let mut snapshot = before;
        for waste in wastes(signal, layout) {
            match waste {
                Waste::Containers => self.pods.remove_dead_containers().await,
                Waste::Images => self.pods.remove_unused_images().await,
            }
            let Some(fresh) = measured(self.gauge.node().await) else { continue };
            snapshot = fresh;
            if !pressure::any_left(thresholds, &snapshot.observations) {
                tracing::info!("Eviction manager: able to reduce resource pressure without evicting pods.");
                return None;
            }
        }
        Some(snapshot)
    }

    async fn evict_over_limits(&self, layout: FileSystems) -> Vec<String> {
        let mut pods = self.pods.candidates();
        pods.retain(|pod| limits::are_set(pod) && !is_critical(pod));
        let uses = self.uses(&pods, Parts::All).await.unwrap_or_default();
        let mut evicted = Vec::new();
        for pod in pods {
            let used = uses.get(&pod.metadata.uid);
            let Some(over) = used.and_then(|used| limits::check(&pod, used, layout)) else { continue };
            (self.count)(over.signal, None);
            self.evict(&pod, AT_ONCE, over.message, None, BTreeMap::new()).await;
            evicted.push(pod.metadata.uid.clone());
        }
        evicted
    }

    /// Ends the pod that uses most beyond what it asked for; nobody where all are critical.
    async fn evict_worst(&self, threshold: &Threshold, snapshot: &Snapshot, layout: FileSystems) -> Option<String> {
        let mut pods = self.pods.candidates();
        let uses = self.uses(&pods, Parts::of(threshold.signal)).await?;
        ranking::rank(&mut pods, &uses, threshold.signal, layout);
        let pod = pods.into_iter().find(|pod| !is_critical(pod))?;
        let uid = pod.metadata.uid.clone();
        let seen = snapshot.observations.get(&threshold.signal);
        let made = message::of(&pod, uses.get(&uid), threshold, seen);
        let grace = if threshold.grace.is_zero() { AT_ONCE } else { self.soft_grace(&pod) };
        let age = seen.map(|seen| self.clock.wall().duration_since(seen.at).unwrap_or_default());
        (self.count)(threshold.signal.name(), age);
        self.evict(&pod, grace, made.message.clone(), Some(made.message), made.annotations).await;
        Some(uid)
    }

    /// What pods use; the runtime is left alone where there are none.
    async fn uses(&self, pods: &[Arc<Pod>], parts: Parts) -> Option<PodUses> {
        if pods.is_empty() {
            return Some(PodUses::new());
        }
        measured(self.gauge.pods(pods, parts).await)
    }

    fn soft_grace(&self, pod: &Pod) -> i64 {
        let most = self.settings.max_pod_grace;
        pod.spec.termination_grace_period_seconds.map_or(most, |own| own.min(most))
    }

    async fn evict(
        &self,
        pod: &Pod,
        grace: i64,
        message: String,
        condition_message: Option<String>,
        annotations: BTreeMap<String, String>,
    ) {
        let (name, namespace) = (&pod.metadata.name, &pod.metadata.namespace);
        tracing::warn!(pod = %name, %namespace, message, "Eviction manager: evicting pod");
        let eviction =
            Eviction { reason: "Evicted".to_owned(), message, grace: Some(grace), condition_message, annotations };
        if let Err(error) = self.pods.evict(&pod.metadata.uid, eviction).await {
            // It goes on ending, and counts as evicted.
            tracing::error!(pod = %name, %namespace, %error, "Eviction manager: pod failed to evict");
        }
    }

    async fn wait_until_clean(&self, uids: &[String]) {
        let cleaned = async {
            while !uids.iter().all(|uid| self.pods.is_clean(uid)) {
                tokio::time::sleep(CLEAN_POLL).await;
            }
        };
        if tokio::time::timeout(CLEAN_LIMIT, cleaned).await.is_err() {
            tracing::warn!(pods = ?uids, "Eviction manager: timed out waiting for pods to be cleaned up");
        }
    }
}

fn measured<T>(found: Result<T, CriError>) -> Option<T> {
    found.inspect_err(|error| tracing::error!(%error, "Eviction manager: failed to get summary stats")).ok()
}

/// What to remove before pods have to go.
fn wastes(signal: Signal, layout: FileSystems) -> Vec<Waste> {
    use Signal::{ImagefsAvailable, ImagefsInodesFree, NodefsAvailable, NodefsInodesFree};
    if signal.condition() != "DiskPressure" {
        return Vec::new();
    }
    let (nodefs, imagefs) =
        (matches!(signal, NodefsAvailable | NodefsInodesFree), matches!(signal, ImagefsAvailable | ImagefsInodesFree));
    match layout {
        FileSystems::Images if nodefs => Vec::new(),
        FileSystems::One | FileSystems::Images => vec![Waste::Containers, Waste::Images],
        FileSystems::Split if imagefs => vec![Waste::Images],
        FileSystems::Split => vec![Waste::Containers],
    }
}
