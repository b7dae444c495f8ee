//! Lending seats that are not needed: how many each level has for a while, between what it keeps and what it may borrow.

use crate::limits::{Limits, rounded};

/// The least that a level counts as wanting, so that all can be compared.
const LEAST_TARGET: f64 = 0.001;
/// How exactly sums of seats are compared.
const PRECISION: f64 = 1e-6;

/// What a level would like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Claim {
    pub(crate) is_exempt: bool,
    pub(crate) limits: Limits,
    /// The most that it needed since seats were shared out last.
    pub(crate) highest: u32,
    /// What it needs by and large.
    pub(crate) smoothed: f64,
}

impl Claim {
    /// What a limited level must get, if there is enough for all.
    fn lower(&self) -> u32 {
        self.limits.nominal.min(self.highest).max(self.limits.min)
    }

    /// What it would like.
    pub(crate) fn target(&self) -> f64 {
        f64::from(self.lower()).max(self.smoothed)
    }
}

/// What all levels get, in the order of the claims, and which part of their targets that is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shared {
    pub(crate) seats: Vec<u32>,
    pub(crate) fair_fraction: f64,
}

/// Shares the nominal seats of all levels out; nothing where that cannot be done.
pub(crate) fn share_out(claims: &[Claim]) -> Option<Shared> {
    let sum = |of: &dyn Fn(&Claim) -> u32, exempt| {
        claims.iter().filter(|claim| claim.is_exempt == exempt).map(|claim| i64::from(of(claim))).sum::<i64>()
    };
    let exempt_use = |claim: &Claim| claim.limits.min.max(claim.highest);
    let all = sum(&|claim| claim.limits.nominal, true) + sum(&|claim| claim.limits.nominal, false);
    let remaining = all - sum(&exempt_use, true);
    let (kept, wanted) = (sum(&|claim| claim.limits.min, false), sum(&Claim::lower, false));
    let limited: Vec<&Claim> = claims.iter().filter(|claim| !claim.is_exempt).collect();
    let (given, fair_fraction) = if remaining <= kept {
        (limited.iter().map(|claim| claim.limits.min).collect(), 0.0)
    } else if remaining <= wanted {
        let fraction = (remaining - kept) as f64 / (wanted - kept) as f64;
        let given = |claim: &&Claim| claim.limits.min + rounded(f64::from(claim.lower() - claim.limits.min) * fraction);
        (limited.iter().map(given).collect::<Vec<u32>>(), fraction)
    } else {
        // All nominal seats, and not what exempt requests leave of them, as upstream has it.
        let fraction = fair_fraction(&limited, all as f64)?;
        (limited.iter().map(|claim| rounded(at_fraction(claim, fraction))).collect(), fraction)
    };
    let mut given = given.into_iter();
    let seats = |claim: &Claim| if claim.is_exempt { Some(exempt_use(claim)) } else { given.next() };
    Some(Shared { seats: claims.iter().map(seats).collect::<Option<_>>()?, fair_fraction })
}

/// What a level gets at a fraction of its target.
fn at_fraction(claim: &Claim, fraction: f64) -> f64 {
    let (lower, upper) = (f64::from(claim.lower()), f64::from(claim.limits.max));
    (fraction * claim.target().max(LEAST_TARGET)).max(lower).min(upper)
}

/// The fraction of their targets at which levels get `wanted` seats together. The sum grows with the fraction, and is
/// straight between the fractions at which a level leaves its lower or comes to its upper bound.
fn fair_fraction(claims: &[&Claim], wanted: f64) -> Option<f64> {
    let mut bends: Vec<f64> = claims
        .iter()
        .flat_map(|claim| [f64::from(claim.lower()), f64::from(claim.limits.max)].map(|bound| (claim, bound)))
        .map(|(claim, bound)| bound / claim.target().max(LEAST_TARGET))
        .collect();
    bends.sort_by(f64::total_cmp);
    let sum_at = |fraction: f64| claims.iter().map(|claim| at_fraction(claim, fraction)).sum::<f64>();
    let (mut low, mut below) = (0.0, sum_at(0.0));
    if below > wanted + PRECISION {
        return None;
    }
    for high in bends {
        let above = sum_at(high);
        if above >= wanted - PRECISION {
            let part = if above - below > PRECISION { (wanted - below) / (above - below) } else { 1.0 };
            return Some(low + (high - low) * part.clamp(0.0, 1.0));
        }
        (low, below) = (high, above);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(nominal: u32, min: u32, max: u32, highest: u32, smoothed: f64) -> Claim {
        Claim { is_exempt: false, limits: Limits { nominal, min, max }, highest, smoothed }
    }

    fn exempt(highest: u32) -> Claim {
        Claim { is_exempt: true, ..claim(0, 0, 600, highest, 0.0) }
    }

    #[test]
    fn seats_go_where_they_are_needed() {
        for (name, claims, seats, fraction) in [
            // Nobody wants anything: targets are what each keeps, 10 and 50 of 200 seats.
            ("idle", vec![claim(100, 10, 300, 0, 0.0), claim(100, 50, 300, 0, 0.0)], vec![33, 167], 200.0 / 60.0),
            // One wants 150 and the other keeps 50: both fit.
            ("lent", vec![claim(100, 10, 300, 150, 150.0), claim(100, 50, 300, 0, 0.0)], vec![150, 50], 1.0),
            // It may borrow 20 only; the rest stays with the other.
            ("bounded", vec![claim(100, 10, 120, 400, 400.0), claim(100, 50, 300, 0, 0.0)], vec![120, 80], 1.6),
            // Both want more than there is: each keeps to its own.
            ("full", vec![claim(100, 10, 300, 400, 400.0), claim(100, 50, 300, 400, 400.0)], vec![100, 100], 1.0),
            // Exempt requests take 120 of 200: 80 remain of the 60 that are kept and the 150 that are wanted.
            (
                "squeezed",
                vec![claim(100, 10, 300, 400, 400.0), exempt(120), claim(100, 50, 300, 50, 0.0)],
                vec![30, 120, 50],
                20.0 / 90.0,
            ),
            // They take all but 30: everybody has what it keeps.
            (
                "starved",
                vec![claim(100, 10, 300, 9, 9.0), exempt(170), claim(100, 50, 300, 0, 0.0)],
                vec![10, 170, 50],
                0.0,
            ),
        ] {
            let shared = share_out(&claims).expect(name);
            assert_eq!(shared.seats, seats, "{name}");
            assert!((shared.fair_fraction - fraction).abs() < 1e-6, "{name}: {}", shared.fair_fraction);
        }
    }

    #[test]
    fn what_cannot_be_shared_out_is_not() {
        assert_eq!(share_out(&[claim(100, 10, 100, 0, 0.0), claim(100, 10, 50, 0, 0.0)]), None);
        assert_eq!(share_out(&[]), Some(Shared { seats: vec![], fair_fraction: 0.0 }));
    }
}
