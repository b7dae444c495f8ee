//! How many pods a replica set lacks, or which ones it has too many of.

use std::sync::Arc;

use api_machinery::time::{MicroTime, Time};
use api_types::core_v1::Pod;
use component_helpers::pod_state::is_ready;

use super::Features;
use super::kind::Replicated;
use super::ranking;

/// Most pods that are created or deleted at a time.
const BURST: usize = 500;

/// What to do.
#[derive(Debug)]
pub(super) enum Scaling {
    /// Nothing.
    Enough,
    /// Create so many.
    Create(usize),
    /// Delete these.
    Delete(Vec<Arc<Pod>>),
}

/// Compares the active pods with the wanted number. `related` finds the active pods of sibling sets, which share nodes;
/// it is only asked when some pods must be chosen.
pub(super) fn scaling<O: Replicated>(
    set: &O,
    active: &[Arc<Pod>],
    related: impl FnOnce() -> Vec<Arc<Pod>>,
    features: Features,
    now: MicroTime,
) -> Scaling {
    let wanted = set.wanted();
    if active.len() < wanted {
        return Scaling::Create((wanted - active.len()).min(BURST));
    }
    let excess = (active.len() - wanted).min(BURST);
    if excess == 0 {
        return Scaling::Enough;
    }
    if excess == active.len() {
        return Scaling::Delete(active.to_vec());
    }
    let mut ranked = ranking::first_to_go(active, &related(), features, now);
    ranked.truncate(excess);
    Scaling::Delete(ranked)
}

/// For each ready pod that was chosen to go: how many times as old it is as the youngest ready one, in whole numbers as
/// upstream. Nothing where all go, as none was chosen then.
pub(super) fn age_ratios(active: &[Arc<Pod>], chosen: &[Arc<Pod>], now: Time) -> Vec<u128> {
    let age = |pod: &Arc<Pod>| now.since(pod.metadata.creation_timestamp).as_millis();
    let ready = |pods: &[Arc<Pod>]| -> Vec<u128> { pods.iter().filter(|pod| is_ready(pod)).map(age).collect() };
    let Some(youngest) = ready(active).into_iter().min().filter(|_| chosen.len() < active.len()) else {
        return Vec::new();
    };
    ready(chosen).into_iter().filter_map(|age| age.checked_div(youngest)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{at, pod, ready};
    use super::*;

    #[test]
    fn ages_are_compared_with_the_youngest_ready_pod() {
        let born = |name: &str, created: i64, is_ready: bool| {
            let mut pod = pod(name, "Running", None);
            pod.metadata.creation_timestamp = at(created);
            Arc::new(if is_ready { ready(pod, created) } else { pod })
        };
        let active = [born("a", 0, true), born("b", 55, true), born("c", 90, true), born("d", 99, false)];
        for (name, chosen, now, expected) in [
            ("one", &active[..1], 100, vec![10]),
            ("whole numbers", &active[..2], 100, vec![10, 4]),
            ("those that are not ready do not count", &active[3..], 100, vec![]),
            ("all", &active[..], 100, vec![]),
            ("no time has passed", &active[..1], 90, vec![]),
        ] {
            assert_eq!(age_ratios(&active, chosen, at(now)), expected, "{name}");
        }
    }
}
