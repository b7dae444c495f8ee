//! UDP flows that the kernel goes on sending to where they went first, whatever the rules say now.
//!
//! The kernel looks at the rules for the first packet of a flow only. A client that sends on would talk to an endpoint
//! that is gone, or to nobody where there was none when it began. What is tracked is compared with what is served, so
//! that it does not matter when the flow went stale: it may have been while no proxy ran. TCP and SCTP find out by
//! themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use sys::net::Tracked;

use crate::endpoints::Endpoint;
use crate::service::ServedPort;

/// Where clients go, with the port; to a node port they may go at any address.
type Address = (Option<IpAddr>, u16);

/// A UDP port whose clients the kernel remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Datagrams {
    addresses: Vec<Address>,
    /// Those that serve, on whatever node and whether or not new clients go there: who talks to them may go on.
    endpoints: BTreeSet<(IpAddr, u16)>,
}

impl Datagrams {
    /// Those of a Service port; nothing where it is not of UDP.
    pub(crate) fn of(port: &ServedPort, endpoints: &[Endpoint]) -> Option<Self> {
        if port.key.protocol != "UDP" {
            return None;
        }
        let others = port.external_ips.iter().chain(&port.load_balancer_ips).copied();
        let own = std::iter::once(port.cluster_ip).chain(others).map(|ip| (Some(ip), port.port));
        let addresses = own.chain((port.node_port != 0).then_some((None, port.node_port))).collect();
        let serving = endpoints.iter().filter(|one| one.ready || one.serving);
        Some(Self { addresses, endpoints: serving.map(|one| (one.address, one.port)).collect() })
    }
}

/// The flows to forget, each once however many clients it has. Where nobody serves there is no better place to go.
pub(crate) fn stale<'a>(
    tracked: &[Tracked],
    served: impl IntoIterator<Item = &'a Datagrams>,
) -> BTreeMap<Tracked, usize> {
    let mut serving: BTreeMap<Address, BTreeSet<(IpAddr, u16)>> = BTreeMap::new();
    for port in served.into_iter().filter(|port| !port.endpoints.is_empty()) {
        for address in &port.addresses {
            serving.entry(*address).or_default().extend(&port.endpoints);
        }
    }
    let mut found = BTreeMap::new();
    for flow in tracked {
        let to = |address| serving.get(&(address, flow.original_port));
        let Some(endpoints) = to(Some(flow.original_destination)).or_else(|| to(None)) else { continue };
        if !endpoints.contains(&(flow.reply_source, flow.reply_port)) {
            *found.entry(*flow).or_default() += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn flows_to_others_than_those_that_serve_are_stale() {
        let port = |addresses: &[Address], endpoints: &[(IpAddr, u16)]| Datagrams {
            addresses: addresses.to_vec(),
            endpoints: endpoints.iter().copied().collect(),
        };
        let served = [
            port(&[(Some(ip(100)), 53), (None, 30_053)], &[(ip(1), 5353)]),
            port(&[(Some(ip(101)), 53)], &[]),
            port(&[(Some(ip(102)), 30_053)], &[(ip(2), 53)]),
        ];
        for (name, to, original_port, from, reply_port, expected) in [
            ("to one that serves", 100, 53, 1, 5353, false),
            ("to one that is gone", 100, 53, 9, 5353, true),
            ("to a port of before", 100, 53, 1, 53, true),
            ("from before the Service was there", 100, 53, 100, 53, true),
            ("nobody serves", 101, 53, 9, 53, false),
            ("at the node port of any address", 200, 30_053, 9, 5353, true),
            ("an address with a port like a node port", 102, 30_053, 2, 53, false),
            ("no Service's", 200, 53, 200, 53, false),
        ] {
            let flow = Tracked { original_destination: ip(to), original_port, reply_source: ip(from), reply_port };
            let found = stale(&[flow, flow], &served);
            assert_eq!(found.get(&flow).copied(), expected.then_some(2), "{name}");
        }
    }
}
