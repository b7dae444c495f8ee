//! How many seats a level needed: a signal over time, its average and deviation, and its highest value.

use crate::Moment;

/// How much of the smoothed demand stays where demand falls.
const SMOOTHING: f64 = 0.977;

/// The signal since it was last looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Demand {
    since: Moment,
    last: Moment,
    now: u32,
    highest: u32,
    /// Integrals of the value and of its square, in seats times seconds.
    sum: f64,
    sum_of_squares: f64,
}

/// What a time's demand comes to, in seats.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Statistics {
    pub(crate) highest: u32,
    pub(crate) average: f64,
    pub(crate) deviation: f64,
    /// Follows demand up at once and down slowly.
    pub(crate) smoothed: f64,
}

impl Demand {
    pub(crate) fn new(now: Moment) -> Self {
        Self { since: now, last: now, ..Self::default() }
    }

    /// The demand is `seats` from now on.
    pub(crate) fn set(&mut self, now: Moment, seats: u32) {
        let (held, value) = (now.saturating_sub(self.last).as_secs_f64(), f64::from(self.now));
        self.sum += value * held;
        self.sum_of_squares += value * value * held;
        self.last = self.last.max(now);
        self.now = seats;
        self.highest = self.highest.max(seats);
    }

    /// What it was since it was asked last; the next time begins.
    pub(crate) fn take(&mut self, now: Moment, former: Statistics) -> Statistics {
        self.set(now, self.now);
        let seconds = now.saturating_sub(self.since).as_secs_f64();
        let highest = self.highest;
        let statistics = if seconds > 0.0 {
            let average = self.sum / seconds;
            // Rounding may leave a little less than nothing.
            let deviation = (self.sum_of_squares / seconds - average * average).max(0.0).sqrt();
            let envelope = average + deviation;
            let smoothed = envelope.max(SMOOTHING * former.smoothed + (1.0 - SMOOTHING) * envelope);
            Statistics { highest, average, deviation, smoothed }
        } else {
            Statistics { highest, ..former }
        };
        *self = Self { since: now, last: now, now: self.now, highest: self.now, ..Self::default() };
        statistics
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn demand_is_weighed_by_time() {
        let at = Duration::from_secs;
        let mut demand = Demand::new(at(0));
        demand.set(at(2), 10);
        demand.set(at(4), 0);
        // 2 s of 10 in 8 s: 2.5 on average, squares 25, and so a variance of 18.75.
        let first = demand.take(at(8), Statistics::default());
        assert_eq!((first.highest, first.average), (10, 2.5));
        assert!((first.deviation - 18.75_f64.sqrt()).abs() < 1e-9, "{first:?}");
        assert!((first.smoothed - (2.5 + 18.75_f64.sqrt())).abs() < 1e-9, "{first:?}");
        // Then nothing: the smoothed demand falls slowly.
        let second = demand.take(at(18), first);
        assert_eq!((second.highest, second.average, second.deviation), (0, 0.0, 0.0));
        assert!((second.smoothed - 0.977 * first.smoothed).abs() < 1e-9, "{second:?}");
        // What is still wanted when the next time begins counts as seen in it.
        demand.set(at(19), 7);
        demand.take(at(20), second);
        demand.set(at(20), 0);
        assert_eq!(demand.take(at(20), second).highest, 7);
    }
}
