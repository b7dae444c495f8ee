//! Medians over interleaved runs: whatever else the machine does meets both sides alike.

use std::time::Duration;

use base::{Clock, SystemClock};
use tokio::time::Instant;

/// The middle of `values`, the mean of the two in the middle where their number is even; 0 for none.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (None, _) => 0.0,
        (Some(upper), 0) => sorted.get(middle.wrapping_sub(1)).map_or(*upper, |lower| (lower + upper) / 2.0),
        (Some(value), _) => *value,
    }
}

/// The values of one side over all rounds.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds what one round gave.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The median over the rounds.
    #[must_use]
    pub fn median(&self) -> f64 {
        median(&self.0)
    }

    /// What the two sides of each round give together.
    #[must_use]
    pub fn with(&self, other: &Self, both: impl Fn(f64, f64) -> f64) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(own, other)| both(*own, *other)).collect())
    }

    /// The value that this part of all is not above, such as 0.99; 0 for none.
    #[must_use]
    pub fn part(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small"
        )]
        let place = (part * sorted.len() as f64).ceil() as usize;
        sorted.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
    }
}

/// Real time since it was made.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[must_use]
    pub fn start() -> Self {
        Self(SystemClock.monotonic())
    }

    /// What has passed so far.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        SystemClock.monotonic() - self.0
    }

    /// What has passed so far, in milliseconds.
    #[must_use]
    pub fn elapsed_ms(&self) -> f64 {
        self.elapsed().as_secs_f64() * 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::{Samples, median};

    #[test]
    fn medians() {
        for (values, expected) in [
            (&[][..], 0.0),
            (&[3.0][..], 3.0),
            (&[4.0, 1.0][..], 2.5),
            (&[9.0, 1.0, 2.0][..], 2.0),
            (&[1.0, 100.0, 2.0, 3.0][..], 2.5),
        ] {
            assert!((median(values) - expected).abs() < f64::EPSILON, "{values:?}");
        }
    }

    #[test]
    fn parts() {
        let hundred = Samples((1..=100_i32).rev().map(f64::from).collect());
        for (part, expected) in [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            assert!((hundred.part(part) - expected).abs() < f64::EPSILON, "{part}");
        }
        assert!(Samples::default().part(0.99).abs() < f64::EPSILON);
    }
}
