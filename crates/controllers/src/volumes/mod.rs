//! Volumes: claims and volumes brought together and kept, volumes brought to nodes and taken away, and told to grow.

pub(crate) mod attach_detach;
pub(crate) mod attributes_class_protection;
pub(crate) mod binder;
pub(crate) mod ephemeral;
pub(crate) mod expander;
mod newest;
mod notice;
mod plugins;
pub(crate) mod selinux;
pub(crate) mod storage_protection;
mod unused_claims;

use std::collections::BTreeMap;

use api_types::core_v1::Pod;
use component_base::metrics::{Sample, Value};
use component_helpers::volumes::of_pods;

/// Index of pods by the claims that they have, `{namespace}/{name}`.
const PODS_BY_CLAIM: &str = "pod-claims";

/// The values of the index for a pod.
fn keys_of_claims(pod: &Pod) -> Vec<String> {
    let namespace = &pod.metadata.namespace;
    of_pods::claim_names(pod).map(|name| format!("{namespace}/{name}")).collect()
}

/// One series for each combination of labels.
fn tally(all: impl Iterator<Item = Vec<String>>) -> Vec<Sample> {
    let mut counts: BTreeMap<Vec<String>, u32> = BTreeMap::new();
    for labels in all {
        *counts.entry(labels).or_default() += 1;
    }
    counts.into_iter().map(|(labels, count)| (labels, Value::Gauge(f64::from(count)))).collect()
}
