//! From what is measured to what is to be done: thresholds that are met, how long, and the conditions of the node.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::usage::{FileSystems, Observation, Observations};
use crate::resources::thresholds::{Signal, Threshold};

/// What is remembered from pass to pass. Thresholds are known by their place in the list.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    met: BTreeSet<usize>,
    since: BTreeMap<usize, Instant>,
    conditions: BTreeMap<&'static str, Instant>,
    read: BTreeMap<Signal, SystemTime>,
}

/// What a pass comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Assessment {
    /// Thresholds to act upon, memory first.
    pub(super) due: Vec<usize>,
    /// The node's pressure conditions.
    pub(super) conditions: BTreeSet<String>,
}

/// Whether there is less than the threshold asks for; with `reclaim`, less than what must be free to leave it again.
pub(super) fn is_met(threshold: &Threshold, seen: &Observation, reclaim: bool) -> bool {
    let more = threshold.reclaim.filter(|_| reclaim).map_or(0, |amount| amount.of(seen.capacity));
    seen.available < threshold.amount.of(seen.capacity).saturating_add(more)
}

fn met(thresholds: &[Threshold], seen: &Observations, reclaim: bool) -> BTreeSet<usize> {
    let met = thresholds.iter().enumerate().filter(|(_, threshold)| {
        seen.get(&threshold.signal).is_some_and(|observation| is_met(threshold, observation, reclaim))
    });
    met.map(|(index, _)| index).collect()
}

/// Whether any threshold is still met, what must be free to leave it included.
pub(super) fn any_left(thresholds: &[Threshold], seen: &Observations) -> bool {
    !met(thresholds, seen, true).is_empty()
}

impl Pressure {
    /// Takes a new measurement. `hold` is how long conditions stay after they were last observed.
    pub(super) fn step(
        &mut self,
        thresholds: &[Threshold],
        seen: &Observations,
        now: Instant,
        hold: Duration,
    ) -> Assessment {
        let left: BTreeSet<usize> = met(thresholds, seen, true).intersection(&self.met).copied().collect();
        let met: BTreeSet<usize> = met(thresholds, seen, false).union(&left).copied().collect();
        self.since.retain(|index, _| met.contains(index));
        for index in &met {
            self.since.entry(*index).or_insert(now);
            if let Some(threshold) = thresholds.get(*index) {
                self.conditions.insert(threshold.signal.condition(), now);
            }
        }
        self.conditions.retain(|_, at| *at == now || now.saturating_duration_since(*at) < hold);
        let is_due = |index: &usize| {
            let Some(threshold) = thresholds.get(*index) else { return false };
            let held =
                self.since.get(index).is_some_and(|since| now.saturating_duration_since(*since) >= threshold.grace);
            // Old numbers never evict twice.
            let fresh =
                seen.get(&threshold.signal).is_some_and(|seen| self.read.get(&threshold.signal) != Some(&seen.at));
            held && fresh
        };
        let mut due: Vec<usize> = met.into_iter().filter(is_due).collect();
        self.met = due.iter().copied().collect();
        self.read = seen.iter().map(|(signal, seen)| (*signal, seen.at)).collect();
        due.sort_by_key(|index| thresholds.get(*index).is_none_or(|threshold| threshold.signal.resource() != "memory"));
        Assessment { due, conditions: self.conditions.keys().map(|name| (*name).to_owned()).collect() }
    }
}

/// The thresholds in force: users' own, the one of all pods together, and those copied to the writable layers.
pub(super) fn all(configured: &[Threshold], layout: FileSystems, pods_are_limited: bool) -> Vec<Threshold> {
    let mut out = configured.to_vec();
    let hard = configured.iter().filter(|threshold| threshold.grace.is_zero());
    out.extend(
        hard.filter(|threshold| pods_are_limited && threshold.signal == Signal::MemoryAvailable)
            .map(|threshold| Threshold { signal: Signal::AllocatableMemoryAvailable, ..threshold.clone() }),
    );
    // On one file system the copies would say the same again.
    let copied = |signal: Signal| match (layout, signal) {
        (FileSystems::Images, Signal::ImagefsAvailable) | (FileSystems::Split, Signal::NodefsAvailable) => {
            Some(Signal::ContainerfsAvailable)
        }
        (FileSystems::Images, Signal::ImagefsInodesFree) | (FileSystems::Split, Signal::NodefsInodesFree) => {
            Some(Signal::ContainerfsInodesFree)
        }
        _ => None,
    };
    out.extend(
        configured
            .iter()
            .filter_map(|threshold| Some(Threshold { signal: copied(threshold.signal)?, ..threshold.clone() })),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::thresholds::Amount;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
    }

    fn thresholds() -> Vec<Threshold> {
        let disk = Threshold {
            reclaim: Some(Amount::Bytes(50)),
            ..Threshold::hard(Signal::NodefsAvailable, Amount::Percent(10.0))
        };
        let soft = Threshold {
            grace: Duration::from_secs(30),
            ..Threshold::hard(Signal::MemoryAvailable, Amount::Bytes(300))
        };
        vec![disk, Threshold::hard(Signal::MemoryAvailable, Amount::Bytes(100)), soft]
    }

    #[test]
    fn thresholds_are_met_held_and_left() {
        let (mut pressure, start) = (Pressure::default(), Instant::now());
        let hold = Duration::from_secs(60);
        // (second, free memory, free disk, due, conditions)
        let (memory, disk) = ("MemoryPressure", "DiskPressure");
        type Step<'a> = (u64, i64, i64, &'a [usize], &'a [&'a str]);
        let steps: [Step<'_>; 11] = [
            (0, 500, 500, &[], &[]),
            (10, 200, 500, &[], &[memory]),
            (20, 50, 500, &[1], &[memory]),
            (40, 200, 90, &[2, 0], &[disk, memory]),
            (50, 400, 120, &[0], &[disk, memory]),
            (60, 400, 160, &[], &[disk, memory]),
            (100, 400, 160, &[], &[disk]),
            (110, 400, 160, &[], &[]),
            // A soft threshold that was left is held anew.
            (120, 200, 500, &[], &[memory]),
            (145, 200, 500, &[], &[memory]),
            (150, 200, 500, &[2], &[memory]),
        ];
        for (second, free_memory, free_disk, due, conditions) in steps {
            let seen = |available| Observation { available, capacity: 1000, at: at(second) };
            let observations =
                [(Signal::MemoryAvailable, seen(free_memory)), (Signal::NodefsAvailable, seen(free_disk))].into();
            let assessment = pressure.step(&thresholds(), &observations, start + Duration::from_secs(second), hold);
            let shown: Vec<&str> = assessment.conditions.iter().map(String::as_str).collect();
            assert_eq!((assessment.due.as_slice(), shown.as_slice()), (due, conditions), "after {second} s");
        }
    }

    #[test]
    fn old_numbers_do_nothing() {
        let (mut pressure, start) = (Pressure::default(), Instant::now());
        let seen = [(Signal::NodefsAvailable, Observation { available: 1, capacity: 1000, at: at(5) })].into();
        let mut due =
            |second| pressure.step(&thresholds(), &seen, start + Duration::from_secs(second), Duration::ZERO).due;
        assert_eq!((due(5), due(15)), (vec![0], vec![]));
    }

    #[test]
    fn thresholds_are_copied_to_what_users_cannot_name() {
        let names = |layout, limited| -> Vec<&str> {
            let configured = [
                Threshold::hard(Signal::MemoryAvailable, Amount::Bytes(1)),
                Threshold::hard(Signal::NodefsAvailable, Amount::Bytes(1)),
                Threshold::hard(Signal::ImagefsInodesFree, Amount::Bytes(1)),
            ];
            all(&configured, layout, limited).iter().skip(3).map(|threshold| threshold.signal.name()).collect()
        };
        assert_eq!(names(FileSystems::One, true), ["allocatableMemory.available"]);
        assert_eq!(names(FileSystems::Images, false), ["containerfs.inodesFree"]);
        assert_eq!(names(FileSystems::Split, false), ["containerfs.available"]);
    }
}
