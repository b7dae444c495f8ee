//! The model: what happens to packets, said of routes directly, as Services promise it. A backend in tests, and what the
//! rules of all others are held against.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use sys::packet_filter::FilterError;

use super::contract::{Fate, Kernel, Origin, Packet, is_local_address};
use super::*;
use crate::endpoints::Endpoint;
use crate::family::contains;

/// A machine that keeps routes themselves.
#[derive(Default)]
pub(crate) struct Model(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    refuses: bool,
    options: Option<RuleOptions>,
    routes: Routes,
}

/// Where a packet meets a route.
#[derive(Clone, Copy, PartialEq)]
enum At {
    ClusterIp,
    External,
}

impl Kernel for Model {
    fn backend(&self) -> Box<dyn Backend> {
        Box::new(ModelBackend(Arc::clone(&self.0)))
    }

    fn refuse(&self, refuses: bool) {
        self.0.lock().refuses = refuses;
    }

    fn fate(&self, packet: &Packet) -> Fate {
        let state = self.0.lock();
        let Some(options) = &state.options else { return Fate::Untouched };
        let routes: Vec<&Route> = state.routes.values().flatten().collect();
        Evaluation { options, routes: &routes, packet }.fate()
    }
}

struct ModelBackend(Arc<Mutex<State>>);

impl ModelBackend {
    fn write(&self, options: &RuleOptions, change: impl FnOnce(&mut Routes)) -> Result<(), BackendError> {
        let mut state = self.0.lock();
        if state.refuses {
            return Err(FilterError::Refused("no".into()).into());
        }
        state.options = Some(options.clone());
        change(&mut state.routes);
        Ok(())
    }
}

#[async_trait]
impl Backend for ModelBackend {
    async fn replace(&mut self, options: &RuleOptions, routes: Routes, _: Instant) -> Result<(), BackendError> {
        self.write(options, |known| *known = routes)
    }

    async fn change(&mut self, options: &RuleOptions, routes: Routes, _: Instant) -> Result<(), BackendError> {
        self.write(options, |known| known.extend(routes))
    }

    async fn collect(&mut self, _: &RuleOptions, _: Instant) -> Result<(), BackendError> {
        Ok(())
    }

    fn has_stale(&self) -> bool {
        false
    }
}

struct Evaluation<'a> {
    options: &'a RuleOptions,
    routes: &'a [&'a Route],
    packet: &'a Packet,
}

impl Evaluation<'_> {
    fn fate(&self) -> Fate {
        if self.is_barred() {
            return Fate::Dropped;
        }
        let met: Vec<(&Route, At)> =
            self.routes.iter().filter_map(|route| Some((*route, self.meets(route)?))).collect();
        // Of several that claim an address, the last by name that has anybody to send to.
        let leading = met.iter().rev().find(|(route, at)| match at {
            At::ClusterIp => !answering(route, *at).is_empty(),
            At::External => route.endpoints.any,
        });
        if let Some(fate) = leading.and_then(|(route, at)| self.steered(route, *at)) {
            return fate;
        }
        match met.iter().rev().find(|(route, at)| answering(route, *at).is_empty()) {
            Some((route, _)) if route.endpoints.any => Fate::Dropped,
            Some(_) => Fate::Rejected,
            None => self.unserved(),
        }
    }

    /// A load balancer's address that does not take packets from there.
    fn is_barred(&self) -> bool {
        let guarding = self.routes.iter().rev().map(|route| &route.port).find(|port| {
            !port.source_ranges.is_empty()
                && port.load_balancer_ips.contains(&self.packet.destination)
                && self.is_to(port, port.port)
        });
        let Some(port) = guarding else { return false };
        let is_in = |address: IpAddr| port.source_ranges.iter().any(|range| contains(range, address));
        let by_node = self.options.node_ip.is_some_and(is_in) && port.load_balancer_ips.contains(&self.packet.source);
        !is_in(self.packet.source) && !by_node
    }

    fn is_to(&self, port: &ServedPort, number: u16) -> bool {
        self.packet.port == number && port.key.protocol.eq_ignore_ascii_case(self.packet.protocol)
    }

    fn meets(&self, route: &Route) -> Option<At> {
        let (port, to) = (&route.port, self.packet.destination);
        let is_own = port.external_ips.contains(&to) || port.load_balancer_ips.contains(&to);
        if self.is_to(port, port.port) && (to == port.cluster_ip || is_own) {
            return Some(if is_own { At::External } else { At::ClusterIp });
        }
        let is_node = match &self.options.node_ports {
            NodePorts::All => is_local_address(to) && !to.is_loopback(),
            NodePorts::Addresses(addresses) => addresses.contains(&to),
        };
        (port.node_port != 0 && is_node && self.is_to(port, port.node_port)).then_some(At::External)
    }

    /// Who gets the packet; nothing where the route's policy has nobody for it.
    fn steered(&self, route: &Route, at: At) -> Option<Fate> {
        let (port, endpoints) = (&route.port, &route.endpoints);
        let is_of_pod = self.options.local_detector.as_ref().is_some_and(|detector| self.is_local(detector));
        let is_foreign = self.options.local_detector.is_some() && !is_of_pod;
        let (chosen, masqueraded): (&[Endpoint], bool) = match at {
            At::ClusterIp => (answering(route, at), self.options.masquerade_all || is_foreign),
            At::External if !port.external_local => (&endpoints.cluster, true),
            At::External if is_of_pod && !endpoints.cluster.is_empty() => (&endpoints.cluster, false),
            At::External if self.packet.origin == Origin::Node && !endpoints.cluster.is_empty() => {
                (&endpoints.cluster, true)
            }
            At::External => (&endpoints.local, false),
        };
        let to = |one: &Endpoint| {
            let is_hairpin = one.address == self.packet.source && self.is_local_endpoint(one, &port.key.protocol);
            (SocketAddr::new(one.address, one.port), masqueraded || is_hairpin)
        };
        (!chosen.is_empty()).then(|| Fate::To(chosen.iter().map(to).collect()))
    }

    /// Whether any Service knows it as one of this node.
    fn is_local_endpoint(&self, endpoint: &Endpoint, protocol: &str) -> bool {
        let of_protocol = self.routes.iter().filter(|route| route.port.key.protocol == protocol);
        let mut known = of_protocol.flat_map(|route| route.endpoints.reachable()).filter(|one| one.local);
        known.any(|one| (one.address, one.port) == (endpoint.address, endpoint.port))
    }

    fn is_local(&self, detector: &LocalDetector) -> bool {
        let comes_in =
            |test: &dyn Fn(&str) -> bool| matches!(self.packet.origin, Origin::Interface(name) if test(name));
        match detector {
            LocalDetector::Network(network) => contains(network, self.packet.source),
            LocalDetector::Interface(name) => comes_in(&|own| own == name),
            LocalDetector::InterfacePrefix(prefix) => comes_in(&|own| own.starts_with(prefix)),
        }
    }

    /// No Service's port: cluster addresses answer nowhere else.
    fn unserved(&self) -> Fate {
        let to = self.packet.destination;
        if self.routes.iter().any(|route| route.port.cluster_ip == to) {
            Fate::Rejected
        } else if self.options.service_cidrs.iter().any(|network| contains(network, to)) {
            Fate::Dropped
        } else {
            Fate::Untouched
        }
    }
}

/// The endpoints that the route's policy has for an address.
fn answering(route: &Route, at: At) -> &[Endpoint] {
    let is_local = match at {
        At::ClusterIp => route.port.internal_local,
        At::External => route.port.external_local,
    };
    if is_local { &route.endpoints.local } else { &route.endpoints.cluster }
}
