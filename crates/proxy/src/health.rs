//! Whether the proxy keeps up: each family is healthy unless a change has waited too long for its sync.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use base::SharedClock;
use component_base::serving::{Body, Response, full};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Family;

/// The health of all families, shared by their loops and the server.
pub struct Health {
    clock: SharedClock,
    timeout: Duration,
    families: Mutex<BTreeMap<Family, Progress>>,
    eligible: Mutex<bool>,
}

#[derive(Clone, Copy)]
struct Progress {
    updated: Time,
    oldest_waiting: Option<Instant>,
}

impl Health {
    /// Health that tolerates changes waiting for `timeout`.
    #[must_use]
    pub fn new(clock: SharedClock, timeout: Duration) -> Arc<Self> {
        Arc::new(Self { clock, timeout, families: Mutex::default(), eligible: Mutex::new(true) })
    }

    fn now(&self) -> Time {
        Time::from(self.clock.wall())
    }

    /// A change waits for a sync of the family.
    pub fn queued(&self, family: Family) {
        let now = self.clock.monotonic();
        let fresh = Progress { updated: self.now(), oldest_waiting: None };
        self.families.lock().entry(family).or_insert(fresh).oldest_waiting.get_or_insert(now);
    }

    /// Everything that waited in the family is done.
    pub fn synced(&self, family: Family) {
        self.families.lock().insert(family, Progress { updated: self.now(), oldest_waiting: None });
    }

    /// Whether the node takes traffic from load balancers.
    pub fn set_eligible(&self, eligible: bool) {
        *self.eligible.lock() = eligible;
    }

    /// Whether every family keeps up.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.families.lock().values().all(|progress| self.keeps_up(progress))
    }

    fn keeps_up(&self, progress: &Progress) -> bool {
        let waited = |since: Instant| self.clock.monotonic().duration_since(since);
        progress.oldest_waiting.is_none_or(|since| waited(since) < self.timeout)
    }

    /// The answer to `/healthz` and `/livez`; nothing for other paths.
    #[must_use]
    pub fn answer(&self, path: &str) -> Option<Response> {
        let (with_node, ok) = match path {
            "/healthz" => (true, self.is_healthy() && *self.eligible.lock()),
            "/livez" => (false, self.is_healthy()),
            _ => return None,
        };
        let response = http::Response::builder()
            .status(if ok { 200 } else { 503 })
            .header("content-type", "application/json")
            .header("x-content-type-options", "nosniff")
            .body(full(self.document(with_node).to_string()));
        Some(response.unwrap_or_else(|_| http::Response::new(Body::default())))
    }

    fn document(&self, with_node: bool) -> Value {
        let (healthy, now) = (self.is_healthy(), self.now());
        let families = self.families.lock();
        let newest = families.values().map(|progress| progress.updated).max().unwrap_or_default();
        let status: serde_json::Map<String, Value> = families
            .iter()
            .map(|(family, progress)| {
                let own = json!({"lastUpdated": progress.updated.to_string(), "healthy": self.keeps_up(progress)});
                (family.api_name().to_owned(), own)
            })
            .collect();
        let updated = if healthy { now } else { newest };
        let mut document = json!({
            "lastUpdated": updated.to_string(),
            "currentTime": now.to_string(),
            "healthy": healthy,
            "status": status,
        });
        if with_node {
            document["nodeEligible"] = (*self.eligible.lock()).into();
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use base::TokioClock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_change_that_waits_too_long_is_unhealthy() {
        let health = Health::new(TokioClock::shared(), Duration::from_secs(60));
        let status = |path: &str| health.answer(path).map(|response| response.status().as_u16());
        health.synced(Family::V4);
        assert_eq!((status("/healthz"), status("/nothing")), (Some(200), None));
        health.queued(Family::V4);
        tokio::time::advance(Duration::from_secs(59)).await;
        health.queued(Family::V4);
        assert_eq!(status("/livez"), Some(200));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((status("/livez"), status("/healthz")), (Some(503), Some(503)));
        health.synced(Family::V4);
        health.set_eligible(false);
        assert_eq!((status("/livez"), status("/healthz")), (Some(200), Some(503)));
    }
}
