//! The loop of one family: collects what changed, waits its turn, syncs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::CancellationToken;
use client::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::engine::{Engine, Source};
use crate::health::Health;
use crate::health_ports::HealthPorts;

/// Without any change everything is looked at again after this long.
const IDLE: Duration = Duration::from_secs(3600);
/// Emptied chains are deleted soon after.
const STALE_POLL: Duration = Duration::from_secs(2);

/// The Services that changed since the last sync; at most as many as there are.
#[derive(Default)]
pub struct Pending {
    changed: Mutex<BTreeSet<ObjectKey>>,
    wake: Notify,
}

impl Pending {
    /// A Service or one of its slices changed.
    pub fn add(&self, key: ObjectKey) {
        self.changed.lock().insert(key);
        self.wake.notify_one();
    }

    fn take(&self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut *self.changed.lock())
    }

    fn put_back(&self, keys: BTreeSet<ObjectKey>) {
        self.changed.lock().extend(keys);
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

/// Runs until cancelled.
pub async fn run(
    mut engine: Engine,
    mut ports: HealthPorts,
    source: Arc<dyn Source>,
    pending: Arc<Pending>,
    health: Arc<Health>,
    pace: Pace,
    stop: CancellationToken,
) {
    let mut failed = false;
    let mut first = true;
    loop {
        let limit = match (failed, engine.has_stale()) {
            (true, _) => pace.retry,
            (false, true) => STALE_POLL,
            (false, false) => IDLE,
        };
        if !std::mem::take(&mut first) {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = pending.wake.notified() => {}
                () = tokio::time::sleep(limit) => {}
            }
        }
        let changed = pending.take();
        let start = Instant::now();
        match engine.sync(source.as_ref(), &changed, start).await {
            Ok(()) => {
                failed = false;
                health.synced(engine.family());
                ports.sync(&engine.checks()).await;
                tracing::debug!(family = engine.family().api_name(), changed = changed.len(), "synced");
            }
            Err(error) => {
                failed = true;
                pending.put_back(changed);
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
