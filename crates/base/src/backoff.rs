//! Exponential back-off with jitter and a cap.

use std::time::Duration;

use crate::Rng;

/// Delays that grow by `factor` from `initial` up to `cap`, each lengthened by up to `jitter` times itself.
#[derive(Debug, Clone)]
pub struct Backoff {
    initial: Duration,
    factor: f64,
    cap: Duration,
    jitter: f64,
    next: Duration,
}

impl Backoff {
    /// A back-off that starts at `initial`.
    #[must_use]
    pub fn new(initial: Duration, factor: f64, cap: Duration, jitter: f64) -> Self {
        Self { initial, factor, cap, jitter, next: initial }
    }

    /// The delay to wait now; the one after it is longer.
    pub fn step(&mut self, rng: &Rng) -> Duration {
        let base = self.next.min(self.cap);
        self.next = base.mul_f64(self.factor).min(self.cap);
        base.mul_f64(1.0 + self.jitter * rng.unit())
    }

    /// Starts again at the initial delay.
    pub fn reset(&mut self) {
        self.next = self.initial;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_cap_and_reset() {
        let rng = Rng::seeded(1);
        let mut backoff = Backoff::new(Duration::from_secs(1), 2.0, Duration::from_secs(5), 0.0);
        let delays: Vec<u64> = (0..5).map(|_| backoff.step(&rng).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 5, 5]);
        backoff.reset();
        assert_eq!(backoff.step(&rng).as_secs(), 1);
    }
}
