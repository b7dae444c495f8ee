//! Shuffle sharding: a flow may wait in a few of a level's queues only, so that a busy flow shares all of its queues with
//! hardly any other.

use sha2::{Digest as _, Sha256};

/// Bits of a hash that may be used up by dealing.
const MAX_BITS: f64 = 60.0;
/// The largest hand whose cards can be told apart by [`MAX_BITS`].
const MAX_HAND: usize = 15;

/// What a flow is hashed to.
#[must_use]
pub fn flow_hash(schema: &str, distinguisher: &str) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(schema.as_bytes());
    hasher.update([0]);
    hasher.update(distinguisher.as_bytes());
    let digest = hasher.finalize();
    digest.iter().take(8).rev().fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// Deals a hand of queues to a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dealer {
    deck: usize,
    hand: usize,
}

impl Dealer {
    /// A dealer of `hand` of `deck` cards; nothing where no hash can choose that many.
    #[must_use]
    pub fn new(deck: usize, hand: usize) -> Option<Self> {
        let bits = ((deck as f64).log2() * hand as f64).ceil();
        ((1..=deck.min(MAX_HAND)).contains(&hand) && bits <= MAX_BITS).then_some(Self { deck, hand })
    }

    /// The number of queues.
    #[must_use]
    pub fn deck(self) -> usize {
        self.deck
    }

    /// How many of them a flow chooses from.
    #[must_use]
    pub fn hand(self) -> u32 {
        u32::try_from(self.hand).unwrap_or(u32::MAX)
    }

    /// The hand of a hash: distinct cards, each of them as likely as any other.
    pub fn deal(self, mut hash: u64) -> impl ExactSizeIterator<Item = usize> + Clone {
        let mut remainders = [0; MAX_HAND];
        let mut cards = [0; MAX_HAND];
        for place in 0..self.hand {
            let left = (self.deck - place) as u64;
            remainders[place] = usize::try_from(hash % left).unwrap_or_default();
            hash /= left;
            // A card counts among those that are left; the dealt ones below it come on top.
            cards[place] = remainders[..place]
                .iter()
                .rev()
                .fold(remainders[place], |card, former| card + usize::from(card >= *former));
        }
        cards.into_iter().take(self.hand)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// By `printf 'a\0b' | sha256sum`, whose first eight bytes are read backwards.
    #[test]
    fn flows_hash_as_upstreams_do() {
        assert_eq!(flow_hash("a", "b"), 0xd3b1_bc1b_ae71_b259);
        assert_ne!(flow_hash("ab", ""), flow_hash("a", "b"));
    }

    #[test]
    fn hands_are_dealt_by_remainders() {
        for (deck, hand, hash, expected) in [
            (4, 2, 0, vec![0, 1]),
            // 7 mod 4 = 3, then 1 mod 3 = 1.
            (4, 2, 7, vec![3, 1]),
            // 2, then 1 mod 3 = 1, then 0 mod 2 = 0.
            (4, 3, 6, vec![2, 1, 0]),
            // 1, then 1 which comes to 2, then 1 which comes to 2 and, as 2 is dealt, to 3.
            (4, 3, 1 + 4 + 12, vec![1, 2, 3]),
            (1, 1, u64::MAX, vec![0]),
        ] {
            let dealer = Dealer::new(deck, hand).expect("a dealer");
            assert_eq!(dealer.deal(hash).collect::<Vec<_>>(), expected, "{hand} of {deck} for {hash}");
        }
    }

    #[test]
    fn cards_are_distinct_and_in_the_deck() {
        let dealer = Dealer::new(15, 15).expect("a dealer");
        for hash in (0..1000).map(|step: u64| step.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let hand: BTreeSet<usize> = dealer.deal(hash).collect();
            assert_eq!(hand, (0..15).collect(), "{hash}");
        }
    }

    #[test]
    fn hands_that_no_hash_can_choose_are_refused() {
        assert!(Dealer::new(128, 6).is_some());
        for (deck, hand) in [(64, 11), (0, 0), (4, 0), (4, 5), (16, 16)] {
            assert_eq!(Dealer::new(deck, hand), None, "{hand} of {deck}");
        }
    }
}
