//! In which order the numbers of a range are tried: who chooses a number himself finds the lower band free for as long as
//! there is room above it (KEP-3070, KEP-3668).

use base::Rng;

/// All numbers of a range: from a random place in the upper band round, then from one in the lower band.
pub(super) fn numbers(size: u64, lower_band: u64, rng: &Rng) -> impl Iterator<Item = u64> + use<> {
    let lower = lower_band.min(size);
    round(lower, size, rng).chain(round(0, lower, rng))
}

fn round(start: u64, end: u64, rng: &Rng) -> impl Iterator<Item = u64> + use<> {
    let first = if start < end { start + rng.below(end - start) } else { start };
    (first..end).chain(start..first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once_and_the_lower_band_last() {
        let rng = Rng::seeded(5);
        for (size, lower) in [(64, 16), (16, 0), (1, 0), (0, 0), (3, 8)] {
            let order: Vec<u64> = numbers(size, lower, &rng).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..size).collect::<Vec<_>>());
            let upper = usize::try_from(size - lower.min(size)).unwrap();
            assert!(order[..upper].iter().all(|number| *number >= lower), "{order:?}");
        }
        assert!(numbers(u64::MAX, 256, &rng).take(1_000).all(|number| number >= 256));
    }
}
