//! Links, addresses, routes and tracked connections of one network namespace.

mod fake;
mod iproute;
mod model;

use std::net::IpAddr;

use async_trait::async_trait;

pub use fake::FakeNetwork;
pub use iproute::IpRoute;
pub use model::{Address, AddressError, Conntrack, Destination, Interface, Protocol, Route, Tracked};

use crate::exec::ExecError;

/// Reads and changes a namespace's network.
#[async_trait]
pub trait Network: Send + Sync {
    /// Every link with its addresses.
    async fn interfaces(&self) -> Result<Vec<Interface>, NetError>;

    /// The routes of the main table, IPv4 before IPv6.
    async fn routes(&self) -> Result<Vec<Route>, NetError>;

    /// Makes a bridge and brings it up; fine if it exists.
    async fn add_bridge(&self, name: &str) -> Result<(), NetError>;

    /// Makes a pair of links, the second of which lands in the namespace called `peer_netns`; fine if the first exists.
    async fn add_veth(&self, name: &str, peer: &str, peer_netns: &str) -> Result<(), NetError>;

    /// Plugs a link into a bridge and brings it up.
    async fn set_master(&self, link: &str, bridge: &str) -> Result<(), NetError>;

    async fn set_up(&self, link: &str) -> Result<(), NetError>;

    /// Gives a link an address, usable at once; fine if it has it.
    async fn add_address(&self, link: &str, address: Address) -> Result<(), NetError>;

    /// Sets or replaces a route.
    async fn set_route(&self, route: &Route) -> Result<(), NetError>;

    /// Removes the route to a destination; fine if there is none.
    async fn delete_route(&self, destination: Destination) -> Result<(), NetError>;

    /// Removes a link; fine if it is gone.
    async fn delete_link(&self, name: &str) -> Result<(), NetError>;

    /// The tracked connections of a protocol and family.
    async fn connections(&self, protocol: Protocol, v6: bool) -> Result<Vec<Tracked>, NetError>;

    /// Forgets tracked connections, so that their next packet is looked at anew; fine if there are none.
    async fn forget_connections(&self, which: &Conntrack) -> Result<(), NetError>;

    /// The address from which the default route leaves: what a node is known by unless told otherwise.
    async fn default_address(&self, v6: bool) -> Result<Option<IpAddr>, NetError> {
        let routes = self.routes().await?;
        let default = |route: &&Route| route.destination.is_default() && route.destination.is_v6() == v6;
        let Some(route) = routes.iter().find(default) else { return Ok(None) };
        if let Some(source) = route.source {
            return Ok(Some(source));
        }
        let interfaces = self.interfaces().await?;
        let link = interfaces.iter().find(|interface| Some(&interface.name) == route.device.as_ref());
        Ok(link.and_then(|link| link.addresses.iter().map(|address| address.ip).find(|ip| is_usable(*ip, v6))))
    }
}

fn is_usable(ip: IpAddr, v6: bool) -> bool {
    match ip {
        IpAddr::V4(ip) => !v6 && !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => v6 && !ip.is_loopback() && !ip.is_unicast_link_local(),
    }
}

/// Why the network could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A tool's answer is not in the form it documents.
    #[error("answer of {0} is not as expected")]
    Listing(&'static str, #[source] serde_json::Error),
}
