//! How many pods a replica set lacks, or which ones it has too many of.

use std::sync::Arc;

use api_machinery::time::MicroTime;
use api_types::core_v1::Pod;

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
    let mut ranked = ranking::first_to_go(active, &related(), now);
    ranked.truncate(excess);
    Scaling::Delete(ranked)
}
