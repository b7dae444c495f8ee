//! What this controller wrote, to know a cache that has not seen it yet, and changes that others made.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use api_types::discovery_v1::EndpointSlice;
use client::{Change, ObjectKey};
use parking_lot::Mutex;

/// What is expected of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// At least this generation, in a cache that has come to this version. One that has and does not have the slice has
    /// seen it go, or never needed to see it.
    Generation(i64, u64),
    /// That it goes.
    Deletion,
}

/// Bounded by the slices that exist: services and slices that are gone are forgotten.
#[derive(Default)]
pub(in crate::network) struct Tracker(Mutex<State>);

#[derive(Default)]
struct State {
    /// What is expected of slices, by service and uid.
    services: HashMap<ObjectKey, HashMap<String, Expected>>,
    /// Services that could not be looked at because the cache was behind. Its next event is to bring them back, as
    /// their retries may be many minutes apart by then.
    waiting: HashSet<ObjectKey>,
}

impl Tracker {
    /// A slice was written.
    pub(in crate::network) fn written(&self, key: &ObjectKey, slice: &EndpointSlice) {
        let services = &mut self.0.lock().services;
        let slices = services.entry(key.clone()).or_default();
        let version = slice.metadata.resource_version.parse().unwrap_or(0);
        slices.insert(slice.metadata.uid.clone(), Expected::Generation(slice.metadata.generation, version));
    }

    /// A slice was deleted.
    pub(in crate::network) fn deleted(&self, key: &ObjectKey, slice: &EndpointSlice) {
        let services = &mut self.0.lock().services;
        services.entry(key.clone()).or_default().insert(slice.metadata.uid.clone(), Expected::Deletion);
    }

    /// The services that a change of a slice calls for a look at; `of` finds a slice's own.
    pub(in crate::network) fn touched(
        &self,
        change: &Change<EndpointSlice>,
        of: impl Fn(&EndpointSlice) -> Option<ObjectKey>,
    ) -> Vec<ObjectKey> {
        let object = change.object();
        let (before, now) = (change.old().and_then(|old| of(old)), of(object));
        if change.old().is_some() && before != now {
            // The cache will never show it there again.
            before.iter().for_each(|key| self.moved_away(key, object));
            return before.into_iter().chain(now).collect();
        }
        let news = |key: &ObjectKey| match change {
            Change::Deleted { .. } => self.deletion_is_news(key, object),
            _ => self.is_news(key, object),
        };
        now.filter(news).into_iter().collect()
    }

    fn moved_away(&self, key: &ObjectKey, slice: &EndpointSlice) {
        let mut state = self.0.lock();
        if let Some(tracked) = state.services.get_mut(key) {
            tracked.remove(&slice.metadata.uid);
        }
        state.waiting.remove(key);
    }

    /// A service is gone.
    pub(in crate::network) fn forget(&self, key: &ObjectKey) {
        let mut state = self.0.lock();
        state.services.remove(key);
        state.waiting.remove(key);
    }

    /// Whether the cache has not seen yet what was written; if so, the next event of a slice is news. `version` is what
    /// the cache was at, no later than when `slices` were taken from it.
    pub(in crate::network) fn is_stale(&self, key: &ObjectKey, slices: &[Arc<EndpointSlice>], version: &str) -> bool {
        let mut state = self.0.lock();
        let Some(tracked) = state.services.get_mut(key) else { return false };
        let there: HashSet<&str> = slices.iter().map(|slice| slice.metadata.uid.as_str()).collect();
        // A version that cannot be compared does not block.
        let version = version.parse().unwrap_or(u64::MAX);
        tracked.retain(|uid, expected| {
            there.contains(uid.as_str()) || matches!(expected, Expected::Generation(_, written) if *written > version)
        });
        let behind = |slice: &Arc<EndpointSlice>| match tracked.get(&slice.metadata.uid) {
            // One that goes may stay for as long as somebody else's finalizer holds it.
            Some(Expected::Deletion) => slice.metadata.deletion_timestamp.is_none(),
            Some(Expected::Generation(generation, _)) => slice.metadata.generation < *generation,
            None => false,
        };
        let stale = slices.iter().any(behind) || tracked.keys().any(|uid| !there.contains(uid.as_str()));
        if stale {
            state.waiting.insert(key.clone());
        }
        stale
    }

    /// Whether an event of a slice calls for a look at the service: the slice is newer than what was written, or the
    /// service waits for the cache.
    fn is_news(&self, key: &ObjectKey, slice: &EndpointSlice) -> bool {
        let mut state = self.0.lock();
        let foreign = match state.services.get(key).and_then(|tracked| tracked.get(&slice.metadata.uid)) {
            Some(Expected::Generation(generation, _)) => slice.metadata.generation > *generation,
            Some(Expected::Deletion) => false,
            None => true,
        };
        state.waiting.remove(key) || foreign
    }

    /// Takes note of a deletion; says whether it calls for a look at the service, as [`Tracker::is_news`].
    fn deletion_is_news(&self, key: &ObjectKey, slice: &EndpointSlice) -> bool {
        let mut state = self.0.lock();
        let known = state.services.get_mut(key).and_then(|tracked| tracked.remove(&slice.metadata.uid));
        state.waiting.remove(key) || matches!(known, Some(Expected::Generation(..)))
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::ObjectMeta;
    use api_machinery::time::Time;

    use super::*;

    fn slice(generation: i64) -> EndpointSlice {
        let mut slice = EndpointSlice::default();
        (slice.metadata.uid, slice.metadata.generation) = ("1".into(), generation);
        slice.metadata.resource_version = (10 * generation).to_string();
        slice
    }

    #[test]
    fn a_slice_that_was_given_to_another_service_is_not_waited_for() {
        let (tracker, key) = (Tracker::default(), ObjectKey::new("ns", "a"));
        let of = |slice: &EndpointSlice| slice.metadata.labels.get("of").map(|name| ObjectKey::new("ns", name.clone()));
        let given = |name: &str, generation| {
            let mut slice = slice(generation);
            slice.metadata.labels.insert("of".into(), name.into());
            Arc::new(slice)
        };
        tracker.written(&key, &slice(1));
        let change = Change::Updated { old: given("a", 1), new: given("b", 2) };
        assert_eq!(tracker.touched(&change, of), [key.clone(), ObjectKey::new("ns", "b")]);
        assert!(!tracker.is_stale(&key, &[], "0"));
    }

    #[test]
    fn a_slice_that_was_gone_before_the_answer_came_is_not_waited_for() {
        let (tracker, key) = (Tracker::default(), ObjectKey::new("ns", "a"));
        assert!(!tracker.deletion_is_news(&key, &slice(1)), "nobody knows it yet");
        tracker.written(&key, &slice(1));
        assert!(tracker.is_stale(&key, &[], "9"), "the cache may be about to show it");
        assert!(!tracker.is_stale(&key, &[], "10"), "the cache has seen all that was written");
        tracker.deleted(&key, &slice(1));
        assert!(!tracker.is_stale(&key, &[], "11"));
        assert!(tracker.0.lock().services[&key].is_empty(), "what is gone is forgotten");
    }

    #[test]
    fn a_slice_that_somebody_holds_back_from_going_is_not_waited_for() {
        let (tracker, key) = (Tracker::default(), ObjectKey::new("ns", "a"));
        tracker.deleted(&key, &slice(1));
        let held = EndpointSlice { metadata: dying(slice(2).metadata), ..slice(2) };
        assert!(tracker.is_stale(&key, &[Arc::new(slice(1))], "10"), "the cache is to show that it goes");
        assert!(!tracker.is_stale(&key, &[Arc::new(held)], "20"));
    }

    fn dying(meta: ObjectMeta) -> ObjectMeta {
        ObjectMeta { deletion_timestamp: Some(Time::from_unix_seconds(1)), ..meta }
    }

    #[test]
    fn a_service_that_waits_for_the_cache_comes_back_with_it() {
        let (tracker, key) = (Tracker::default(), ObjectKey::new("ns", "a"));
        tracker.written(&key, &slice(2));
        assert!(!tracker.is_news(&key, &slice(2)), "one's own write");
        assert!(tracker.is_news(&key, &slice(3)), "somebody else's write");
        assert!(!tracker.is_stale(&key, &[Arc::new(slice(2))], "20"));
        assert!(tracker.is_stale(&key, &[Arc::new(slice(1))], "10"));
        assert!(tracker.is_news(&key, &slice(2)), "the service waits for it");
        assert!(!tracker.is_news(&key, &slice(2)), "nothing waits any more");
        tracker.deleted(&key, &slice(2));
        assert!(tracker.is_stale(&key, &[Arc::new(slice(2))], "20"));
        assert!(tracker.deletion_is_news(&key, &slice(2)), "the service waits for it");
        assert!(!tracker.deletion_is_news(&key, &slice(2)));
    }
}
