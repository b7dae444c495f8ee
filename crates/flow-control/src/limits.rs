//! How many seats a level has of the server's, may lend, and may borrow.

use api_types::flowcontrol_v1::PriorityLevelConfigurationSpec;

/// Of a level's seats, the most that one request takes.
const WIDEST_REQUEST: f64 = 0.15;

/// A level's part of the server, as its spec states it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) shares: u32,
    pub(crate) lendable_percent: u32,
    /// Nothing where the level may borrow as much as there is.
    pub(crate) borrowing_limit_percent: Option<u32>,
}

impl Shares {
    /// Of a spec with its defaults; what is negative counts as nothing.
    pub(crate) fn of(spec: &PriorityLevelConfigurationSpec) -> Self {
        let number = |value: Option<i32>| value.and_then(|value| u32::try_from(value).ok());
        match (&spec.limited, &spec.exempt) {
            (Some(limited), _) => Self {
                shares: number(limited.nominal_concurrency_shares).unwrap_or(30),
                lendable_percent: number(limited.lendable_percent).unwrap_or_default(),
                borrowing_limit_percent: number(limited.borrowing_limit_percent),
            },
            (None, Some(exempt)) => Self {
                shares: number(exempt.nominal_concurrency_shares).unwrap_or_default(),
                lendable_percent: number(exempt.lendable_percent).unwrap_or_default(),
                borrowing_limit_percent: None,
            },
            (None, None) => Self::default(),
        }
    }
}

/// Limits of a level, in seats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// What is the level's own.
    pub nominal: u32,
    /// What it keeps however much others need.
    pub min: u32,
    /// What it has at most, with all that it may borrow.
    pub max: u32,
}

impl Limits {
    /// The limits of a level that has `shares` of `sum`, on a server with `server` seats.
    #[must_use]
    pub(crate) fn new(shares: Shares, sum: u64, server: u32) -> Self {
        let nominal = (u64::from(server) * u64::from(shares.shares)).div_ceil(sum.max(1));
        let nominal = u32::try_from(nominal).unwrap_or(u32::MAX);
        let min = nominal.saturating_sub(percent_of(shares.lendable_percent, nominal));
        let borrowing = shares.borrowing_limit_percent.map_or(server, |percent| percent_of(percent, nominal));
        Self { nominal, min, max: nominal.saturating_add(borrowing) }
    }

    /// What a level starts with, before its demand is known.
    #[must_use]
    pub(crate) fn initial(self) -> u32 {
        self.nominal - (self.nominal - self.min) / 2
    }

    /// The seats that a request takes at most, in a level with hands of `hand_size` queues.
    #[must_use]
    pub(crate) fn widest_request(self, hand_size: u32) -> u32 {
        rounded((f64::from(self.nominal) * WIDEST_REQUEST).ceil()).min(self.nominal / hand_size.max(1)).max(1)
    }
}

/// A percentage of a number of seats, rounded.
fn percent_of(percent: u32, seats: u32) -> u32 {
    rounded(f64::from(seats) * f64::from(percent) / 100.0)
}

/// The nearest number of seats.
#[expect(clippy::cast_possible_truncation, reason = "a cast of a float saturates")]
pub(crate) fn rounded(seats: f64) -> u32 {
    seats.round().max(0.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, for the levels that every cluster has: 245 shares of 600 seats.
    #[test]
    fn limits_are_parts_of_the_server() {
        for (name, shares, lendable, borrowing, expected) in [
            ("system", 30, 33, None, (74, 50, 674)),
            ("node-high", 40, 25, None, (98, 73, 698)),
            ("leader-election", 10, 0, None, (25, 25, 625)),
            ("workload-low", 100, 90, None, (245, 24, 845)),
            ("catch-all", 5, 0, None, (13, 13, 613)),
            ("exempt", 0, 0, None, (0, 0, 600)),
            ("bounded", 40, 50, Some(30), (98, 49, 127)),
        ] {
            let shares = Shares { shares, lendable_percent: lendable, borrowing_limit_percent: borrowing };
            let limits = Limits::new(shares, 245, 600);
            assert_eq!((limits.nominal, limits.min, limits.max), expected, "{name}");
        }
        assert_eq!(Limits::new(Shares::default(), 0, 600), Limits { nominal: 0, min: 0, max: 600 });
    }

    #[test]
    fn levels_start_halfway_and_requests_take_a_part() {
        let limits = Limits { nominal: 245, min: 24, max: 845 };
        assert_eq!(limits.initial(), 135);
        for (nominal, hand, expected) in [(245, 6, 37), (98, 6, 15), (25, 4, 4), (13, 6, 2), (0, 6, 1), (245, 1, 37)] {
            let limits = Limits { nominal, min: 0, max: nominal };
            assert_eq!(limits.widest_request(hand), expected, "{nominal} seats, hands of {hand}");
        }
    }
}
