//! What the two kinds that keep a number of equal pods, ReplicaSet and ReplicationController, have in common.

use api_machinery::field_path::{ErrorList, Path};

use crate::workload;

/// The counters of a status.
pub(crate) struct Counts {
    pub(crate) all: i32,
    pub(crate) fully_labeled: i32,
    pub(crate) ready: i32,
    pub(crate) available: i32,
    pub(crate) terminating: Option<i32>,
    pub(crate) observed_generation: i64,
}

/// Counters are not negative, and no more than what they count parts of.
pub(crate) fn validate(path: &Path, counts: &Counts, errors: &mut ErrorList) {
    let counters = [
        ("replicas", counts.all.into()),
        ("fullyLabeledReplicas", counts.fully_labeled.into()),
        ("readyReplicas", counts.ready.into()),
        ("availableReplicas", counts.available.into()),
        ("observedGeneration", counts.observed_generation),
        ("terminatingReplicas", counts.terminating.unwrap_or(0).into()),
    ];
    workload::not_negative(path, &counters, errors);
    let parts = [
        ("fullyLabeledReplicas", counts.fully_labeled),
        ("readyReplicas", counts.ready),
        ("availableReplicas", counts.available),
    ];
    workload::parts_of(path, counts.all, &parts, errors);
    workload::available_are_ready(path, (counts.available, counts.ready), "readyReplicas", errors);
}
