//! Where traffic can go: the endpoints of each Service port, gathered from its slices, and which of them this node uses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use api_types::discovery_v1::EndpointSlice;

use crate::service::{PortKey, ServedPort};

const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// An endpoint of a Service port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Whether it is on this node.
    pub local: bool,
    /// Whether it takes traffic.
    pub ready: bool,
    /// Whether it takes traffic, terminating or not.
    pub serving: bool,
    /// Whether it is on its way out.
    pub terminating: bool,
    /// The zones that should use it; empty for no wish.
    pub zones: Vec<String>,
    /// The nodes that should use it; empty for no wish.
    pub nodes: Vec<String>,
}

impl Endpoint {
    /// `address:port`, with brackets around IPv6.
    #[must_use]
    pub fn display(&self) -> String {
        std::net::SocketAddr::new(self.address, self.port).to_string()
    }
}

/// This node, as endpoint selection sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeTopology {
    /// The node's name.
    pub name: String,
    /// The node's zone; empty where it has none.
    pub zone: String,
}

/// The endpoints of each Service port of one Service, sorted by `address:port`.
#[must_use]
pub fn gather<'a>(
    slices: impl IntoIterator<Item = &'a EndpointSlice>,
    node: &NodeTopology,
) -> BTreeMap<PortKey, Vec<Endpoint>> {
    let mut all: BTreeMap<PortKey, BTreeMap<String, Endpoint>> = BTreeMap::new();
    for slice in slices {
        let Some(service) = slice.metadata.labels.get(SERVICE_NAME).filter(|name| !name.is_empty()) else { continue };
        for port in &slice.ports {
            let (Some(name), Some(Ok(number))) = (&port.name, port.port.map(u16::try_from)) else { continue };
            if number == 0 {
                continue;
            }
            let key = PortKey {
                namespace: slice.metadata.namespace.clone(),
                name: service.clone(),
                port: name.clone(),
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".into()),
            };
            let endpoints = all.entry(key).or_default();
            for found in slice.endpoints.iter().filter_map(|one| endpoint(one, number, node)) {
                // The same pod can be in two slices for a moment; one that runs beats one that ends.
                let known = endpoints.get(&found.display()).is_some_and(|_| found.terminating);
                if !known {
                    endpoints.insert(found.display(), found);
                }
            }
        }
    }
    all.into_iter().map(|(key, endpoints)| (key, endpoints.into_values().collect())).collect()
}

fn endpoint(of: &api_types::discovery_v1::Endpoint, port: u16, node: &NodeTopology) -> Option<Endpoint> {
    let terminating = of.conditions.terminating.unwrap_or(false);
    let hints = of.hints.as_ref();
    Some(Endpoint {
        address: of.addresses.first()?.parse().ok()?,
        port,
        local: of.node_name.as_deref() == Some(node.name.as_str()),
        ready: of.conditions.ready.unwrap_or(true),
        serving: of.conditions.serving.unwrap_or(true),
        terminating,
        zones: hints.map(|hints| hints.for_zones.iter().map(|zone| zone.name.clone()).collect()).unwrap_or_default(),
        nodes: hints.map(|hints| hints.for_nodes.iter().map(|node| node.name.clone()).collect()).unwrap_or_default(),
    })
}

/// Which endpoints a Service port uses on this node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Those for traffic that may go to any node.
    pub cluster: Vec<Endpoint>,
    /// Those for traffic that stays on this node.
    pub local: Vec<Endpoint>,
    /// Whether there are any usable ones on any node.
    pub any: bool,
}

impl Selection {
    /// The endpoints of either list, each once, in the order of the lists.
    #[must_use]
    pub fn reachable(&self) -> Vec<&Endpoint> {
        let mut all: Vec<&Endpoint> = self.cluster.iter().collect();
        all.extend(self.local.iter().filter(|one| !self.cluster.contains(one)));
        all
    }
}

/// Chooses the endpoints of a Service port for this node.
#[must_use]
pub fn select(port: &ServedPort, endpoints: &[Endpoint], node: &NodeTopology) -> Selection {
    let usable = |endpoint: &&Endpoint| endpoint.ready || (endpoint.serving && endpoint.terminating);
    let mut selection = Selection::default();
    if port.uses_cluster_endpoints() {
        let near = nearness(endpoints, node);
        let ready = endpoints.iter().filter(|one| one.ready && near.admits(one, node));
        selection.cluster = ready.cloned().collect();
        if selection.cluster.is_empty() {
            selection.cluster = endpoints.iter().filter(|one| one.serving && one.terminating).cloned().collect();
        }
        selection.any = !selection.cluster.is_empty();
    }
    if port.uses_local_endpoints() {
        let local = |ready: bool| {
            let own = endpoints.iter().filter(|one| one.local);
            own.filter(move |one| if ready { one.ready } else { one.serving && one.terminating }).cloned().collect()
        };
        selection.local = local(true);
        if selection.local.is_empty() {
            selection.local = local(false);
        }
        selection.any |= endpoints.iter().any(|one| usable(&one));
    }
    selection
}

/// Which hints apply, as every ready endpoint must have them for any to count.
#[derive(Clone, Copy)]
enum Nearness {
    Anywhere,
    SameNode,
    SameZone,
}

impl Nearness {
    fn admits(self, endpoint: &Endpoint, node: &NodeTopology) -> bool {
        match self {
            Nearness::Anywhere => true,
            Nearness::SameNode => endpoint.nodes.contains(&node.name),
            Nearness::SameZone => endpoint.zones.contains(&node.zone),
        }
    }
}

fn nearness(endpoints: &[Endpoint], node: &NodeTopology) -> Nearness {
    let ready: Vec<&Endpoint> = endpoints.iter().filter(|one| one.ready).collect();
    let all = |hinted: fn(&Endpoint) -> bool| !ready.is_empty() && ready.iter().all(|one| hinted(one));
    if all(|one| !one.nodes.is_empty()) && ready.iter().any(|one| one.nodes.contains(&node.name)) {
        Nearness::SameNode
    } else if all(|one| !one.zones.is_empty()) && ready.iter().any(|one| one.zones.contains(&node.zone)) {
        Nearness::SameZone
    } else {
        Nearness::Anywhere
    }
}

#[cfg(test)]
#[path = "endpoints_tests.rs"]
mod tests;
