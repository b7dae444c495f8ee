//! Processor amounts in the kernel's units.

/// The kernel's bounds of shares.
const MIN_SHARES: i64 = 2;
const MAX_SHARES: i64 = 262_144;
/// The least time per period that the kernel accepts, in microseconds.
const MIN_QUOTA_US: i64 = 1000;

/// Shares for an amount in thousandths of a processor.
pub fn shares(milli: i64) -> i64 {
    (milli.saturating_mul(1024) / 1000).clamp(MIN_SHARES, MAX_SHARES)
}

/// Microseconds per period for a limit in thousandths of a processor; 0 for no limit.
pub fn quota_us(milli: i64, period_us: i64) -> i64 {
    if milli == 0 { 0 } else { (milli.saturating_mul(period_us) / 1000).max(MIN_QUOTA_US) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_become_kernel_units() {
        let shares_of = [(0, 2), (1, 2), (100, 102), (1000, 1024), (i64::MAX, 262_144)];
        for (milli, expected) in shares_of {
            assert_eq!(shares(milli), expected, "{milli}");
        }
        for (milli, period, expected) in
            [(0, 100_000, 0), (1, 100_000, 1000), (250, 100_000, 25_000), (2000, 5000, 10_000)]
        {
            assert_eq!(quota_us(milli, period), expected, "{milli}");
        }
    }
}
