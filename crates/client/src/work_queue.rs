//! The queue between watches and workers: every key at most once, never with two workers, delayed and rate limited.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use base::SharedClock;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::rate_limit::TokenBucket;

/// At once.
const NO_DELAY: Duration = Duration::ZERO;
/// No key is delayed for longer: delays follow from what objects say, and a time too far off cannot be written.
const LONGEST_DELAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// How failing keys are held back.
#[derive(Debug, Clone)]
pub struct RateLimit {
    /// The delay after the first failure; it doubles with each further one.
    pub base: Duration,
    /// The longest delay.
    pub longest: Duration,
    /// Rate and burst of all rate-limited adds together; nothing for no such limit.
    pub overall: Option<(f64, u32)>,
}

impl Default for RateLimit {
    /// Upstream's default for controllers: 5 ms to 1,000 s per key, and 10 per second with a burst of 100 overall.
    fn default() -> Self {
        Self { base: Duration::from_millis(5), longest: Duration::from_secs(1000), overall: Some((10.0, 100)) }
    }
}

impl RateLimit {
    /// Per key only, from 1 ms to 1,000 s.
    #[must_use]
    pub fn per_key() -> Self {
        Self { base: Duration::from_millis(1), longest: Duration::from_secs(1000), overall: None }
    }
}

/// What a queue reports; the component turns it into the `workqueue_*` metrics.
pub trait QueueMetrics: Send + Sync + 'static {
    /// The number of waiting keys changed.
    fn depth(&self, waiting: usize);
    /// A key was added.
    fn added(&self);
    /// A key was taken after waiting this long.
    fn taken(&self, waited: Duration);
    /// A key is done after this long.
    fn done(&self, worked: Duration);
    /// A key was added with a delay.
    fn retried(&self);
}

/// Reports nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMetrics;

impl QueueMetrics for NoMetrics {
    fn depth(&self, _waiting: usize) {}
    fn added(&self) {}
    fn taken(&self, _waited: Duration) {}
    fn done(&self, _worked: Duration) {}
    fn retried(&self) {}
}

/// A queue of keys. Its size is bounded by the number of different keys. Clones share it.
pub struct WorkQueue<K> {
    inner: Arc<Inner<K>>,
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

struct Inner<K> {
    name: String,
    limit: RateLimit,
    overall: Option<TokenBucket>,
    clock: SharedClock,
    metrics: Arc<dyn QueueMetrics>,
    state: Mutex<State<K>>,
    /// Wakes a worker.
    changed: Notify,
    /// Wakes those who wait for the end.
    finished: Notify,
}

struct State<K> {
    /// Keys to hand out, oldest first.
    order: VecDeque<K>,
    /// Keys that wait or that must be handed out again after they are done, with when they were added.
    dirty: BTreeMap<K, Instant>,
    /// Keys that workers have, with when they got them.
    processing: BTreeMap<K, Instant>,
    /// Keys to add later, by key and by time.
    due: BTreeMap<K, Instant>,
    delayed: BTreeSet<(Instant, K)>,
    /// When the worker wakes who watches the clock for all that wait; nothing while nobody does.
    watched: Option<Instant>,
    failures: BTreeMap<K, u32>,
    closed: bool,
}

impl<K: Ord + Clone + Send + 'static> WorkQueue<K> {
    /// An empty queue.
    #[must_use]
    pub fn new(name: &str, limit: RateLimit, clock: SharedClock, metrics: Arc<dyn QueueMetrics>) -> Self {
        let now = clock.monotonic();
        let overall = limit.overall.map(|(rate, burst)| TokenBucket::new(rate, burst, now));
        let state = State {
            order: VecDeque::new(),
            dirty: BTreeMap::new(),
            processing: BTreeMap::new(),
            due: BTreeMap::new(),
            delayed: BTreeSet::new(),
            watched: None,
            failures: BTreeMap::new(),
            closed: false,
        };
        let state = Mutex::new(state);
        let inner = Inner {
            name: name.to_owned(),
            limit,
            overall,
            clock,
            metrics,
            state,
            changed: Notify::new(),
            finished: Notify::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The name, as metrics have it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// How many keys wait to be handed out.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.state.lock().order.len()
    }

    /// Whether no key waits to be handed out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no key waits, is delayed or is worked on.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let state = self.inner.state.lock();
        state.dirty.is_empty() && state.processing.is_empty() && state.delayed.is_empty()
    }

    /// Adds a key. One that waits already is not added twice; one that is worked on comes again when it is done.
    pub fn add(&self, key: K) {
        let mut state = self.inner.state.lock();
        if !state.closed && self.inner.add(&mut state, key) {
            drop(state);
            self.inner.changed.notify_one();
        }
    }

    /// Adds a key after a delay; the earliest time wins for a key that is delayed already.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay == NO_DELAY {
            self.inner.metrics.retried();
            return self.add(key);
        }
        let at = self.inner.clock.monotonic() + delay.min(LONGEST_DELAY);
        let mut state = self.inner.state.lock();
        if state.closed {
            return;
        }
        self.inner.metrics.retried();
        match state.due.get(&key).copied() {
            Some(earlier) if earlier <= at => return,
            Some(later) => {
                state.delayed.remove(&(later, key.clone()));
            }
            None => {}
        }
        state.due.insert(key.clone(), at);
        state.delayed.insert((at, key));
        let is_watched = state.is_watched();
        drop(state);
        if !is_watched {
            self.inner.changed.notify_one();
        }
    }

    /// Adds a key that failed, after a delay that grows with its failures.
    pub fn add_rate_limited(&self, key: K) {
        let own = {
            let mut state = self.inner.state.lock();
            let failures = state.failures.entry(key.clone()).or_default();
            let before = *failures;
            *failures = failures.saturating_add(1);
            let factor = 2_u32.checked_pow(before).unwrap_or(u32::MAX);
            self.inner.limit.base.saturating_mul(factor).min(self.inner.limit.longest)
        };
        let now = self.inner.clock.monotonic();
        let overall = self.inner.overall.as_ref().map_or(NO_DELAY, |bucket| bucket.reserve(now));
        self.add_after(key, own.max(overall));
    }

    /// Forgets a key's failures: it succeeded, or will not be tried again.
    pub fn forget(&self, key: &K) {
        self.inner.state.lock().failures.remove(key);
    }

    /// How often a key has failed since it was last forgotten.
    #[must_use]
    pub fn failures(&self, key: &K) -> u32 {
        self.inner.state.lock().failures.get(key).copied().unwrap_or(0)
    }

    /// Waits for the next key; nothing once the queue is shut down and empty. Whoever takes a key must call
    /// [`Self::done`] for it. Safe to drop while waiting.
    pub async fn next(&self) -> Option<K> {
        loop {
            let changed = self.inner.changed.notified();
            let watch = {
                let mut state = self.inner.state.lock();
                self.inner.release_due(&mut state);
                if let Some(key) = self.inner.take(&mut state) {
                    let more = !state.order.is_empty() || state.closed || !state.is_watched();
                    drop(state);
                    if more {
                        self.inner.changed.notify_one();
                    }
                    return Some(key);
                }
                if state.closed {
                    drop(state);
                    self.inner.changed.notify_one();
                    return None;
                }
                self.inner.watch_the_clock(&mut state)
            };
            match watch {
                Some(watch) => {
                    tokio::select! {
                        biased;
                        () = changed => {}
                        () = tokio::time::sleep_until(watch.until) => {}
                    }
                    watch.end();
                }
                None => changed.await,
            }
        }
    }

    /// Says that a worker is done with a key. If it was added meanwhile it is handed out again.
    pub fn done(&self, key: &K) {
        let now = self.inner.clock.monotonic();
        let mut state = self.inner.state.lock();
        if let Some(since) = state.processing.remove(key) {
            self.inner.metrics.done(now.saturating_duration_since(since));
        }
        let again = state.dirty.contains_key(key);
        if again {
            state.order.push_back(key.clone());
            self.inner.metrics.depth(state.order.len());
        }
        drop(state);
        if again {
            self.inner.changed.notify_one();
        }
        self.inner.finished.notify_waiters();
    }

    /// Refuses further keys and drops delayed ones; those that wait are still handed out.
    pub fn shut_down(&self) {
        let mut state = self.inner.state.lock();
        state.closed = true;
        state.due.clear();
        state.delayed.clear();
        drop(state);
        self.inner.changed.notify_waiters();
        self.inner.changed.notify_one();
    }

    /// Shuts down and waits until every key has been handed out and is done.
    pub async fn drain(&self) {
        self.shut_down();
        loop {
            let finished = self.inner.finished.notified();
            {
                let state = self.inner.state.lock();
                if state.processing.is_empty() && state.order.is_empty() {
                    return;
                }
            }
            finished.await;
        }
    }

    /// How long the keys that are worked on have been: in total and at most.
    #[must_use]
    pub fn unfinished(&self) -> (Duration, Duration) {
        let now = self.inner.clock.monotonic();
        let state = self.inner.state.lock();
        let ages = state.processing.values().map(|since| now.saturating_duration_since(*since));
        ages.fold((NO_DELAY, NO_DELAY), |(total, longest), age| (total + age, longest.max(age)))
    }
}

impl<K: Ord> State<K> {
    /// Whether somebody wakes when the first delayed key is due, where there is one.
    fn is_watched(&self) -> bool {
        self.delayed.first().is_none_or(|(at, _)| self.watched.is_some_and(|until| until <= *at))
    }
}

/// A worker that wakes when the first delayed key is due. One is enough: were all to wake, each key would wake them all.
struct ClockWatch<'a, K: Ord> {
    inner: &'a Inner<K>,
    until: Instant,
    is_over: bool,
}

impl<K: Ord> ClockWatch<'_, K> {
    /// Ends the watch of a worker who looks for keys next.
    fn end(mut self) {
        self.is_over = true;
    }
}

impl<K: Ord> Drop for ClockWatch<'_, K> {
    fn drop(&mut self) {
        let mut state = self.inner.state.lock();
        // Another may have come for a key that is due earlier.
        if state.watched == Some(self.until) {
            state.watched = None;
        }
        let is_left = !self.is_over && !state.is_watched();
        drop(state);
        if is_left {
            self.inner.changed.notify_one();
        }
    }
}

impl<K: Ord + Clone> Inner<K> {
    /// Makes the caller wake when the first delayed key is due, unless somebody does already.
    fn watch_the_clock(&self, state: &mut State<K>) -> Option<ClockWatch<'_, K>> {
        let until = state.delayed.first().map(|(at, _)| *at).filter(|_| !state.is_watched())?;
        state.watched = Some(until);
        Some(ClockWatch { inner: self, until, is_over: false })
    }

    /// Whether a worker should be woken.
    fn add(&self, state: &mut State<K>, key: K) -> bool {
        if state.dirty.contains_key(&key) {
            return false;
        }
        self.metrics.added();
        state.dirty.insert(key.clone(), self.clock.monotonic());
        if state.processing.contains_key(&key) {
            return false;
        }
        state.order.push_back(key);
        self.metrics.depth(state.order.len());
        true
    }

    fn release_due(&self, state: &mut State<K>) {
        let now = self.clock.monotonic();
        while state.delayed.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = state.delayed.pop_first() {
                state.due.remove(&key);
                self.add(state, key);
            }
        }
    }

    fn take(&self, state: &mut State<K>) -> Option<K> {
        let key = state.order.pop_front()?;
        let now = self.clock.monotonic();
        if let Some(since) = state.dirty.remove(&key) {
            self.metrics.taken(now.saturating_duration_since(since));
        }
        self.metrics.depth(state.order.len());
        state.processing.insert(key.clone(), now);
        Some(key)
    }
}

#[cfg(test)]
mod tests;
