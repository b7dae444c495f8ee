//! A short memory of accepted tokens, and merging of equal look-ups that run at the same time.
//!
//! Only successes are remembered. The look-up itself runs as a task of its own with a deadline, so a caller that gives up does not
//! take the answer away from the others that wait for it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use base::{CancellationToken, Expiring, Rng, SharedClock, TaskGroup};
use component_base::metrics::Metrics;
use parking_lot::Mutex;
use pki::KeyedDigest;

use crate::authenticator::{AuthnError, TokenAuthenticator};
use crate::identity::Identity;
use crate::token_cache_metrics::{Active, CacheMetrics};

/// How long a success is remembered; bounds how long a revoked token lives on.
pub const SUCCESS_TTL: Duration = Duration::from_secs(10);
/// How long one shared look-up may take.
pub const LOOKUP_DEADLINE: Duration = Duration::from_secs(30);
/// Successes remembered at once; at ten seconds each this is more clients than one server sees. Beyond it the oldest half of the
/// entries makes room.
pub const MAX_ENTRIES: usize = 32_768;

type Key = [u8; 32];
type Answer = Result<Option<Identity>, AuthnError>;

/// A look-up that many may wait for. They are woken in the order in which they came (tokio's `watch` would wake them in
/// a random one), so that a simulation replays.
#[derive(Clone, Default)]
struct Flight {
    landed: CancellationToken,
    answer: Arc<OnceLock<Answer>>,
}

struct State {
    entries: Expiring<Key, Identity>,
    flights: HashMap<Key, Flight>,
}

/// Remembers what another authenticator accepted.
pub struct TokenCache {
    inner: Arc<dyn TokenAuthenticator>,
    shared: Arc<Shared>,
    digest: KeyedDigest,
    tasks: TaskGroup,
    metrics: Option<CacheMetrics>,
}

struct Shared {
    state: Mutex<State>,
    clock: SharedClock,
    success_ttl: Duration,
}

impl TokenCache {
    /// A cache over `inner`; look-ups run as tasks of `tasks`.
    #[must_use]
    pub fn new(
        inner: Arc<dyn TokenAuthenticator>,
        success_ttl: Duration,
        clock: SharedClock,
        rng: &Rng,
        tasks: TaskGroup,
    ) -> Self {
        let state = State { entries: Expiring::new(MAX_ENTRIES), flights: HashMap::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), clock, success_ttl });
        Self { inner, shared, digest: KeyedDigest::new(rng), tasks, metrics: None }
    }

    /// The same, counted.
    #[must_use]
    pub fn counted(self, metrics: &Metrics) -> Self {
        Self { metrics: Some(CacheMetrics::new(metrics)), ..self }
    }

    fn key(&self, token: &str, audiences: &[String]) -> Key {
        let audiences = audiences.iter().map(String::as_bytes);
        self.digest.of(std::iter::once(token.as_bytes()).chain(audiences))
    }

    async fn looked_up(&self, key: Key, token: &str, audiences: &[String]) -> Answer {
        let flight = self.flight(key, token, audiences);
        let _waits = Active::begin(self.metrics.as_ref(), "blocked");
        flight.landed.cancelled().await;
        flight.answer.get().cloned().unwrap_or(Err(AuthnError::Unexpected))
    }

    /// Joins the running look-up of this key or starts one.
    fn flight(&self, key: Key, token: &str, audiences: &[String]) -> Flight {
        let mut state = self.shared.state.lock();
        if let Some(running) = state.flights.get(&key) {
            return running.clone();
        }
        let flight = Flight::default();
        state.flights.insert(key, flight.clone());
        drop(state);
        let landing = Landing { shared: Arc::clone(&self.shared), key };
        let (flown, arrived) = (flight.clone(), flight.landed.clone().drop_guard());
        let (inner, token, audiences) = (Arc::clone(&self.inner), token.to_owned(), audiences.to_vec());
        let metrics = self.metrics.clone();
        self.tasks.spawn_cancellable("token-lookup", async move {
            let running = Active::begin(metrics.as_ref(), "in_flight");
            let lookup = inner.authenticate_token(&token, &audiences);
            let answer = tokio::time::timeout(LOOKUP_DEADLINE, lookup).await.unwrap_or(Err(AuthnError::Timeout));
            drop(running);
            if let Some(metrics) = &metrics {
                metrics.fetched(answer.is_ok());
            }
            landing.remember(&answer);
            // The flight ends before the answer is out, so nobody joins one that has already landed.
            drop(landing);
            // Nobody else sets it; the guard wakes those who wait also when the look-up panics.
            let _first = flown.answer.set(answer);
            drop(arrived);
        });
        flight
    }
}

impl Shared {
    fn remembered(&self, key: &Key) -> Option<Identity> {
        let now = self.clock.monotonic();
        self.state.lock().entries.get(key, now)
    }
}

/// Ends a flight even when the look-up panics or is cancelled.
struct Landing {
    shared: Arc<Shared>,
    key: Key,
}

impl Landing {
    fn remember(&self, answer: &Answer) {
        let Ok(Some(identity)) = answer else { return };
        if self.shared.success_ttl.is_zero() {
            return;
        }
        let now = self.shared.clock.monotonic();
        let until = now + self.shared.success_ttl;
        self.shared.state.lock().entries.insert(self.key, identity.clone(), until, now);
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.shared.state.lock().flights.remove(&self.key);
    }
}

#[async_trait]
impl TokenAuthenticator for TokenCache {
    async fn authenticate_token(&self, token: &str, audiences: &[String]) -> Answer {
        let begun = self.shared.clock.monotonic();
        let key = self.key(token, audiences);
        let remembered = self.shared.remembered(&key);
        let is_remembered = remembered.is_some();
        let answer = match remembered {
            Some(identity) => Ok(Some(identity)),
            None => self.looked_up(key, token, audiences).await,
        };
        if let Some(metrics) = &self.metrics {
            metrics.asked(is_remembered, self.shared.clock.monotonic() - begun);
        }
        answer
    }
}

#[cfg(test)]
#[path = "token_cache_tests.rs"]
mod tests;
