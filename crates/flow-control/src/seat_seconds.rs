//! Work and virtual time: seats times seconds, as whole numbers, so that sums of many small ones stay exact.

use std::fmt;
use std::time::Duration;

/// Units of a seat-second.
const SCALE: u64 = 100_000_000;
const SECOND_NANOS: u64 = 1_000_000_000;

/// An amount of work, or a virtual time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeatSeconds(u64);

impl SeatSeconds {
    /// The largest amount.
    pub const MAX: Self = Self(u64::MAX);
    /// Half the range: virtual time that comes to it is set back by as much.
    pub const HALF: Self = Self(u64::MAX / 2);

    /// Some seats for some time.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the product is at least zero, and a cast of a float saturates"
    )]
    pub fn of(seats: f64, time: Duration) -> Self {
        let units = time.as_nanos() as f64 * seats / (SECOND_NANOS / SCALE) as f64;
        Self(units.max(0.0).round() as u64)
    }

    /// For how long the work takes this many seats.
    #[must_use]
    pub fn spread_over(self, seats: u32) -> Duration {
        Duration::from_nanos(self.0.saturating_mul(SECOND_NANOS / SCALE) / u64::from(seats.max(1)))
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// As a number of seat-seconds, for gauges.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / SCALE as f64
    }
}

/// As upstream's dumps show it: `1.50000000ss`.
impl fmt::Display for SeatSeconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:08}ss", self.0 / SCALE, self.0 % SCALE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_exact_and_never_negative() {
        let work = SeatSeconds::of(3.0, Duration::from_millis(5));
        assert_eq!(work.to_string(), "0.01500000ss");
        assert_eq!(work.spread_over(2), Duration::from_micros(7500));
        assert_eq!(SeatSeconds::of(0.5, Duration::from_secs(3)).to_string(), "1.50000000ss");
        assert_eq!(work.minus(SeatSeconds::MAX), SeatSeconds::default());
        assert_eq!(SeatSeconds::MAX.plus(work), SeatSeconds::MAX);
    }
}
