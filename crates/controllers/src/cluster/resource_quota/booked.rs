//! Counts quotas anew after somebody else has written their status. Admission books what it lets through before it is
//! there; a deletion that was counted before that booking was seen here found nothing to release, and what was booked for
//! an object that never came would stay. So each booking is looked into, but only once it has been quiet for a while: what
//! was booked last may not be here yet. Until then what was booked lately is not taken for gone unless it was seen to go:
//! else a quota would lose the booking of an object that is on its way, and let one too many through.

use std::collections::{BTreeMap, VecDeque};
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
/// Bookings of so long are remembered as one.
const GATHERED: Duration = Duration::from_millis(100);

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
    /// What others have booked of late.
    bookings: VecDeque<Booking>,
    /// What was seen to go since this controller wrote last.
    released: ResourceList,
}

/// Bookings that came close together.
struct Booking {
    first: Instant,
    last: Instant,
    usage: ResourceList,
}

impl Writes {
    fn note_booked(&mut self, now: Instant, usage: ResourceList) {
        self.forget_settled(now);
        match self.bookings.back_mut() {
            Some(own) if now.saturating_duration_since(own.first) < GATHERED => {
                own.last = now;
                pod_requests::add(&mut own.usage, &usage);
            }
            _ => self.bookings.push_back(Booking { first: now, last: now, usage }),
        }
    }

    fn forget_settled(&mut self, now: Instant) {
        while self.bookings.front().is_some_and(|own| rest_of(own.last, now).is_zero()) {
            self.bookings.pop_front();
        }
    }
}

/// How long it is until what was booked then has settled.
fn rest_of(booked: Instant, now: Instant) -> Duration {
    SETTLED.saturating_sub(now.saturating_duration_since(booked))
}

/// What a count needs to know of a quota besides what is there.
#[derive(Default)]
pub(super) struct Since {
    /// What was seen to go since this controller wrote last.
    released: ResourceList,
    /// What was booked of late, and may be on its way.
    booked: ResourceList,
}

impl Since {
    /// Raises what was counted to what must stay booked: what was used but for what went, as far as it may be on its way.
    pub(super) fn raise(&self, quota: &ResourceQuota, counted: &mut ResourceList) {
        let left = pod_requests::less(&quota.status.used, &self.released);
        for (name, amount) in counted {
            let mut most = amount.clone();
            most.add(&pod_requests::amount(&self.booked, name));
            *amount = pod_requests::amount(&left, name).min(most).max(amount.clone());
        }
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
        let (new, booked) = match change {
            Change::Deleted { .. } => return drop(quotas.remove(&key)),
            // When it was booked is not known.
            Change::Added { object, .. } => (object, Some(object.status.used.clone())),
            Change::Updated { old, new } if old.status == new.status => (new, None),
            Change::Updated { old, new } => (new, Some(pod_requests::less(&new.status.used, &old.status.used))),
        };
        let writes = quotas.entry(key.clone()).or_default();
        writes.seen.clone_from(&new.metadata.resource_version);
        if let Some(booked) = booked.filter(|_| writes.own != writes.seen) {
            let now = self.clock.monotonic();
            writes.note_booked(now, booked);
            writes.foreign = Some(now);
            self.queue.add_after(key, SETTLED);
        }
    }

    /// What a count of the quota as it was read needs to know. [`Self::finish`] ends it.
    pub(super) fn begin(&self, key: &ObjectKey, quota: &ResourceQuota) -> Since {
        let mut quotas = self.quotas.lock();
        let all = || quota.status.used.clone();
        let Some(writes) = quotas.get_mut(key) else { return Since { booked: all(), ..Since::default() } };
        let mut since = Since { released: std::mem::take(&mut writes.released), ..Since::default() };
        if writes.seen == quota.metadata.resource_version {
            writes.forget_settled(self.clock.monotonic());
            writes.bookings.iter().for_each(|own| pod_requests::add(&mut since.booked, &own.usage));
        } else {
            since.booked = all();
        }
        since
    }

    /// Usage has been written, or not. What went in the meantime stays noted where it may be booked in what was written.
    pub(super) fn finish(&self, key: &ObjectKey, since: Since, is_written: bool) {
        let mut quotas = self.quotas.lock();
        let Some(writes) = quotas.get_mut(key) else { return };
        if !is_written {
            pod_requests::add(&mut writes.released, &since.released);
        } else if since.booked.is_empty() {
            writes.released.clear();
        }
    }

    /// How long it is until the last booking has settled; nothing if there is none to look into. One that has settled is
    /// taken for looked into.
    fn rest(&self, key: &ObjectKey) -> Option<Duration> {
        let mut quotas = self.quotas.lock();
        let foreign = &mut quotas.get_mut(key)?.foreign;
        let rest = rest_of((*foreign)?, self.clock.monotonic());
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
