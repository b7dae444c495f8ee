//! Whether an event is worth another attempt of a pod.

use std::collections::HashMap;
use std::sync::Arc;

use crate::framework::{ClusterEvent, EventObject, Hint, PreEnqueue, Profile, QueueSort, Registration, Status};
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
}

#[derive(Default)]
struct ProfileRules {
    registrations: Vec<(&'static str, Registration)>,
    pre_enqueue: Vec<(&'static str, Arc<dyn PreEnqueue>)>,
}

impl Rules {
    /// The rules of these profiles; the order of the queue is the first one's. None without profiles.
    pub(super) fn of(profiles: &[Arc<Profile>]) -> Option<Self> {
        let sort = Arc::clone(&profiles.first()?.queue_sort);
        let rules = |profile: &Arc<Profile>| ProfileRules {
            registrations: profile.registrations.clone(),
            pre_enqueue: profile.pre_enqueue.iter().map(|at| (at.name, Arc::clone(&at.plugin))).collect(),
        };
        Some(Self { profiles: profiles.iter().map(|profile| (profile.name.clone(), rules(profile))).collect(), sort })
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
            let hint = registration.hint.as_ref().map_or(Hint::Queue, |hint| hint(&pod.info.pod, object));
            match hint {
                Hint::Skip => {}
                Hint::Queue if pending => return Requeue::Now,
                Hint::Queue if pod.pending_plugins.is_empty() => return Requeue::AfterBackoff,
                Hint::Queue => decision = Requeue::AfterBackoff,
            }
        }
        decision
    }

    /// Runs the pre-enqueue plugins; the one that held the pod back before goes first.
    pub(super) fn gate(&self, info: &PodInfo, before: Option<&'static str>) -> Result<(), Status> {
        let Some(profile) = self.profiles.get(&info.pod.spec.scheduler_name) else { return Ok(()) };
        let first = profile.pre_enqueue.iter().filter(|(name, _)| before == Some(name));
        let rest = profile.pre_enqueue.iter().filter(|(name, _)| before != Some(name));
        for (name, plugin) in first.chain(rest) {
            plugin.pre_enqueue(info).map_err(|status| status.by(name))?;
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
