//! Whether an event is worth another attempt of a pod.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

use crate::framework::{ClusterEvent, EventObject, Hint, PreEnqueue, Profile, QueueSort, Registration, Status};
use crate::metrics::SchedulerMetrics;
use crate::pod_info::PodInfo;
use crate::queued_pod::QueuedPod;

/// What an event means to a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requeue {
    /// Nothing.
    Stay,
    /// It may be tried again when its back-off is over.
    AfterBackoff,
    /// It may be tried again at once.
    Now,
}

/// What the queue needs of the profiles.
pub(super) struct Rules {
    profiles: HashMap<String, ProfileRules>,
    sort: Arc<dyn QueueSort>,
    metrics: Arc<SchedulerMetrics>,
    /// Which hints and gates are samples.
    hints: AtomicU64,
    gates: AtomicU64,
}

/// It is noted of one in so many how long it took.
const CALLS_FOR_SAMPLE: u64 = 10;

fn is_sample(calls: &AtomicU64) -> bool {
    calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(CALLS_FOR_SAMPLE)
}

#[derive(Default)]
struct ProfileRules {
    registrations: Vec<(&'static str, Registration)>,
    pre_enqueue: Vec<(&'static str, Arc<dyn PreEnqueue>)>,
}

impl Rules {
    /// The rules of these profiles; the order of the queue is the first one's. None without profiles.
    pub(super) fn of(profiles: &[Arc<Profile>], metrics: &Arc<SchedulerMetrics>) -> Option<Self> {
        let sort = Arc::clone(&profiles.first()?.queue_sort);
        let rules = |profile: &Arc<Profile>| ProfileRules {
            registrations: profile.registrations.clone(),
            pre_enqueue: profile.pre_enqueue.iter().map(|at| (at.name, Arc::clone(&at.plugin))).collect(),
        };
        let profiles = profiles.iter().map(|profile| (profile.name.clone(), rules(profile))).collect();
        let (hints, gates) = (AtomicU64::new(0), AtomicU64::new(0));
        Some(Self { profiles, sort, metrics: Arc::clone(metrics), hints, gates })
    }

    /// The order of the active queue.
    pub(super) fn sort(&self) -> &dyn QueueSort {
        &*self.sort
    }

    /// Whether any plugin of any profile wants to hear of the event.
    pub(super) fn wanted(&self, event: &ClusterEvent) -> bool {
        event.is_wildcard() || self.profiles.values().any(|profile| profile.matching(event).next().is_some())
    }

    /// The decision.
    pub(super) fn decide(&self, pod: &QueuedPod, event: &ClusterEvent, object: &EventObject) -> Requeue {
        if !pod.was_rejected() {
            return Requeue::AfterBackoff;
        }
        if event.is_wildcard() {
            let other = object.pod().is_some_and(|target| target.metadata.uid != pod.info.uid());
            return if other { Requeue::Stay } else { Requeue::AfterBackoff };
        }
        let Some(profile) = self.profiles.get(&pod.info.pod.spec.scheduler_name) else { return Requeue::Stay };
        if !profile.passes_gate(pod, event) {
            return Requeue::Stay;
        }
        let mut decision = Requeue::Stay;
        for (plugin, registration) in profile.matching(event) {
            let pending = pod.pending_plugins.contains(plugin);
            if !pending && !pod.unschedulable_plugins.contains(plugin) {
                continue;
            }
            match self.hint(plugin, registration, pod, event, object) {
                Hint::Skip => {}
                Hint::Queue if pending => return Requeue::Now,
                Hint::Queue if pod.pending_plugins.is_empty() => return Requeue::AfterBackoff,
                Hint::Queue => decision = Requeue::AfterBackoff,
            }
        }
        decision
    }

    /// What an event means to a plugin that rejected the pod.
    fn hint(
        &self,
        plugin: &str,
        registration: &Registration,
        pod: &QueuedPod,
        event: &ClusterEvent,
        object: &EventObject,
    ) -> Hint {
        let started = is_sample(&self.hints).then(Instant::now);
        let hint = registration.hint.as_ref().map_or(Hint::Queue, |hint| hint(&pod.info.pod, object));
        if let Some(started) = started {
            self.metrics.hinted(plugin, &event.label(), hint == Hint::Queue, started.elapsed());
        }
        hint
    }

    /// Runs the pre-enqueue plugins; the one that held the pod back before goes first.
    pub(super) fn gate(&self, info: &PodInfo, before: Option<&'static str>) -> Result<(), Status> {
        let name = &info.pod.spec.scheduler_name;
        let Some(profile) = self.profiles.get(name) else { return Ok(()) };
        let began = Instant::now();
        let outcome = self.run_gates(profile, info, before);
        self.metrics.point("PreEnqueue", name, Status::label(&outcome), began.elapsed());
        outcome
    }

    fn run_gates(&self, profile: &ProfileRules, info: &PodInfo, before: Option<&'static str>) -> Result<(), Status> {
        let is_sampled = is_sample(&self.gates);
        let first = profile.pre_enqueue.iter().filter(|(name, _)| before == Some(name));
        let rest = profile.pre_enqueue.iter().filter(|(name, _)| before != Some(name));
        for (name, plugin) in first.chain(rest) {
            let started = is_sampled.then(Instant::now);
            let passed = plugin.pre_enqueue(info);
            if let Some(started) = started {
                self.metrics.plugin_ran(name, "PreEnqueue", Status::label(&passed), started.elapsed());
            }
            passed.map_err(|status| status.by(name))?;
        }
        Ok(())
    }
}

impl ProfileRules {
    fn matching<'a>(&'a self, event: &'a ClusterEvent) -> impl Iterator<Item = &'a (&'static str, Registration)> {
        self.registrations
            .iter()
            .filter(|(_, registration)| event.is_wanted_by(registration.resource, registration.action))
    }

    /// A pod that is held back only hears of what the plugin that holds it back wants to hear.
    fn passes_gate(&self, pod: &QueuedPod, event: &ClusterEvent) -> bool {
        pod.gating_plugin.is_none_or(|gate| self.matching(event).any(|(plugin, _)| *plugin == gate))
    }
}
