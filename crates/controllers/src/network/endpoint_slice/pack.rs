//! Spreads endpoints over slices with as few writes as possible: full slices are not a goal.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::Service;
use api_types::discovery_v1::{Endpoint, EndpointSlice};

use super::desired::{Group, Identity, identity};
use super::layout::{empty_slice, labels};
use crate::network::backends::Family;

/// What is to be written.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Writes {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
    pub(super) unchanged: Vec<Arc<EndpointSlice>>,
}

/// Packs the endpoints of one group, at most `max` in a slice.
pub(super) fn pack(
    service: &Service,
    family: Family,
    existing: &[Arc<EndpointSlice>],
    group: Group,
    max: usize,
    writes: &mut Writes,
) {
    let Group { ports, endpoints: mut wanted } = group;
    let mut packing = Packing::default();
    for slice in existing {
        packing.keep(slice, &mut wanted, service);
    }
    let mut rest: Vec<Endpoint> = wanted.into_values().collect();
    packing.fill_updates(&mut rest, max);
    packing.fill_unchanged(&mut rest, max);
    while !rest.is_empty() {
        let mut slice = empty_slice(service, family, ports.clone());
        slice.endpoints = rest.drain(..rest.len().min(max.max(1))).collect();
        writes.create.push(slice);
        // What new slices do not take may fit into one that is there.
        packing.fill_unchanged(&mut rest, max);
    }
    writes.update.extend(packing.update);
    writes.delete.extend(packing.delete);
    writes.unchanged.extend(packing.unchanged);
}

#[derive(Default)]
struct Packing {
    update: Vec<EndpointSlice>,
    delete: Vec<Arc<EndpointSlice>>,
    unchanged: Vec<Arc<EndpointSlice>>,
}

impl Packing {
    /// Keeps what is still wanted of a slice.
    fn keep(&mut self, slice: &Arc<EndpointSlice>, wanted: &mut BTreeMap<Identity, Endpoint>, service: &Service) {
        let mut kept = Vec::with_capacity(slice.endpoints.len());
        let mut changed = false;
        for old in &slice.endpoints {
            let Some(mut new) = wanted.remove(&identity(old)) else {
                changed = true;
                continue;
            };
            changed |= differs(old, &new);
            new.hints.clone_from(&old.hints);
            kept.push(new);
        }
        if kept.is_empty() {
            // Also a placeholder: whether it stays is decided when all is known.
            return self.delete.push(Arc::clone(slice));
        }
        let labels = labels(service);
        if !changed && slice.metadata.labels == labels {
            return self.unchanged.push(Arc::clone(slice));
        }
        let mut slice = EndpointSlice::clone(slice);
        slice.endpoints = kept;
        slice.metadata.labels = labels;
        self.update.push(slice);
    }

    /// Slices that are written anyway take what they can, the fullest first.
    fn fill_updates(&mut self, rest: &mut Vec<Endpoint>, max: usize) {
        if rest.is_empty() {
            return;
        }
        self.update.sort_by_key(|slice| std::cmp::Reverse(slice.endpoints.len()));
        for slice in &mut self.update {
            let room = max.saturating_sub(slice.endpoints.len()).min(rest.len());
            slice.endpoints.extend(rest.drain(..room));
        }
    }

    /// What is left goes into the one unchanged slice that it fills best, if it fits into any.
    fn fill_unchanged(&mut self, rest: &mut Vec<Endpoint>, max: usize) {
        if rest.is_empty() || rest.len() >= max {
            return;
        }
        let room = |slice: &EndpointSlice| max.checked_sub(slice.endpoints.len() + rest.len());
        let fits = self.unchanged.iter().enumerate().filter_map(|(at, slice)| room(slice).map(|room| (room, at)));
        let Some((_, at)) = fits.min() else { return };
        let mut slice = EndpointSlice::clone(&self.unchanged.remove(at));
        slice.endpoints.append(rest);
        self.update.push(slice);
    }
}

/// Whether what is written about an endpoint changed; hints are looked at later.
fn differs(old: &Endpoint, new: &Endpoint) -> bool {
    let target = |endpoint: &Endpoint| {
        endpoint.target_ref.clone().map(|mut target| {
            target.resource_version.clear();
            target
        })
    };
    old.node_name != new.node_name
        || old.zone != new.zone
        || old.conditions != new.conditions
        || target(old) != target(new)
}
