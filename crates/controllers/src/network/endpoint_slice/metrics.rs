//! The `endpoint_slice_controller_*` metrics, with upstream's names and buckets.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use api_types::core_v1::Service;
use api_types::discovery_v1::EndpointSlice;
use client::ObjectKey;
use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability, exponential};
use parking_lot::Mutex;

use super::desired::identity;
use super::hints;
use super::layout::port_key;
use super::pack::Writes;

const PER_SYNC: &[f64] = &exponential::<15>(2.0, 2.0);

const fn beta(name: &'static str, help: &'static str) -> Desc {
    Desc::new(name, help, Stability::Beta)
}

const ADDED: Desc =
    beta("endpoint_slice_controller_endpoints_added_per_sync", "Endpoints that a look added.").buckets(PER_SYNC);
const REMOVED: Desc =
    beta("endpoint_slice_controller_endpoints_removed_per_sync", "Endpoints that a look removed.").buckets(PER_SYNC);
const ENDPOINTS: Desc = beta("endpoint_slice_controller_endpoints_desired", "Endpoints that there should be.");
const SLICES: Desc = beta("endpoint_slice_controller_num_endpoint_slices", "Slices that there are.");
const DESIRED: Desc = beta("endpoint_slice_controller_desired_endpoint_slices", "Slices that full packing would make.");
const DISTRIBUTIONS: Desc = beta(
    "endpoint_slice_controller_services_count_by_traffic_distribution",
    "Services, by how their traffic is distributed.",
)
.labels(&["traffic_distribution"]);
const CHANGES: Desc = Desc::new("endpoint_slice_controller_changes", "Slices that were written.", Stability::Alpha)
    .labels(&["operation"]);
const CHANGED: Desc = Desc::new(
    "endpoint_slice_controller_endpointslices_changed_per_sync",
    "Slices that a look wrote.",
    Stability::Alpha,
)
.labels(&["topology", "traffic_distribution"]);
const SYNCS: Desc =
    Desc::new("endpoint_slice_controller_syncs", "Looks at services.", Stability::Alpha).labels(&["result"]);

/// How a look at a service ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum SyncResult {
    Success,
    /// The cache was behind.
    Stale,
    Error,
}

/// What one service adds to the sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Share {
    endpoints: usize,
    slices: usize,
    desired: usize,
}

#[derive(Default)]
struct Sums {
    shares: HashMap<ObjectKey, Share>,
    distributions: HashMap<ObjectKey, String>,
    total: Share,
}

/// The families, and what each service adds to those that are sums. Bounded by the services there are.
pub(super) struct SliceMetrics {
    added: Histograms,
    removed: Histograms,
    endpoints: Gauges,
    slices: Gauges,
    desired: Gauges,
    distributions: Gauges,
    changes: Counters,
    changed: Histograms,
    syncs: Counters,
    sums: Mutex<Sums>,
}

/// What a plan does, counted before it is carried out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// Each family of the service counts as a look of its own, as upstream.
    families: Vec<FamilyEffect>,
    /// Slices that go with a family that the service does not have any more.
    dropped: usize,
}

/// What a plan does to the slices of one family.
#[derive(Debug, Default, PartialEq, Eq)]
struct FamilyEffect {
    share: Share,
    added: usize,
    removed: usize,
    /// Created, updated, deleted.
    writes: [usize; 3],
}

impl Effect {
    /// Of these writes on top of these slices, for a service with these families.
    pub(super) fn of(
        before: &[Arc<EndpointSlice>],
        writes: &Writes,
        families: impl Iterator<Item = &'static str>,
        max: usize,
    ) -> Self {
        let families: Vec<_> = families.map(|family| FamilyEffect::of(before, writes, family, max)).collect();
        let counted: usize = families.iter().map(|family| family.writes[2]).sum();
        Self { families, dropped: writes.delete.len().saturating_sub(counted) }
    }

    /// What the service adds to the sums with all its families.
    fn share(&self) -> Share {
        let sum = |part: fn(&Share) -> usize| self.families.iter().map(|family| part(&family.share)).sum();
        Share {
            endpoints: sum(|share| share.endpoints),
            slices: sum(|share| share.slices),
            desired: sum(|share| share.desired),
        }
    }
}

impl FamilyEffect {
    fn of(before: &[Arc<EndpointSlice>], writes: &Writes, family: &str, max: usize) -> Self {
        let is_of = |slice: &&EndpointSlice| slice.address_type == family;
        let before: Vec<&EndpointSlice> = before.iter().map(AsRef::as_ref).filter(is_of).collect();
        let create: Vec<&EndpointSlice> = writes.create.iter().filter(is_of).collect();
        let update: Vec<&EndpointSlice> = writes.update.iter().filter(is_of).collect();
        let delete = writes.delete.iter().map(AsRef::as_ref).filter(is_of).count();
        let unchanged = writes.unchanged.iter().map(AsRef::as_ref).filter(is_of);
        let after: Vec<&EndpointSlice> = create.iter().chain(&update).copied().chain(unchanged).collect();
        let endpoints = |slices: &mut dyn Iterator<Item = &EndpointSlice>| -> HashSet<_> {
            slices.flat_map(|slice| slice.endpoints.iter().map(identity)).collect()
        };
        let old = endpoints(&mut before.iter().copied());
        let new = endpoints(&mut after.iter().copied());
        let mut by_ports = BTreeMap::<_, usize>::new();
        for slice in &after {
            *by_ports.entry(port_key(&slice.ports)).or_default() += slice.endpoints.len();
        }
        let desired: usize = by_ports.values().map(|count| count.div_ceil(max.max(1))).sum();
        Self {
            share: Share { endpoints: by_ports.values().sum(), slices: after.len(), desired: desired.max(1) },
            added: new.difference(&old).count(),
            removed: old.difference(&new).count(),
            writes: [create.len(), update.len(), delete],
        }
    }
}

impl SliceMetrics {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            added: metrics.histograms(&ADDED),
            removed: metrics.histograms(&REMOVED),
            endpoints: metrics.gauges(&ENDPOINTS),
            slices: metrics.gauges(&SLICES),
            desired: metrics.gauges(&DESIRED),
            distributions: metrics.gauges(&DISTRIBUTIONS),
            changes: metrics.counters(&CHANGES),
            changed: metrics.histograms(&CHANGED),
            syncs: metrics.counters(&SYNCS),
            sums: Mutex::default(),
        }
    }

    /// A look has ended.
    pub(super) fn ended(&self, result: SyncResult) {
        let result = match result {
            SyncResult::Success => "success",
            SyncResult::Stale => "stale",
            SyncResult::Error => "error",
        };
        self.syncs.with(&[result]).inc();
    }

    /// A plan was carried out.
    #[expect(clippy::cast_precision_loss, reason = "numbers of endpoints are small")]
    pub(super) fn carried_out(&self, key: &ObjectKey, service: &Service, effect: &Effect) {
        let topology = if hints::are_asked_for(service) { "Auto" } else { "Disabled" };
        let distribution = hints::distribution(service).unwrap_or_default();
        for family in &effect.families {
            self.added.with(&[]).observe(family.added as f64);
            self.removed.with(&[]).observe(family.removed as f64);
            for (operation, count) in ["create", "update", "delete"].into_iter().zip(family.writes) {
                self.wrote(operation, count);
            }
            let written = family.writes.iter().sum::<usize>() as f64;
            self.changed.with(&[topology, distribution]).observe(written);
        }
        self.wrote("delete", effect.dropped);
        self.add_up(key, Some(effect.share()), distribution);
    }

    /// Slices were written; operations that were never done are not shown.
    #[expect(clippy::cast_precision_loss, reason = "numbers of slices are small")]
    fn wrote(&self, operation: &str, count: usize) {
        if count > 0 {
            self.changes.with(&[operation]).inc_by(count as f64);
        }
    }

    /// A service is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.add_up(key, None, "");
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers of endpoints are small")]
    fn add_up(&self, key: &ObjectKey, share: Option<Share>, distribution: &str) {
        let mut sums = self.sums.lock();
        let before = match share {
            Some(share) => sums.shares.insert(key.clone(), share),
            None => sums.shares.remove(key),
        };
        let (before, now) = (before.unwrap_or_default(), share.unwrap_or_default());
        let moved = |total: usize, before: usize, now: usize| (total + now).saturating_sub(before);
        sums.total = Share {
            endpoints: moved(sums.total.endpoints, before.endpoints, now.endpoints),
            slices: moved(sums.total.slices, before.slices, now.slices),
            desired: moved(sums.total.desired, before.desired, now.desired),
        };
        self.endpoints.with(&[]).set(sums.total.endpoints as f64);
        self.slices.with(&[]).set(sums.total.slices as f64);
        self.desired.with(&[]).set(sums.total.desired as f64);
        let former = sums.distributions.remove(key);
        if !distribution.is_empty() {
            sums.distributions.insert(key.clone(), distribution.to_owned());
        }
        for name in former.iter().map(String::as_str).chain([distribution]).filter(|name| !name.is_empty()) {
            let count = sums.distributions.values().filter(|known| *known == name).count();
            self.distributions.with(&[name]).set(count as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::constants::ANNOTATION_TOPOLOGY_MODE;
    use api_types::discovery_v1::Endpoint;
    use component_base::metrics::MetricsOptions;

    use super::*;

    fn slice_of(family: &str, addresses: &[&str]) -> EndpointSlice {
        let endpoint = |address: &&str| Endpoint { addresses: vec![(*address).to_owned()], ..Endpoint::default() };
        let endpoints = addresses.iter().map(endpoint).collect();
        EndpointSlice { endpoints, address_type: family.into(), ..EndpointSlice::default() }
    }

    fn slice(addresses: &[&str]) -> EndpointSlice {
        slice_of("IPv4", addresses)
    }

    #[test]
    fn each_family_is_a_look_of_its_own() {
        let metrics = Metrics::new(MetricsOptions::default());
        let slices = SliceMetrics::new(&metrics);
        let before =
            [Arc::new(slice(&["1", "2"])), Arc::new(slice_of("IPv6", &["::1"])), Arc::new(slice_of("IP", &[]))];
        let writes = Writes {
            create: vec![slice(&["3"])],
            delete: before[2..].to_vec(),
            unchanged: before[..2].to_vec(),
            ..Writes::default()
        };
        let effect = Effect::of(&before, &writes, ["IPv4", "IPv6"].into_iter(), 100);
        slices.carried_out(&ObjectKey::new("ns", "s"), &Service::default(), &effect);
        let text = metrics.text();
        for line in [
            "endpoints_added_per_sync_count 2",
            "endpoints_added_per_sync_sum 1",
            "endpoints_removed_per_sync_count 2",
            "endpointslices_changed_per_sync_count{topology=\"Disabled\",traffic_distribution=\"\"} 2",
            "endpointslices_changed_per_sync_sum{topology=\"Disabled\",traffic_distribution=\"\"} 1",
            "changes{operation=\"create\"} 1",
            "changes{operation=\"delete\"} 1",
            "num_endpoint_slices 3",
            "desired_endpoint_slices 2",
            "endpoints_desired 4",
        ] {
            assert!(text.contains(&format!("endpoint_slice_controller_{line}\n")), "{line}\nin\n{text}");
        }
        assert!(!text.contains("update"), "what was never done is not there");
    }

    #[test]
    fn services_add_up() {
        let metrics = Metrics::new(MetricsOptions::default());
        let slices = SliceMetrics::new(&metrics);
        let before = [Arc::new(slice(&["1", "2"]))];
        let writes = Writes { update: vec![slice(&["2", "3", "4"])], ..Writes::default() };
        let effect = Effect::of(&before, &writes, ["IPv4"].into_iter(), 2);
        let own = &effect.families[0];
        assert_eq!((own.added, own.removed, own.writes), (2, 1, [0, 1, 0]));
        assert_eq!(effect.share(), Share { endpoints: 3, slices: 1, desired: 2 });
        let (one, two) = (ObjectKey::new("ns", "one"), ObjectKey::new("ns", "two"));
        let mut service = Service::default();
        service.spec.traffic_distribution = Some("PreferClose".into());
        slices.carried_out(&one, &service, &effect);
        slices.carried_out(&two, &service, &effect);
        slices.carried_out(&two, &service, &effect);
        let shows = |line: &str| metrics.text().contains(line);
        let changed = "endpoint_slice_controller_endpointslices_changed_per_sync_count";
        assert!(shows(&format!("{changed}{{topology=\"Disabled\",traffic_distribution=\"PreferClose\"}} 3\n")));
        assert!(shows("endpoint_slice_controller_endpoints_desired 6\n"));
        let by =
            "endpoint_slice_controller_services_count_by_traffic_distribution{traffic_distribution=\"PreferClose\"}";
        assert!(shows(&format!("{by} 2\n")));
        service.metadata.annotations.insert(ANNOTATION_TOPOLOGY_MODE.into(), "Auto".into());
        slices.carried_out(&two, &service, &effect);
        assert!(shows(&format!("{changed}{{topology=\"Auto\",traffic_distribution=\"\"}} 1\n")));
        assert!(shows(&format!("{by} 1\n")), "the annotation goes before the distribution");
        slices.forget(&one);
        assert!(shows("endpoint_slice_controller_num_endpoint_slices 1\n") && shows(&format!("{by} 0\n")));
    }
}
