//! What this controller wrote, to know a cache that has not seen it yet, and changes that others made.

use std::collections::HashMap;
use std::sync::Arc;

use api_types::discovery_v1::EndpointSlice;
use client::ObjectKey;
use parking_lot::Mutex;

/// What is expected of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// At least this generation.
    Generation(i64),
    /// That it goes.
    Deletion,
}

/// Slices by service and uid. Bounded by the slices that exist: services and slices that are gone are forgotten.
#[derive(Default)]
pub(super) struct Tracker(Mutex<HashMap<ObjectKey, HashMap<String, Expected>>>);

impl Tracker {
    /// A slice was written.
    pub(super) fn written(&self, key: &ObjectKey, slice: &EndpointSlice) {
        let mut services = self.0.lock();
        let slices = services.entry(key.clone()).or_default();
        slices.insert(slice.metadata.uid.clone(), Expected::Generation(slice.metadata.generation));
    }

    /// A slice was deleted.
    pub(super) fn deleted(&self, key: &ObjectKey, slice: &EndpointSlice) {
        let mut services = self.0.lock();
        services.entry(key.clone()).or_default().insert(slice.metadata.uid.clone(), Expected::Deletion);
    }

    /// A service is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }

    /// Whether the cache has not seen yet what was written.
    pub(super) fn is_stale(&self, key: &ObjectKey, slices: &[Arc<EndpointSlice>]) -> bool {
        let services = self.0.lock();
        let Some(tracked) = services.get(key) else { return false };
        let behind = |slice: &Arc<EndpointSlice>| match tracked.get(&slice.metadata.uid) {
            Some(Expected::Deletion) => true,
            Some(Expected::Generation(generation)) => slice.metadata.generation < *generation,
            None => false,
        };
        let missing = |(uid, expected): (&String, &Expected)| {
            *expected != Expected::Deletion && !slices.iter().any(|slice| slice.metadata.uid == *uid)
        };
        slices.iter().any(behind) || tracked.iter().any(missing)
    }

    /// Whether the slice is newer than what was written.
    pub(super) fn is_foreign(&self, key: &ObjectKey, slice: &EndpointSlice) -> bool {
        match self.0.lock().get(key).and_then(|tracked| tracked.get(&slice.metadata.uid)) {
            Some(Expected::Generation(generation)) => slice.metadata.generation > *generation,
            Some(Expected::Deletion) => false,
            None => true,
        }
    }

    /// Takes note of a deletion; says whether it came from somebody else.
    pub(super) fn deletion_is_foreign(&self, key: &ObjectKey, slice: &EndpointSlice) -> bool {
        let mut services = self.0.lock();
        let known = services.get_mut(key).and_then(|tracked| tracked.remove(&slice.metadata.uid));
        matches!(known, Some(Expected::Generation(_)))
    }
}
