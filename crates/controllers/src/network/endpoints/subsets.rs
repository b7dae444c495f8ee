//! The subsets of Endpoints: addresses by the ports they offer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_types::core_v1::{EndpointAddress, EndpointPort, EndpointSubset, Pod, Service};
use component_helpers::pod_state;

use crate::network::backends::{Family, addresses_of, counts, families, hostname, is_headless, reference, target_port};

/// The most addresses of an object.
pub(super) const CAPACITY: usize = 1000;

/// A port as something to sort by; nothing for an address without ports.
type PortKey = Option<(String, String, i32, String)>;
/// An address as something to sort by.
type AddressKey = (String, String);

/// The subsets of a service, packed.
pub(super) fn of(service: &Service, pods: &[Arc<Pod>]) -> Vec<EndpointSubset> {
    let all = service.spec.publish_not_ready_addresses;
    let mut subsets = Vec::new();
    for pod in pods.iter().filter(|pod| counts(pod) && (all || pod.metadata.deletion_timestamp.is_none())) {
        let Some(address) = address(service, pod) else { continue };
        let ready = all || pod_state::is_ready(pod);
        let subset = |ports: Vec<EndpointPort>| {
            let (addresses, not_ready_addresses) =
                if ready { (vec![address.clone()], vec![]) } else { (vec![], vec![address.clone()]) };
            EndpointSubset { addresses, not_ready_addresses, ports }
        };
        if service.spec.ports.is_empty() {
            if is_headless(service) {
                subsets.push(subset(Vec::new()));
            }
            continue;
        }
        for port in &service.spec.ports {
            let Some(number) = target_port(pod, port) else { continue };
            subsets.push(subset(vec![EndpointPort {
                name: port.name.clone(),
                port: number,
                protocol: port.protocol.clone(),
                app_protocol: port.app_protocol.clone(),
            }]));
        }
    }
    repack(&subsets)
}

fn address(service: &Service, pod: &Pod) -> Option<EndpointAddress> {
    let primary = families(service).first().copied();
    let family = primary.or_else(|| Family::of(&pod.status.pod_ip)).unwrap_or(Family::V4);
    Some(EndpointAddress {
        ip: addresses_of(pod, family).into_iter().next()?,
        hostname: hostname(pod, service).unwrap_or_default(),
        node_name: Some(pod.spec.node_name.clone()),
        target_ref: Some(reference(pod)),
    })
}

/// Addresses with the same ports are put together, ports with the same addresses likewise. Who is seen ready and not
/// ready on a port is not ready.
pub(in crate::network) fn repack(subsets: &[EndpointSubset]) -> Vec<EndpointSubset> {
    let mut ports: BTreeMap<PortKey, EndpointPort> = BTreeMap::new();
    let mut addresses: BTreeMap<AddressKey, EndpointAddress> = BTreeMap::new();
    let mut seen: BTreeMap<PortKey, BTreeMap<AddressKey, bool>> = BTreeMap::new();
    for subset in subsets {
        let keys: Vec<PortKey> =
            if subset.ports.is_empty() { vec![None] } else { subset.ports.iter().map(port_key).collect() };
        for port in &subset.ports {
            ports.insert(port_key(port), port.clone());
        }
        let ready = subset.addresses.iter().map(|address| (address, true));
        for (address, is_ready) in ready.chain(subset.not_ready_addresses.iter().map(|address| (address, false))) {
            let key = address_key(address);
            addresses.insert(key.clone(), address.clone());
            for port in &keys {
                let known = seen.entry(port.clone()).or_default().entry(key.clone()).or_insert(is_ready);
                *known &= is_ready;
            }
        }
    }
    let mut groups: BTreeMap<BTreeSet<(AddressKey, bool)>, Vec<PortKey>> = BTreeMap::new();
    for (port, members) in seen {
        groups.entry(members.into_iter().collect()).or_default().push(port);
    }
    let subset = |(members, keys): (BTreeSet<(AddressKey, bool)>, Vec<PortKey>)| {
        let pick = |wanted: bool| {
            let chosen = members.iter().filter(|(_, ready)| *ready == wanted);
            chosen.filter_map(|(key, _)| addresses.get(key)).cloned().collect()
        };
        EndpointSubset {
            addresses: pick(true),
            not_ready_addresses: pick(false),
            ports: keys.iter().filter_map(|key| ports.get(key)).cloned().collect(),
        }
    };
    groups.into_iter().map(subset).collect()
}

fn port_key(port: &EndpointPort) -> PortKey {
    Some((port.name.clone(), port.protocol.clone(), port.port, port.app_protocol.clone().unwrap_or_default()))
}

fn address_key(address: &EndpointAddress) -> AddressKey {
    let uid = address.target_ref.as_ref().map(|target| target.uid.clone()).unwrap_or_default();
    (address.ip.clone(), uid)
}

/// At most [`CAPACITY`] addresses, shared over the subsets in proportion; ready ones come first.
pub(super) fn truncate(mut subsets: Vec<EndpointSubset>) -> Vec<EndpointSubset> {
    let ready: usize = subsets.iter().map(|subset| subset.addresses.len()).sum();
    let rest: usize = subsets.iter().map(|subset| subset.not_ready_addresses.len()).sum();
    if ready + rest <= CAPACITY {
        return subsets;
    }
    if ready > CAPACITY {
        let mut left = CAPACITY;
        for subset in &mut subsets {
            cut(&mut subset.addresses, ready, CAPACITY, &mut left);
            subset.not_ready_addresses.clear();
        }
    } else {
        let (room, mut left) = (CAPACITY - ready, CAPACITY - ready);
        for subset in &mut subsets {
            cut(&mut subset.not_ready_addresses, rest, room, &mut left);
        }
    }
    subsets.retain(|subset| !subset.addresses.is_empty() || !subset.not_ready_addresses.is_empty());
    subsets
}

fn cut(addresses: &mut Vec<EndpointAddress>, total: usize, room: usize, left: &mut usize) {
    let share = (addresses.len() * room).div_ceil(total.max(1)).min(*left);
    addresses.truncate(share);
    *left -= share;
}
