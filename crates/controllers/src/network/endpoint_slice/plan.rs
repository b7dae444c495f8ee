//! From what is there to what is to be written, for all address families of a service.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::{Node, Pod, Service};
use api_types::discovery_v1::EndpointSlice;

use super::desired::{Group, groups};
use super::hints::{self, Balance};
use super::layout::{PortKey, empty_slice, is_owned, port_key};
use super::pack::{Writes, pack};
use super::zones::Shares;
use crate::network::backends::{Family, families};

/// The writes, and what could not be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) writes: Writes,
    pub(super) problems: Vec<String>,
    /// What came of hints by annotation, for each family that the service has.
    pub(super) balances: Vec<(Family, Balance)>,
}

/// Decides. `node` finds nodes, `shares` are those of their zones, `max` is the most endpoints of a slice.
pub(super) fn plan(
    service: &Service,
    pods: &[Arc<Pod>],
    slices: &[Arc<EndpointSlice>],
    node: impl Fn(&str) -> Option<Arc<Node>>,
    shares: &Shares,
    max: usize,
) -> Plan {
    let mut families = families(service);
    if families.is_empty() {
        families = vec![Family::V4, Family::V6];
    }
    let mut plan = Plan::default();
    let is_of = |slice: &EndpointSlice, family: Family| slice.address_type == family.name();
    for slice in slices.iter().filter(|slice| !families.iter().any(|family| is_of(slice, *family))) {
        plan.writes.delete.push(Arc::clone(slice));
    }
    for family in families {
        let of_family: Vec<_> = slices.iter().filter(|slice| is_of(slice, family)).cloned().collect();
        let groups = groups(service, pods, family, &node, &mut plan.problems);
        let mut writes = family_writes(service, family, &of_family, groups, max);
        plan.balances.push((family, hints::apply(service, shares, &mut writes)));
        merge(&mut plan.writes, writes);
    }
    plan
}

fn family_writes(
    service: &Service,
    family: Family,
    slices: &[Arc<EndpointSlice>],
    groups: BTreeMap<PortKey, Group>,
    max: usize,
) -> Writes {
    let mut writes = Writes::default();
    let mut by_ports: BTreeMap<PortKey, Vec<Arc<EndpointSlice>>> = BTreeMap::new();
    for slice in slices {
        if is_owned(slice, service) {
            by_ports.entry(port_key(&slice.ports)).or_default().push(Arc::clone(slice));
        } else {
            writes.delete.push(Arc::clone(slice));
        }
    }
    for (key, group) in groups {
        let existing = by_ports.remove(&key).unwrap_or_default();
        pack(service, family, &existing, group, max, &mut writes);
    }
    writes.delete.extend(by_ports.into_values().flatten());
    keep_placeholder(service, family, &mut writes);
    writes
}

/// A service with a selector has at least one slice of each family, be it an empty one.
fn keep_placeholder(service: &Service, family: Family, writes: &mut Writes) {
    if !writes.create.is_empty() || !writes.update.is_empty() || !writes.unchanged.is_empty() {
        return;
    }
    let wanted = empty_slice(service, family, Vec::new());
    let stays = |slice: &EndpointSlice| {
        slice.endpoints.is_empty()
            && slice.ports.is_empty()
            && slice.metadata.labels == wanted.metadata.labels
            && is_owned(slice, service)
    };
    match writes.delete.as_slice() {
        [only] if stays(only) => writes.unchanged.append(&mut writes.delete),
        _ => writes.create.push(wanted),
    }
}

fn merge(into: &mut Writes, from: Writes) {
    into.create.extend(from.create);
    into.update.extend(from.update);
    into.delete.extend(from.delete);
    into.unchanged.extend(from.unchanged);
}
