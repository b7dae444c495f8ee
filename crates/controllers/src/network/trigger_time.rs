//! The annotation that tells which change of a pod or service an object reflects first, for latency figures.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;
use api_types::core_v1::constants::ENDPOINTS_LAST_CHANGE_TRIGGER_TIME;
use api_types::core_v1::{Pod, Service};
use client::ObjectKey;
use component_helpers::conditions;
use parking_lot::Mutex;

/// What was seen of each service. Bounded by the services that exist: who is gone is forgotten.
#[derive(Default)]
pub(super) struct TriggerTimes(Mutex<HashMap<ObjectKey, Seen>>);

struct Seen {
    service: Time,
    pods: BTreeMap<String, Time>,
}

impl TriggerTimes {
    /// The earliest change since the last call, if there is one.
    pub(super) fn of(&self, key: &ObjectKey, service: &Service, pods: &[Arc<Pod>]) -> Option<Time> {
        let own = service.metadata.creation_timestamp;
        let ready = |pod: &Arc<Pod>| {
            let at = conditions::find(&pod.status.conditions, "Ready").map(|ready| ready.last_transition_time);
            (pod.metadata.name.clone(), at.unwrap_or_default())
        };
        let now = Seen { service: own, pods: pods.iter().map(ready).collect() };
        let mut seen = self.0.lock();
        let Some(before) = seen.get(key) else {
            seen.insert(key.clone(), now);
            return (!own.is_zero()).then_some(own);
        };
        let newer = |(name, at): (&String, &Time)| {
            let known = before.pods.get(name).copied().unwrap_or_default();
            (*at > known).then_some(*at)
        };
        let earliest = now.pods.iter().filter_map(newer).chain((own > before.service).then_some(own)).min();
        seen.insert(key.clone(), now);
        earliest
    }

    /// Forgets a service.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}

/// Sets the annotation, or removes it where there is no time.
pub(super) fn annotate(meta: &mut ObjectMeta, time: Option<Time>) {
    match time {
        Some(time) => meta.annotations.insert(ENDPOINTS_LAST_CHANGE_TRIGGER_TIME.to_owned(), time.to_string()),
        None => meta.annotations.remove(ENDPOINTS_LAST_CHANGE_TRIGGER_TIME),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::fixtures::{at, meta, ready};

    #[test]
    fn the_earliest_news_counts() {
        let times = TriggerTimes::default();
        let mut service = Service { metadata: meta("s"), ..Service::default() };
        service.metadata.creation_timestamp = at(100);
        let key = ObjectKey::of(&service.metadata);
        let pod = |name: &str, since| Arc::new(ready(Pod { metadata: meta(name), ..Pod::default() }, since));
        assert_eq!(times.of(&key, &service, &[]), Some(at(100)), "first seen");
        assert_eq!(times.of(&key, &service, &[pod("a", 207), pod("b", 205)]), Some(at(205)));
        assert_eq!(times.of(&key, &service, &[pod("a", 207), pod("b", 205)]), None, "nothing new");
        assert_eq!(times.of(&key, &service, &[pod("a", 300), pod("b", 205)]), Some(at(300)));
        times.forget(&key);
        assert_eq!(times.of(&key, &service, &[pod("a", 300)]), Some(at(100)));
    }
}
