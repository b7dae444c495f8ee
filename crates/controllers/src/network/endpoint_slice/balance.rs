//! Hints by annotation (`service.kubernetes.io/topology-mode: Auto`): every zone is to have endpoints in proportion to
//! its CPU, those in the zone itself first.
//!
//! Upstream has two more reasons to give up, `Nodes only ready in one zone` and `No hints allocated for zones`, that
//! its own rules never lead to: one zone alone counts as insufficient information, and once all zones are allocated
//! something there is an endpoint with a hint.

use std::collections::BTreeMap;

use api_types::discovery_v1::{Endpoint, EndpointHints, EndpointSlice, ForZone};

use super::hints::clear;
use super::pack::Writes;
use super::zones::{Allocation, Allocations, Obstacle, Shares, ZoneCounts};

/// A surplus or deficit below this is left alone.
const LEAST_MOVED: f64 = 0.5;
/// An endpoint is only moved where one of the two zones is off by this.
const WORTH_A_MOVE: f64 = 1.0;

/// Sets the hints of everything that is written, and writes what has hints that no longer suit; says how many
/// endpoints each zone has by hints now. Where there can be none, all hints are removed.
pub(super) fn balance(shares: &Shares, writes: &mut Writes) -> Result<ZoneCounts, Obstacle> {
    let balanced = try_balance(shares, writes);
    if balanced.is_err() {
        clear(writes);
    }
    balanced
}

fn try_balance(shares: &Shares, writes: &mut Writes) -> Result<ZoneCounts, Obstacle> {
    let shares = shares.as_deref().map_err(|obstacle| *obstacle)?;
    let allocations = shares.allocate(ready_endpoints(writes))?;
    let mut counts = keep_suitable(&allocations, writes);
    prefer_own_zones(&mut counts, writes)?;
    move_surplus(transfers(&allocations, &counts), &mut counts, writes);
    Ok(counts)
}

fn ready_endpoints(writes: &Writes) -> u32 {
    let unchanged = writes.unchanged.iter().map(AsRef::as_ref);
    let slices = writes.create.iter().chain(&writes.update).chain(unchanged);
    let ready = slices.flat_map(|slice| &slice.endpoints).filter(|endpoint| is_ready(endpoint)).count();
    u32::try_from(ready).unwrap_or(u32::MAX)
}

fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.ready == Some(true)
}

/// Leaves those unchanged slices alone whose hints still suit, and counts these hints; the others are written.
fn keep_suitable(allocations: &Allocations<'_>, writes: &mut Writes) -> ZoneCounts {
    let mut counts = ZoneCounts::new();
    let mut is_stale = |slice: &EndpointSlice| match with_hints_of(slice, &counts, allocations) {
        Some(more) => {
            counts = more;
            false
        }
        None => true,
    };
    let stale: Vec<_> = writes.unchanged.extract_if(.., |slice| is_stale(slice)).collect();
    writes.update.extend(stale.iter().map(|slice| EndpointSlice::clone(slice)));
    counts
}

/// The counts and the hints of a slice. None where a ready endpoint has no hint or one to a zone that is not known any
/// more, or a zone would get too many.
fn with_hints_of(slice: &EndpointSlice, counts: &ZoneCounts, allocations: &Allocations<'_>) -> Option<ZoneCounts> {
    let mut counts = counts.clone();
    for endpoint in slice.endpoints.iter().filter(|endpoint| is_ready(endpoint)) {
        let hints = endpoint.hints.as_ref().filter(|hints| !hints.for_zones.is_empty())?;
        for zone in &hints.for_zones {
            let allocation = allocations.get(zone.name.as_str())?;
            let count = counts.entry(zone.name.clone()).or_default();
            *count += 1;
            if f64::from(*count) > allocation.maximum {
                return None;
            }
        }
    }
    Some(counts)
}

/// Begins with a hint to its own zone for every endpoint that is written. Those that are not ready are not chosen
/// anyway and keep what they have.
fn prefer_own_zones(counts: &mut ZoneCounts, writes: &mut Writes) -> Result<(), Obstacle> {
    for endpoint in written(writes) {
        let zone = endpoint.zone.clone().filter(|zone| !zone.is_empty()).ok_or(Obstacle::NoZone)?;
        endpoint.hints = Some(to_zone(&zone));
        *counts.entry(zone).or_default() += 1;
    }
    Ok(())
}

/// The ready endpoints of all slices that are written.
fn written(writes: &mut Writes) -> impl Iterator<Item = &mut Endpoint> {
    let slices = writes.create.iter_mut().chain(&mut writes.update);
    slices.flat_map(|slice| &mut slice.endpoints).filter(|endpoint| is_ready(endpoint))
}

fn to_zone(zone: &str) -> EndpointHints {
    EndpointHints { for_zones: vec![ForZone { name: zone.to_owned() }], ..EndpointHints::default() }
}

/// The zones that get endpoints of other zones, by the zone that gives them, once for each endpoint.
type Transfers<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// The zone with the largest surplus gives one to that with the largest deficit, as long as it is worth it. The gaps
/// shrink with every step, so it comes to an end.
fn transfers<'a>(allocations: &Allocations<'a>, counts: &ZoneCounts) -> Transfers<'a> {
    let count = |zone: &str| f64::from(counts.get(zone).copied().unwrap_or_default());
    let surplus = |(zone, allocation): (&&'a str, &Allocation)| (*zone, count(zone) - allocation.desired);
    let mut surpluses: BTreeMap<&str, f64> = allocations.iter().map(surplus).collect();
    let mut transfers = Transfers::new();
    while let Some((from, to)) = next_transfer(&surpluses) {
        surpluses.entry(from).and_modify(|surplus| *surplus -= 1.0);
        surpluses.entry(to).and_modify(|surplus| *surplus += 1.0);
        transfers.entry(from).or_default().push(to);
    }
    transfers
}

/// From which zone to which one endpoint should move.
fn next_transfer<'a>(surpluses: &BTreeMap<&'a str, f64>) -> Option<(&'a str, &'a str)> {
    let (from, surplus) = surpluses.iter().max_by(|one, other| one.1.total_cmp(other.1))?;
    let (to, deficit) = surpluses.iter().map(|(zone, surplus)| (zone, -surplus)).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let is_worth_it = surplus.min(deficit) >= LEAST_MOVED && surplus.max(deficit) >= WORTH_A_MOVE;
    is_worth_it.then_some((*from, *to))
}

/// Gives endpoints that are written to other zones. A zone whose endpoints are in slices that stay gives fewer.
fn move_surplus(mut transfers: Transfers<'_>, counts: &mut ZoneCounts, writes: &mut Writes) {
    for endpoint in written(writes) {
        let Some(from) = &endpoint.zone else { continue };
        let Some(to) = transfers.get_mut(from.as_str()).and_then(Vec::pop) else { continue };
        endpoint.hints = Some(to_zone(to));
        counts.entry(from.clone()).and_modify(|count| *count = count.saturating_sub(1));
        *counts.entry(to.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api_types::discovery_v1::EndpointConditions;

    use super::super::zones::tests::shares;
    use super::*;

    /// Ready endpoints in these zones, one letter each, with hints to these; `-` stands for none. Capital letters are
    /// zones of endpoints that are not ready.
    fn slice(zones: &str, hints: &str) -> EndpointSlice {
        let some = |letter: char| Some(letter.to_ascii_lowercase().to_string()).filter(|zone| zone != "-");
        let endpoint = |(zone, hint): (char, char)| Endpoint {
            zone: some(zone),
            hints: some(hint).map(|zone| to_zone(&zone)),
            conditions: EndpointConditions { ready: Some(!zone.is_uppercase()), ..EndpointConditions::default() },
            ..Endpoint::default()
        };
        EndpointSlice { endpoints: zones.chars().zip(hints.chars()).map(endpoint).collect(), ..Default::default() }
    }

    fn hints(slice: &EndpointSlice) -> String {
        let hint = |endpoint: &Endpoint| endpoint.hints.as_ref().map_or("-".into(), |to| to.for_zones[0].name.clone());
        slice.endpoints.iter().map(hint).collect()
    }

    /// The hints after balancing, of slices that are written and of those that are not, and the counts.
    fn balanced(cpus: &[u32], written: &[(&str, &str)], unchanged: &[(&str, &str)]) -> (String, String, String) {
        let mut writes = Writes {
            update: written.iter().map(|(zones, hints)| slice(zones, hints)).collect(),
            unchanged: unchanged.iter().map(|(zones, hints)| Arc::new(slice(zones, hints))).collect(),
            ..Writes::default()
        };
        let counts = match balance(&shares(cpus), &mut writes) {
            Ok(counts) => counts.iter().map(|(zone, count)| format!("{zone}{count}")).collect(),
            Err(obstacle) => format!("{obstacle:?}").split(' ').next().unwrap_or_default().to_owned(),
        };
        let shown = |slices: Vec<String>| slices.join(" ");
        let stay = writes.unchanged.iter().map(|slice| hints(slice)).collect();
        (shown(writes.update.iter().map(hints).collect()), shown(stay), counts)
    }

    #[test]
    fn zones_get_endpoints_by_their_shares() {
        for (name, cpus, zones, expected, outcome) in [
            ("equal zones", vec![1, 1, 1], "abc", "abc", "a1b1c1"),
            ("unequal zones", vec![2, 2, 1], "aaaaaabbcc", "bbaaaabbcc", "a4b4c2"),
            ("too much in one zone", vec![1, 1, 1], "aaaabc", "bcaabc", "a2b2c2"),
            ("all in one zone", vec![1, 1, 1], "aaa", "bca", "a1b1c1"),
            ("little too much is kept", vec![1, 1, 1], "aaabbcc", "aaabbcc", "a3b2c2"),
            ("no zone misses half of one", vec![1, 1, 1, 1, 1], "aaaaabbbcccdddeee", "aaaaabbbcccdddeee", "a5b3c3d3e3"),
            ("no zone is off by one", vec![5, 4], "aaaaabbb", "aaaaabbb", "a5b3"),
            ("what a zone must have is not split", vec![5, 1], "aaaa", "baaa", "a3b1"),
            ("a zone that is not counted keeps its own", vec![1, 1], "aabz", "aabz", "a2b1z1"),
            ("shares not known", vec![1, 1, 0], "aabb", "----", "Nodes"),
            ("not ready", vec![1, 1, 1], "abcAA", "abc--", "a1b1c1"),
            ("fewer endpoints than zones", vec![1, 1, 1], "abC", "---", "FewEndpoints"),
            ("no way to share", vec![1, 1, 1], "abca", "----", "Overload"),
            ("an endpoint without zone", vec![1, 1, 1], "ab-", "---", "NoZone"),
        ] {
            let none = "-".repeat(zones.len());
            let expected = (expected.to_owned(), String::new(), outcome.to_owned());
            assert_eq!(balanced(&cpus, &[(zones, &none)], &[]), expected, "{name}");
        }
    }

    #[test]
    fn slices_with_suitable_hints_stay() {
        for (name, written, unchanged, expected) in [
            ("nothing to do", vec![], vec![("ab", "ab")], ("", "ab", "a1b1")),
            ("what is new fills up", vec![("bb", "--")], vec![("aa", "ab")], ("ab", "ab", "a2b2")),
            ("one too many", vec![], vec![("aa", "aa"), ("aa", "aa")], ("bb", "aa", "a2b2")),
            ("no hint", vec![], vec![("ab", "a-")], ("ab", "", "a1b1")),
            ("a zone that is gone", vec![], vec![("ab", "az")], ("ab", "", "a1b1")),
            ("not ready", vec![], vec![("abAB", "ab-z")], ("", "ab-z", "a1b1")),
            ("written, old hint of one not ready", vec![("abA", "--b")], vec![], ("abb", "", "a1b1")),
            ("given up", vec![("a", "a")], vec![("A", "-"), ("A", "b")], ("- -", "-", "FewEndpoints")),
        ] {
            let (now, stay, counts) = balanced(&[1, 1], &written, &unchanged);
            assert_eq!((now.as_str(), stay.as_str(), counts.as_str()), expected, "{name}");
        }
    }

    #[test]
    fn without_shares_there_are_no_hints() {
        let now = balanced(&[1], &[("ab", "ab")], &[("ab", "ab")]);
        assert_eq!(now, ("-- --".into(), String::new(), "Nodes".into()));
    }
}
