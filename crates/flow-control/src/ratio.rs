//! A ratio that changes all the time, as a histogram of how long it had which value.

use crate::Moment;

/// For how long a ratio was in which bucket.
#[derive(Debug, Clone)]
pub struct Ratio {
    bounds: &'static [f64],
    /// Nanoseconds in each bucket; the last one has no bound.
    nanos: Vec<u64>,
    /// The integral of the ratio, over nanoseconds.
    sum: f64,
    last: Moment,
    numerator: f64,
    denominator: f64,
}

/// What a [`Ratio`] has come to.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioCounts {
    /// Upper bounds of the buckets with the nanoseconds below each of them.
    pub buckets: Vec<(f64, u64)>,
    /// All nanoseconds.
    pub count: u64,
    /// The integral of the ratio, over nanoseconds.
    pub sum: f64,
}

impl Ratio {
    /// Zero, from `now` on; `bounds` rise.
    #[must_use]
    pub fn new(now: Moment, bounds: &'static [f64], denominator: f64) -> Self {
        Self { bounds, nanos: vec![0; bounds.len() + 1], sum: 0.0, last: now, numerator: 0.0, denominator }
    }

    /// Changes the upper part.
    pub fn set(&mut self, now: Moment, numerator: f64) {
        self.observe(now);
        self.numerator = numerator;
    }

    /// Changes the upper part by so much.
    pub fn add(&mut self, now: Moment, by: f64) {
        self.observe(now);
        self.numerator += by;
    }

    /// Changes the lower part.
    pub fn set_denominator(&mut self, now: Moment, denominator: f64) {
        self.observe(now);
        self.denominator = denominator;
    }

    /// What it has come to by now.
    #[must_use]
    pub fn counts(&mut self, now: Moment) -> RatioCounts {
        self.observe(now);
        let mut count = 0;
        let mut buckets = Vec::with_capacity(self.bounds.len());
        for (bound, nanos) in self.bounds.iter().zip(&self.nanos) {
            count += nanos;
            buckets.push((*bound, count));
        }
        RatioCounts { buckets, count: count + self.nanos.last().copied().unwrap_or_default(), sum: self.sum }
    }

    fn observe(&mut self, now: Moment) {
        let held = now.saturating_sub(self.last);
        if held.is_zero() {
            return;
        }
        self.last = now;
        let value = self.numerator / self.denominator;
        let held = u64::try_from(held.as_nanos()).unwrap_or(u64::MAX);
        let bucket = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        if let Some(nanos) = self.nanos.get_mut(bucket) {
            *nanos = nanos.saturating_add(held);
        }
        self.sum += value * held as f64;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_ratio_is_weighed_by_time() {
        let at = Duration::from_nanos;
        let mut ratio = Ratio::new(at(0), &[0.0, 0.5], 4.0);
        ratio.set(at(10), 2.0);
        ratio.add(at(15), 2.0);
        ratio.set_denominator(at(17), 8.0);
        let counts = ratio.counts(at(20));
        assert_eq!(counts.buckets, [(0.0, 10), (0.5, 10 + 5 + 3)]);
        assert_eq!((counts.count, counts.sum), (20, 0.5 * 5.0 + 1.0 * 2.0 + 0.5 * 3.0));
    }
}
