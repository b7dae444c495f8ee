//! Which slices mirror some Endpoints, and what must be written for that.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_types::core_v1::{EndpointAddress, EndpointSubset, Endpoints};
use api_types::discovery_v1::constants::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use api_types::discovery_v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};

use super::MANAGER;
use crate::network::endpoint_slice::layout::{PortKey, port_key};
use crate::network::endpoints::subsets::repack;

/// Annotations that are about the Endpoints object itself.
const OWN_ANNOTATIONS: [&str; 2] =
    ["endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration"];

/// What to write.
#[derive(Debug, Default)]
pub(super) struct Writes {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
}

/// The writes, and how many addresses are left out: because they are none, or are too many.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) writes: Writes,
    pub(super) invalid: usize,
    pub(super) skipped: usize,
}

impl Plan {
    /// What is told of addresses that are left out, `max` being the most of a subset: reasons and texts.
    pub(super) fn notices(&self, max: usize) -> Vec<(&'static str, String)> {
        let mut notices = Vec::new();
        if self.invalid > 0 {
            let text = format!("Skipped {} invalid IP addresses when mirroring to EndpointSlices", self.invalid);
            notices.push(("InvalidIPAddress", text));
        }
        if self.skipped > 0 {
            let text = format!(
                "A max of {max} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were skipped",
                // Upstream counts those that are none among them.
                self.skipped + self.invalid
            );
            notices.push(("TooManyAddressesToMirror", text));
        }
        notices
    }
}

/// A slice is known by its family and its ports.
type Group = (&'static str, PortKey);

/// Decides; `max` is the most addresses of a subset.
pub(super) fn plan(endpoints: &Endpoints, slices: &[Arc<EndpointSlice>], max: usize) -> Plan {
    let mut plan = Plan::default();
    let mut wanted: BTreeMap<Group, EndpointSlice> = BTreeMap::new();
    for subset in repack(&endpoints.subsets) {
        mirror(endpoints, &subset, max, &mut wanted, &mut plan);
    }
    let mut existing: BTreeMap<(String, PortKey), Vec<Arc<EndpointSlice>>> = BTreeMap::new();
    for slice in slices {
        existing.entry((slice.address_type.clone(), port_key(&slice.ports))).or_default().push(Arc::clone(slice));
    }
    let writes = &mut plan.writes;
    for ((family, ports), mut slice) in wanted {
        let mut same = existing.remove(&(family.to_owned(), ports)).unwrap_or_default().into_iter();
        let Some(first) = same.next() else {
            writes.create.push(slice);
            continue;
        };
        writes.delete.extend(same);
        if !is_current(&first, &slice) {
            slice.metadata.name.clone_from(&first.metadata.name);
            writes.update.push(slice);
        }
    }
    writes.delete.extend(existing.into_values().flatten());
    reuse_names(writes);
    plan
}

/// Puts the addresses of a subset into the slices of their families.
fn mirror(
    endpoints: &Endpoints,
    subset: &EndpointSubset,
    max: usize,
    wanted: &mut BTreeMap<Group, EndpointSlice>,
    plan: &mut Plan,
) {
    let ports: Vec<EndpointPort> = subset
        .ports
        .iter()
        .map(|port| EndpointPort {
            name: Some(port.name.clone()),
            protocol: Some(port.protocol.clone()),
            port: Some(port.port),
            app_protocol: port.app_protocol.clone(),
        })
        .collect();
    let key = port_key(&ports);
    let ready = subset.addresses.iter().map(|address| (address, true));
    let mut taken = 0;
    for (address, is_ready) in ready.chain(subset.not_ready_addresses.iter().map(|address| (address, false))) {
        if taken >= max {
            plan.skipped += 1;
            continue;
        }
        let Ok(ip) = address.ip.parse::<IpAddr>() else {
            plan.invalid += 1;
            continue;
        };
        taken += 1;
        let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
        let slice = wanted.entry((family, key.clone())).or_insert_with(|| empty(endpoints, family, &ports));
        slice.endpoints.push(endpoint(address, ip, is_ready));
    }
}

fn endpoint(address: &EndpointAddress, ip: IpAddr, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![ip.to_string()],
        conditions: EndpointConditions { ready: Some(ready), ..EndpointConditions::default() },
        hostname: (!address.hostname.is_empty()).then(|| address.hostname.clone()),
        target_ref: address.target_ref.clone(),
        node_name: address.node_name.clone(),
        ..Endpoint::default()
    }
}

fn empty(endpoints: &Endpoints, family: &str, ports: &[EndpointPort]) -> EndpointSlice {
    let meta = &endpoints.metadata;
    let mut labels = meta.labels.clone();
    labels.insert(LABEL_SERVICE_NAME.to_owned(), meta.name.clone());
    labels.insert(LABEL_MANAGED_BY.to_owned(), MANAGER.to_owned());
    let mut annotations = meta.annotations.clone();
    annotations.retain(|name, _| !OWN_ANNOTATIONS.contains(&name.as_str()));
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Endpoints".to_owned(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let metadata = ObjectMeta {
        generate_name: format!("{}-", meta.name),
        namespace: meta.namespace.clone(),
        labels,
        annotations,
        owner_references: vec![owner],
        ..ObjectMeta::default()
    };
    EndpointSlice { metadata, address_type: family.to_owned(), ports: ports.to_vec(), ..EndpointSlice::default() }
}

/// Whether a slice is as it should be.
fn is_current(present: &EndpointSlice, wanted: &EndpointSlice) -> bool {
    let same_owner = present.metadata.owner_references == wanted.metadata.owner_references;
    let same_endpoints = present.endpoints.len() == wanted.endpoints.len()
        && wanted.endpoints.iter().all(|endpoint| present.endpoints.contains(endpoint));
    let mut annotations = present.metadata.annotations.clone();
    annotations.retain(|name, _| !OWN_ANNOTATIONS.contains(&name.as_str()));
    same_owner
        && same_endpoints
        && present.metadata.labels == wanted.metadata.labels
        && annotations == wanted.metadata.annotations
}

/// A new slice takes the place of one that goes, so that watchers see one change instead of two.
fn reuse_names(writes: &mut Writes) {
    for mut new in std::mem::take(&mut writes.create) {
        match writes.delete.iter().position(|old| old.address_type == new.address_type) {
            None => writes.create.push(new),
            Some(at) => {
                new.metadata.name.clone_from(&writes.delete.remove(at).metadata.name);
                writes.update.push(new);
            }
        }
    }
}
