//! Counts quotas anew after somebody else has written their status. Admission books what it lets through before it is
//! there; a deletion that was counted before that booking was seen here found nothing to release, and what was booked for
//! an object that never came would stay. So each booking is looked into, but only once it has been quiet for a while: what
//! was booked last may not be here yet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::ResourceQuota;
use base::SharedClock;
use client::{Change, ObjectKey};
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
    /// When somebody else did last, until it is looked into.
    foreign: Option<Instant>,
}

impl Booked {
    pub(super) fn new(clock: &SharedClock, queue: &Queue) -> Self {
        Self { clock: Arc::clone(clock), queue: queue.clone(), quotas: Mutex::default() }
    }

    /// This controller wrote a quota.
    pub(super) fn note_own(&self, key: &ObjectKey, version: &str) {
        version.clone_into(&mut self.quotas.lock().entry(key.clone()).or_default().own);
    }

    /// A quota has changed.
    pub(super) fn notice(&self, change: &Change<ResourceQuota>) {
        let key = change.key();
        match change {
            Change::Added { .. } => {}
            Change::Deleted { .. } => drop(self.quotas.lock().remove(&key)),
            Change::Updated { old, new } => {
                if old.status == new.status {
                    return;
                }
                let mut quotas = self.quotas.lock();
                let writes = quotas.entry(key.clone()).or_default();
                if writes.own != new.metadata.resource_version {
                    writes.foreign = Some(self.clock.monotonic());
                    self.queue.add_after(key, SETTLED);
                }
            }
        }
    }

    /// How long it is until the last booking has settled; nothing if there is none to look into. One that has settled is
    /// taken for looked into.
    fn rest(&self, key: &ObjectKey) -> Option<Duration> {
        let mut quotas = self.quotas.lock();
        let foreign = &mut quotas.get_mut(key)?.foreign;
        let rest = SETTLED.saturating_sub(self.clock.monotonic().saturating_duration_since((*foreign)?));
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
