//! The `endpoint_slice_mirroring_controller_*` metrics, with upstream's names and buckets.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api_types::discovery_v1::{Endpoint, EndpointSlice};
use client::ObjectKey;
use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability, exponential};
use parking_lot::Mutex;

use super::plan::Plan;
use crate::network::endpoint_slice::desired::{Identity, identity};

const PER_SYNC: &[f64] = &exponential::<15>(2.0, 2.0);

const fn alpha(name: &'static str, help: &'static str) -> Desc {
    Desc::new(name, help, Stability::Alpha)
}

const ADDED: Desc =
    alpha("endpoint_slice_mirroring_controller_endpoints_added_per_sync", "Endpoints that a look added.")
        .buckets(PER_SYNC);
const UPDATED: Desc =
    alpha("endpoint_slice_mirroring_controller_endpoints_updated_per_sync", "Endpoints that a look changed.")
        .buckets(PER_SYNC);
const REMOVED: Desc =
    alpha("endpoint_slice_mirroring_controller_endpoints_removed_per_sync", "Endpoints that a look removed.")
        .buckets(PER_SYNC);
const SKIPPED: Desc =
    alpha("endpoint_slice_mirroring_controller_addresses_skipped_per_sync", "Addresses that a look left out.")
        .buckets(PER_SYNC);
const DURATION: Desc =
    alpha("endpoint_slice_mirroring_controller_endpoints_sync_duration", "How long a look took, in seconds.")
        .buckets(&exponential::<15>(0.001, 2.0));
const ENDPOINTS: Desc =
    alpha("endpoint_slice_mirroring_controller_endpoints_desired", "Endpoints that there should be.");
const SLICES: Desc = alpha("endpoint_slice_mirroring_controller_num_endpoint_slices", "Slices that there are.");
const DESIRED: Desc =
    alpha("endpoint_slice_mirroring_controller_desired_endpoint_slices", "Slices that full packing would make.");
const CHANGES: Desc =
    alpha("endpoint_slice_mirroring_controller_changes", "Slices that were written.").labels(&["operation"]);

/// What one Endpoints object adds to the sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    endpoints: usize,
    slices: usize,
    desired: usize,
}

/// What a plan does, counted before it is carried out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    share: Share,
    added: usize,
    updated: usize,
    removed: usize,
    skipped: usize,
    writes: [usize; 3],
}

impl Effect {
    /// Of this plan on top of these slices.
    pub(super) fn of(before: &[Arc<EndpointSlice>], plan: &Plan, max: usize) -> Self {
        let writes = &plan.writes;
        let is_replaced = |slice: &EndpointSlice| {
            let name = &slice.metadata.name;
            let mut gone = writes.delete.iter().map(AsRef::as_ref).chain(&writes.update);
            gone.any(|other| other.metadata.name == *name)
        };
        let stays = before.iter().map(AsRef::as_ref).filter(|slice| !is_replaced(slice));
        let after: Vec<&EndpointSlice> = writes.create.iter().chain(&writes.update).chain(stays).collect();
        let old = by_identity(before.iter().map(AsRef::as_ref));
        let new = by_identity(after.iter().copied());
        let kept = || new.iter().filter_map(|(known, endpoint)| Some((endpoint, old.get(known)?)));
        let sizes = after.iter().map(|slice| slice.endpoints.len());
        Self {
            share: Share {
                endpoints: sizes.clone().sum(),
                slices: after.len(),
                desired: sizes.map(|size| size.div_ceil(max.max(1))).sum(),
            },
            added: new.len() - kept().count(),
            updated: kept().filter(|(new, old)| new != old).count(),
            removed: old.len() - kept().count(),
            skipped: plan.invalid + plan.skipped,
            writes: [writes.create.len(), writes.update.len(), writes.delete.len()],
        }
    }
}

fn by_identity<'a>(slices: impl Iterator<Item = &'a EndpointSlice>) -> BTreeMap<Identity, &'a Endpoint> {
    slices.flat_map(|slice| &slice.endpoints).map(|endpoint| (identity(endpoint), endpoint)).collect()
}

/// The families, and what each Endpoints object adds to those that are sums. Bounded by the objects there are.
pub(super) struct MirrorMetrics {
    /// Added, updated, removed, skipped.
    per_sync: [Histograms; 4],
    duration: Histograms,
    endpoints: Gauges,
    slices: Gauges,
    desired: Gauges,
    changes: Counters,
    shares: Mutex<HashMap<ObjectKey, Share>>,
}

#[expect(clippy::cast_precision_loss, reason = "numbers of endpoints are small")]
impl MirrorMetrics {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            per_sync: [&ADDED, &UPDATED, &REMOVED, &SKIPPED].map(|desc| metrics.histograms(desc)),
            duration: metrics.histograms(&DURATION),
            endpoints: metrics.gauges(&ENDPOINTS),
            slices: metrics.gauges(&SLICES),
            desired: metrics.gauges(&DESIRED),
            changes: metrics.counters(&CHANGES),
            shares: Mutex::default(),
        }
    }

    /// A look has ended, however.
    pub(super) fn ended(&self, took: Duration) {
        self.duration.with(&[]).observe(took.as_secs_f64());
    }

    /// A plan was carried out.
    pub(super) fn carried_out(&self, key: &ObjectKey, effect: &Effect) {
        let counts = [effect.added, effect.updated, effect.removed, effect.skipped];
        for (histogram, count) in self.per_sync.iter().zip(counts) {
            histogram.with(&[]).observe(count as f64);
        }
        for (operation, count) in ["create", "update", "delete"].into_iter().zip(effect.writes) {
            self.changes.with(&[operation]).inc_by(count as f64);
        }
        self.shares.lock().insert(key.clone(), effect.share);
        self.add_up();
    }

    /// An Endpoints object is gone, or is not mirrored any more.
    pub(super) fn forget(&self, key: &ObjectKey) {
        if self.shares.lock().remove(key).is_some() {
            self.add_up();
        }
    }

    fn add_up(&self) {
        let shares = self.shares.lock();
        let sum = |part: fn(&Share) -> usize| shares.values().map(part).sum::<usize>() as f64;
        self.endpoints.with(&[]).set(sum(|share| share.endpoints));
        self.slices.with(&[]).set(sum(|share| share.slices));
        self.desired.with(&[]).set(sum(|share| share.desired));
    }
}

#[cfg(test)]
mod tests {
    use component_base::metrics::MetricsOptions;

    use super::super::plan::Writes;
    use super::*;

    fn slice(name: &str, endpoints: &[(&str, bool)]) -> EndpointSlice {
        let endpoint = |(address, ready): &(&str, bool)| {
            let mut endpoint = Endpoint { addresses: vec![(*address).to_owned()], ..Endpoint::default() };
            endpoint.conditions.ready = Some(*ready);
            endpoint
        };
        let mut slice =
            EndpointSlice { endpoints: endpoints.iter().map(endpoint).collect(), ..EndpointSlice::default() };
        slice.metadata.name = name.into();
        slice
    }

    #[test]
    fn mirrored_objects_add_up() {
        let before = [Arc::new(slice("a", &[("1", true), ("2", true)])), Arc::new(slice("b", &[("9", true)]))];
        let writes =
            Writes { update: vec![slice("a", &[("2", false), ("3", true), ("4", true)])], ..Writes::default() };
        let effect = Effect::of(&before, &Plan { writes, invalid: 1, skipped: 2 }, 2);
        let counts = (effect.added, effect.updated, effect.removed, effect.skipped);
        assert_eq!((counts, effect.writes), ((2, 1, 1, 3), [0, 1, 0]));
        assert_eq!(effect.share, Share { endpoints: 4, slices: 2, desired: 3 });
        let metrics = Metrics::new(MetricsOptions::default());
        let mirror = MirrorMetrics::new(&metrics);
        let (one, two) = (ObjectKey::new("ns", "one"), ObjectKey::new("ns", "two"));
        for key in [&one, &two, &two] {
            mirror.carried_out(key, &effect);
        }
        let shows = |line: &str| {
            let (text, line) = (metrics.text(), format!("endpoint_slice_mirroring_controller_{line}"));
            assert!(text.lines().any(|shown| shown == line), "{line}\nin\n{text}");
        };
        shows("endpoints_desired 8");
        shows("changes{operation=\"update\"} 3");
        mirror.forget(&one);
        shows("num_endpoint_slices 2");
        shows("desired_endpoint_slices 3");
    }
}
