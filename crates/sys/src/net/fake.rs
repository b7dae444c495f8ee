//! A network in memory.

use async_trait::async_trait;
use parking_lot::Mutex;

use super::{Address, Conntrack, Destination, Interface, NetError, Network, Protocol, Route, Tracked};

/// Links and routes as a test lays them out and as they are changed; connections that were to be forgotten.
#[derive(Default)]
pub struct FakeNetwork {
    interfaces: Mutex<Vec<Interface>>,
    routes: Mutex<Vec<Route>>,
    forgotten: Mutex<Vec<Conntrack>>,
    connections: Mutex<Vec<(Protocol, Tracked)>>,
}

impl FakeNetwork {
    /// A network with these links and routes.
    #[must_use]
    pub fn with(interfaces: Vec<Interface>, routes: Vec<Route>) -> Self {
        Self { interfaces: Mutex::new(interfaces), routes: Mutex::new(routes), ..Self::default() }
    }

    /// The kernel tracks a connection from now on.
    pub fn track(&self, protocol: Protocol, connection: Tracked) {
        self.connections.lock().push((protocol, connection));
    }

    /// Everything that was to be forgotten, in order.
    #[must_use]
    pub fn forgotten(&self) -> Vec<Conntrack> {
        self.forgotten.lock().clone()
    }

    fn add(&self, name: &str) {
        let mut interfaces = self.interfaces.lock();
        if !interfaces.iter().any(|have| have.name == name) {
            let index = u32::try_from(interfaces.len()).unwrap_or(u32::MAX).saturating_add(1);
            interfaces.push(Interface { index, name: name.to_owned(), mtu: 1500, ..Interface::default() });
        }
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Interface)) {
        if let Some(found) = self.interfaces.lock().iter_mut().find(|have| have.name == name) {
            change(found);
        }
    }
}

#[async_trait]
impl Network for FakeNetwork {
    async fn interfaces(&self) -> Result<Vec<Interface>, NetError> {
        Ok(self.interfaces.lock().clone())
    }

    async fn routes(&self) -> Result<Vec<Route>, NetError> {
        Ok(self.routes.lock().clone())
    }

    async fn add_bridge(&self, name: &str) -> Result<(), NetError> {
        self.add(name);
        self.set_up(name).await
    }

    async fn add_veth(&self, name: &str, _peer: &str, _peer_netns: &str) -> Result<(), NetError> {
        self.add(name);
        Ok(())
    }

    async fn set_master(&self, link: &str, _bridge: &str) -> Result<(), NetError> {
        self.set_up(link).await
    }

    async fn set_up(&self, link: &str) -> Result<(), NetError> {
        self.change(link, |interface| interface.is_up = true);
        Ok(())
    }

    async fn add_address(&self, link: &str, address: Address) -> Result<(), NetError> {
        self.change(link, |interface| {
            if !interface.addresses.contains(&address) {
                interface.addresses.push(address);
            }
        });
        Ok(())
    }

    async fn set_route(&self, route: &Route) -> Result<(), NetError> {
        self.delete_route(route.destination).await?;
        self.routes.lock().push(route.clone());
        Ok(())
    }

    async fn delete_route(&self, destination: Destination) -> Result<(), NetError> {
        self.routes.lock().retain(|route| route.destination != destination);
        Ok(())
    }

    async fn delete_link(&self, name: &str) -> Result<(), NetError> {
        self.interfaces.lock().retain(|interface| interface.name != name);
        Ok(())
    }

    async fn connections(&self, protocol: Protocol, v6: bool) -> Result<Vec<Tracked>, NetError> {
        let of = |(own, one): &(Protocol, Tracked)| *own == protocol && one.original_destination.is_ipv6() == v6;
        Ok(self.connections.lock().iter().filter(|one| of(one)).map(|(_, one)| *one).collect())
    }

    async fn forget_connections(&self, which: &Conntrack) -> Result<(), NetError> {
        self.connections.lock().retain(|(protocol, one)| {
            let meant = *protocol == which.protocol
                && one.original_destination.is_ipv6() == which.v6
                && which.original_destination.is_none_or(|ip| ip == one.original_destination)
                && which.original_port.is_none_or(|port| port == one.original_port)
                && which.reply_source.is_none_or(|ip| ip == one.reply_source)
                && which.reply_port.is_none_or(|port| port == one.reply_port);
            !meant
        });
        self.forgotten.lock().push(*which);
        Ok(())
    }
}
