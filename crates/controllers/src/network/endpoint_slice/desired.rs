//! The endpoints that should be there, by the ports they offer.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::constants::LABEL_TOPOLOGY_ZONE;
use api_types::core_v1::{Node, Pod, Service};
use api_types::discovery_v1::{Endpoint, EndpointConditions, EndpointPort};
use component_helpers::pod_state;

use super::layout::{PortKey, port_key, ports};
use crate::network::backends::{Family, addresses_of, counts, hostname, reference};

/// What identifies an endpoint across syncs.
pub(in crate::network) type Identity = (Vec<String>, String, String, String);

/// The identity of an endpoint: addresses, host name and pod.
pub(in crate::network) fn identity(endpoint: &Endpoint) -> Identity {
    let mut addresses = endpoint.addresses.clone();
    addresses.sort();
    let (namespace, name) =
        endpoint.target_ref.as_ref().map(|target| (target.namespace.clone(), target.name.clone())).unwrap_or_default();
    (addresses, endpoint.hostname.clone().unwrap_or_default(), namespace, name)
}

/// Endpoints that offer the same ports.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) ports: Vec<EndpointPort>,
    pub(super) endpoints: BTreeMap<Identity, Endpoint>,
}

/// The groups of one address family. A pod whose node is not known is left out and named in `problems`.
pub(super) fn groups(
    service: &Service,
    pods: &[Arc<Pod>],
    family: Family,
    node: impl Fn(&str) -> Option<Arc<Node>>,
    problems: &mut Vec<String>,
) -> BTreeMap<PortKey, Group> {
    let mut groups: BTreeMap<PortKey, Group> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| counts(pod)) {
        let ports = ports(service, pod);
        let group = groups.entry(port_key(&ports)).or_insert_with(|| Group { ports, ..Group::default() });
        let host = node(&pod.spec.node_name);
        if host.is_none() && !service.spec.publish_not_ready_addresses {
            let (meta, name) = (&service.metadata, &pod.metadata.name);
            problems.push(format!(
                "skipping Pod {name} for Service {}/{}: Node {} Not Found",
                meta.namespace, meta.name, pod.spec.node_name
            ));
            continue;
        }
        let endpoint = endpoint(service, pod, family, host.as_deref());
        if !endpoint.addresses.is_empty() {
            group.endpoints.insert(identity(&endpoint), endpoint);
        }
    }
    groups
}

fn endpoint(service: &Service, pod: &Pod, family: Family, node: Option<&Node>) -> Endpoint {
    let serving = pod_state::is_ready(pod);
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let ready = service.spec.publish_not_ready_addresses || (serving && !terminating);
    let zone = node.and_then(|node| node.metadata.labels.get(LABEL_TOPOLOGY_ZONE));
    Endpoint {
        addresses: addresses_of(pod, family),
        conditions: EndpointConditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) },
        hostname: hostname(pod, service),
        target_ref: Some(reference(pod)),
        node_name: Some(pod.spec.node_name.clone()).filter(|name| !name.is_empty()),
        zone: zone.filter(|zone| !zone.is_empty()).cloned(),
        ..Endpoint::default()
    }
}
