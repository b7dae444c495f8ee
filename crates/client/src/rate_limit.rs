//! A token bucket: the client's own limit, and the work queue's overall one.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Grants `rate` uses per second on average and up to `burst` at once.
#[derive(Debug)]
pub struct TokenBucket {
    rate: f64,
    burst: f64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Negative while uses are waiting for their turn.
    tokens: f64,
    at: Instant,
}

/// Waits longer than this make no sense to hand out; the rate is practically zero then.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

impl TokenBucket {
    /// A full bucket.
    #[must_use]
    pub fn new(rate: f64, burst: u32, now: Instant) -> Self {
        let burst = f64::from(burst.max(1));
        Self { rate, burst, state: Mutex::new(State { tokens: burst, at: now }) }
    }

    /// Takes a token, possibly one of the future, and says how long to wait for it.
    pub fn reserve(&self, now: Instant) -> Duration {
        let mut state = self.state.lock();
        self.refill(&mut state, now);
        state.tokens -= 1.0;
        if state.tokens >= 0.0 || self.rate <= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-state.tokens / self.rate).unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT)
    }

    /// Takes a token if one is there.
    pub fn try_take(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        self.refill(&mut state, now);
        let granted = state.tokens >= 1.0;
        if granted {
            state.tokens -= 1.0;
        }
        granted
    }

    /// Gives a token back that was reserved and is not used after all.
    pub fn give_back(&self) {
        let mut state = self.state.lock();
        state.tokens = (state.tokens + 1.0).min(self.burst);
    }

    fn refill(&self, state: &mut State, now: Instant) {
        let passed = now.saturating_duration_since(state.at).as_secs_f64();
        state.tokens = (state.tokens + passed * self.rate).min(self.burst);
        state.at = state.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_later_uses_wait_their_turn() {
        let start = Instant::now();
        let bucket = TokenBucket::new(10.0, 2, start);
        let waits: Vec<u128> = (0..4).map(|_| bucket.reserve(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 100, 200]);
        assert!(!bucket.try_take(start));
        let later = start + Duration::from_secs(10);
        assert!(bucket.try_take(later) && bucket.try_take(later) && !bucket.try_take(later));
    }
}
