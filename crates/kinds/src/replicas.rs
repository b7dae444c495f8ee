//! What the two kinds that keep a number of equal pods, ReplicaSet and ReplicationController, have in common.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::Container;

use crate::info::Column;
use crate::{table, workload};

/// The table's columns.
pub(crate) const COLUMNS: &[Column<'static>] = &[
    Column::NAME,
    Column::number("Desired"),
    Column::number("Current"),
    Column::number("Ready"),
    Column::AGE,
    Column::wide("Containers"),
    Column::wide("Images"),
    Column::wide("Selector"),
];

/// The counters of a status.
pub(crate) struct Counts {
    pub(crate) all: i32,
    pub(crate) fully_labeled: i32,
    pub(crate) ready: i32,
    pub(crate) available: i32,
    pub(crate) terminating: Option<i32>,
    pub(crate) observed_generation: i64,
}

/// The cells of a row, in the order of [`COLUMNS`].
pub(crate) fn cells(
    meta: &ObjectMeta,
    wanted: Option<i32>,
    counts: &Counts,
    (containers, selector): (&[Container], Value),
    now: Time,
) -> Vec<Value> {
    vec![
        meta.name.clone().into(),
        wanted.unwrap_or_default().into(),
        counts.all.into(),
        counts.ready.into(),
        table::age(meta, now),
        table::names(containers),
        table::images(containers),
        selector,
    ]
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
