//! How many batches are sent in a second.

use std::time::Duration;

use tokio::time::Instant;

/// A rate, and how much of it may be saved up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Batches in a second on average.
    pub per_second: f64,
    /// Batches at once after a pause.
    pub burst: u32,
}

/// The longest pause that a rate can ask for; one that low stops everything.
const LONGEST: Duration = Duration::from_secs(3600);

/// Says when the next may be sent.
#[derive(Debug)]
pub(crate) struct Throttle {
    interval: Duration,
    saved: Duration,
    next: Option<Instant>,
}

impl Throttle {
    pub(crate) fn new(rate: Rate) -> Self {
        let interval = Duration::try_from_secs_f64(1.0 / rate.per_second).unwrap_or(LONGEST).min(LONGEST);
        Self { interval, saved: interval.saturating_mul(rate.burst.saturating_sub(1)), next: None }
    }

    /// How long the next one has to wait.
    pub(crate) fn wait(&mut self, now: Instant) -> Duration {
        let own = self.next.map_or(now, |next| next.max(now));
        self.next = Some(own + self.interval);
        own.saturating_duration_since(now).saturating_sub(self.saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_the_rest_waits() {
        let (start, mut throttle) = (Instant::now(), Throttle::new(Rate { per_second: 10.0, burst: 3 }));
        let waits: Vec<u128> = (0..5).map(|_| throttle.wait(start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        let later = start + Duration::from_secs(10);
        let waits: Vec<u128> = (0..4).map(|_| throttle.wait(later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100], "no more than a burst is saved up");
    }
}
