//! Counts quotas anew after somebody else has written their status. Admission books what it lets through before it is
//! there; a deletion that was counted before that booking was seen here found nothing to release, and what was booked for
//! an object that never came would stay. So each booking is looked into, but only once it has been quiet for a while: what
//! was booked last may not be here yet. Until then a quota is lowered by what was seen to go and no further: counted by
//! what is known here, it would lose the booking of an object that is on its way, and let one too many through.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{ResourceList, ResourceQuota};
use base::SharedClock;
use client::{Change, ObjectKey};
use component_helpers::pod_requests;
use controller::{Controller, Cx, Next, Queue, ReconcileError};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Quotas;

/// For how long nobody may have booked anything before it is counted.
const SETTLED: Duration = Duration::from_secs(2);

/// What is known of who wrote the status of quotas.
pub(super) struct Booked {
    clock: SharedClock,
    queue: Queue,
    quotas: Mutex<BTreeMap<ObjectKey, Writes>>,
}

#[derive(Default)]
struct Writes {
    /// The version that this controller wrote last.
    own: String,
    /// The version that was seen last.
    seen: String,
    /// When somebody else did last, until it is looked into.
    foreign: Option<Instant>,
    /// What was seen to go since this controller wrote last.
    released: ResourceList,
}

/// What a count may take from the usage of a quota.
pub(super) enum Mandate {
    /// All that is not there: no object is on its way.
    All,
    /// What was seen to go.
    Released(ResourceList),
}

impl Mandate {
    /// Raises what was counted to what must stay booked.
    pub(super) fn raise(&self, quota: &ResourceQuota, usage: &mut ResourceList) {
        let Self::Released(released) = self else { return };
        let mut kept = pod_requests::less(&quota.status.used, released);
        kept.retain(|name, _| usage.contains_key(name));
        pod_requests::raise(usage, &kept);
    }
}

impl Booked {
    pub(super) fn new(clock: &SharedClock, queue: &Queue) -> Self {
        Self { clock: Arc::clone(clock), queue: queue.clone(), quotas: Mutex::default() }
    }

    /// This controller wrote a quota.
    pub(super) fn note_own(&self, key: &ObjectKey, version: &str) {
        if let Some(writes) = self.quotas.lock().get_mut(key) {
            version.clone_into(&mut writes.own);
        }
    }

    /// Something that a quota counts has gone.
    pub(super) fn note_released(&self, key: &ObjectKey, usage: &ResourceList) {
        if let Some(writes) = self.quotas.lock().get_mut(key) {
            pod_requests::add(&mut writes.released, usage);
        }
    }

    /// A quota has changed.
    pub(super) fn notice(&self, change: &Change<ResourceQuota>) {
        let key = change.key();
        let mut quotas = self.quotas.lock();
        if matches!(change, Change::Deleted { .. }) {
            quotas.remove(&key);
            return;
        }
        let writes = quotas.entry(key.clone()).or_default();
        let new = change.object();
        writes.seen.clone_from(&new.metadata.resource_version);
        let is_written = match change {
            Change::Updated { old, .. } => old.status != new.status,
            // Who wrote it, and when, is not known.
            Change::Added { .. } | Change::Deleted { .. } => true,
        };
        if is_written && writes.own != writes.seen {
            writes.foreign = Some(self.clock.monotonic());
            self.queue.add_after(key, SETTLED);
        }
    }

    /// What a count of the quota as it was read may take from it. [`Self::finish`] ends it.
    pub(super) fn begin(&self, key: &ObjectKey, quota: &ResourceQuota) -> Mandate {
        let mut quotas = self.quotas.lock();
        let Some(writes) = quotas.get_mut(key) else { return Mandate::Released(ResourceList::new()) };
        let is_quiet = writes.foreign.is_none_or(|at| self.rest_of(at).is_zero());
        if is_quiet && writes.seen == quota.metadata.resource_version {
            return Mandate::All;
        }
        Mandate::Released(std::mem::take(&mut writes.released))
    }

    /// Usage has been written, or not. What went in the meantime stays noted where that is not sure to be in the count.
    pub(super) fn finish(&self, key: &ObjectKey, mandate: Mandate, is_written: bool) {
        let mut quotas = self.quotas.lock();
        let Some(writes) = quotas.get_mut(key) else { return };
        match (mandate, is_written) {
            (Mandate::All, true) => writes.released.clear(),
            (Mandate::Released(released), false) => pod_requests::add(&mut writes.released, &released),
            (Mandate::All, false) | (Mandate::Released(_), true) => {}
        }
    }

    fn rest_of(&self, foreign: Instant) -> Duration {
        SETTLED.saturating_sub(self.clock.monotonic().saturating_duration_since(foreign))
    }

    /// How long it is until the last booking has settled; nothing if there is none to look into. One that has settled is
    /// taken for looked into.
    fn rest(&self, key: &ObjectKey) -> Option<Duration> {
        let mut quotas = self.quotas.lock();
        let foreign = &mut quotas.get_mut(key)?.foreign;
        let rest = self.rest_of((*foreign)?);
        if rest.is_zero() {
            *foreign = None;
        }
        Some(rest)
    }
}

/// Looks into bookings.
pub(super) struct Recount(pub(super) Arc<Quotas>);

#[async_trait::async_trait]
impl Controller for Recount {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        match self.0.booked.rest(key) {
            Some(rest) if !rest.is_zero() => Ok(Next::After(rest)),
            // Also after a failure, which asks for the same key again.
            _ => self.0.reconcile(cx, key).await,
        }
    }
}
