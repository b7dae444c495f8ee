//! The loop of one family: collects what changed, waits its turn, syncs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use base::{CancellationToken, SharedClock};
use client::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::engine::{Engine, Source};
use crate::health::Health;
use crate::health_ports::HealthPorts;
use crate::metrics::{ProxyMetrics, Synced};

/// Without any change everything is looked at again after this long.
const IDLE: Duration = Duration::from_secs(3600);
/// Most times of changes that are kept for the metric of how long rules take; further ones do not count.
const MAX_TRIGGERS: usize = 10_000;
/// Emptied chains are deleted soon after.
const STALE_POLL: Duration = Duration::from_secs(2);

/// The Services that changed since the last sync; at most as many as there are.
#[derive(Default)]
pub struct Pending {
    changed: Mutex<BTreeSet<ObjectKey>>,
    /// When what changed happened, where the endpoints tell.
    triggers: Mutex<Vec<Time>>,
    /// The zone that the node has moved to.
    zone: Mutex<Option<String>>,
    wake: Notify,
}

impl Pending {
    /// A Service or one of its slices changed.
    pub fn add(&self, key: ObjectKey) {
        self.changed.lock().insert(key);
        self.wake.notify_one();
    }

    /// Something that is no Service's changed: a sync looks at it, whatever else there is to do.
    pub fn nudge(&self) {
        self.wake.notify_one();
    }

    /// A change whose rules are waited for happened at this time.
    pub fn triggered(&self, at: Time) {
        let mut triggers = self.triggers.lock();
        if triggers.len() < MAX_TRIGGERS {
            triggers.push(at);
        }
    }

    /// The node is in this zone now.
    pub fn moved(&self, zone: &str) {
        *self.zone.lock() = Some(zone.to_owned());
        self.wake.notify_one();
    }

    fn take(&self) -> (BTreeSet<ObjectKey>, Vec<Time>) {
        (std::mem::take(&mut *self.changed.lock()), std::mem::take(&mut *self.triggers.lock()))
    }

    fn put_back(&self, (keys, triggers): (BTreeSet<ObjectKey>, Vec<Time>)) {
        self.changed.lock().extend(keys);
        for at in triggers {
            self.triggered(at);
        }
    }
}

/// How often a family may and must sync.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The shortest time between two syncs.
    pub min: Duration,
    /// The longest time until a failed sync is tried again.
    pub retry: Duration,
}

/// Who hears of syncs.
#[derive(Clone)]
pub struct Reports {
    /// The health of the process.
    pub health: Arc<Health>,
    /// Its metrics.
    pub metrics: Arc<ProxyMetrics>,
    /// Wall time.
    pub clock: SharedClock,
}

impl Reports {
    /// Seconds since 1970.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let since = self.clock.wall().duration_since(std::time::UNIX_EPOCH);
        since.map(|since| since.as_secs_f64()).unwrap_or_default()
    }

    fn synced(&self, engine: &Engine, triggers: Vec<Time>) {
        let now = Time::from(self.clock.wall());
        self.health.synced(engine.family());
        self.metrics.without_local(engine.family(), engine.without_local());
        for at in triggers {
            self.metrics.programmed(engine.family(), now.since(at).as_secs_f64());
        }
    }
}

/// Runs until cancelled.
pub async fn run(
    mut engine: Engine,
    mut ports: HealthPorts,
    source: Arc<dyn Source>,
    pending: Arc<Pending>,
    reports: Reports,
    pace: Pace,
    stop: CancellationToken,
) {
    let mut failed = false;
    let mut first = true;
    loop {
        let limit = if failed {
            pace.retry
        } else if engine.has_stale() {
            STALE_POLL
        } else {
            IDLE
        };
        if !std::mem::take(&mut first) {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = pending.wake.notified() => {}
                () = tokio::time::sleep(limit) => {}
            }
        }
        let zone = pending.zone.lock().take();
        zone.into_iter().for_each(|zone| engine.move_to(zone));
        let (changed, triggers) = pending.take();
        let start = Instant::now();
        let full = engine.needs_full(start);
        let outcome = engine.sync(source.as_ref(), &changed, start).await;
        let synced = Synced { full, took: start.elapsed(), succeeded: outcome.is_ok() };
        reports.metrics.synced(engine.family(), synced, reports.seconds());
        reports.metrics.counted(engine.family(), engine.take_counts());
        match outcome {
            Ok(()) => {
                failed = false;
                reports.synced(&engine, triggers);
                ports.sync(&engine.checks()).await;
                tracing::debug!(family = engine.family().api_name(), changed = changed.len(), "synced");
            }
            Err(error) => {
                failed = true;
                pending.put_back((changed, triggers));
                tracing::error!(error = %error, family = engine.family().api_name(), "sync failed");
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pace.min) => {}
        }
    }
}
