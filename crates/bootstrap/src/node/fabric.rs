//! The network between the nodes of one machine: a bridge in a namespace of its own (so that no node's rules see the
//! others' traffic), one link to the machine and one to each node, and routes between the pods' networks.
//!
//! The machine is the gateway of every node and takes address 254 of the fabric's networks; node N takes address N.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use sys::exec::{Command, Exec};
use sys::net::{Address, Destination, IpRoute, Network, Route};
use sys::netns::{IpNetns, NetNamespaces, path_of};
use sys::packet_filter::{FilterError, Nft, PacketFilter};

use super::{LINK_NAME_MAX, Machine, NodeError};

/// The machine's address within each of the fabric's networks.
const GATEWAY: u8 = 254;
/// The longest cluster name: `-fabric`-like suffixes and link names have to fit beside it.
const NAME_MAX: usize = LINK_NAME_MAX - 4;
/// Switched on in every node and on the machine, as routers they are.
const FORWARDING: &[&str] = &["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"];

/// What the fabric of a cluster is to look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricConfig {
    /// The cluster's name: at most 11 bytes of `a-z0-9-`.
    pub cluster: String,
    /// The nodes' network, a /24.
    pub v4: Ipv4Addr,
    /// The nodes' network, a /64; none if the cluster has no IPv6.
    pub v6: Option<Ipv6Addr>,
    /// The networks of the pods on the machine's own node, if it is one.
    pub host_pod_networks: Vec<Destination>,
    /// The further nodes.
    pub nodes: Vec<FabricNode>,
}

/// A node in a namespace of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricNode {
    /// 1 to 253; the last part of its addresses.
    pub number: u8,
    pub pod_networks: Vec<Destination>,
}

impl FabricConfig {
    /// The namespace of a node, for [`super::NodeConfig::netns`].
    #[must_use]
    pub fn netns(&self, number: u8) -> String {
        format!("{}-{number}", self.cluster)
    }

    /// The addresses of a node, IPv4 first.
    #[must_use]
    pub fn addresses(&self, number: u8) -> Vec<IpAddr> {
        let [a, b, c, _] = self.v4.octets();
        let v6 = self.v6.map(|network| {
            let [s0, s1, s2, s3, ..] = network.segments();
            IpAddr::from(Ipv6Addr::new(s0, s1, s2, s3, 0, 0, 0, number.into()))
        });
        std::iter::once(IpAddr::from([a, b, c, number])).chain(v6).collect()
    }

    /// The addresses by which nodes reach the machine, such as its API server.
    #[must_use]
    pub fn gateway(&self) -> Vec<IpAddr> {
        self.addresses(GATEWAY)
    }

    fn hub(&self) -> String {
        format!("{}-fab", self.cluster)
    }

    fn host_link(&self) -> String {
        format!("{}-fab", self.cluster)
    }

    fn table(&self) -> String {
        format!("coxswain-{}", self.cluster)
    }

    fn validate(&self) -> Result<(), NodeError> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let name = &self.cluster;
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_plain) || name.starts_with('-') {
            return Err(NodeError::Config(format!(
                "cluster name {name:?} must have 1 to {NAME_MAX} of a-z, 0-9 and -"
            )));
        }
        match self.nodes.iter().find(|node| node.number == 0 || node.number >= GATEWAY) {
            Some(node) => Err(NodeError::Config(format!("node number {} must be 1 to {}", node.number, GATEWAY - 1))),
            None => Ok(()),
        }
    }

    /// The addresses with the length of the fabric's networks.
    fn links(&self, number: u8) -> impl Iterator<Item = Address> {
        self.addresses(number).into_iter().map(|ip| Address { ip, prefix: if ip.is_ipv4() { 24 } else { 64 } })
    }

    /// The routes to a node's pods.
    fn routes(&self, number: u8, networks: &[Destination]) -> Vec<Route> {
        let gateways = self.addresses(number);
        let gateway = |v6: bool| gateways.iter().copied().find(|ip| ip.is_ipv6() == v6);
        let reachable = networks.iter().filter_map(|network| Some((network, gateway(network.is_v6())?)));
        let route = |(network, gateway): (&Destination, IpAddr)| Route {
            destination: *network,
            gateway: Some(gateway),
            device: None,
            source: None,
        };
        reachable.map(route).collect()
    }

    /// Masquerades what leaves the cluster through the machine. Within the cluster addresses stay as they are.
    fn masquerade(&self) -> String {
        let mut inside: Vec<Destination> = self.host_pod_networks.clone();
        inside.extend(self.nodes.iter().flat_map(|node| node.pod_networks.iter().copied()));
        inside.extend(self.links(0).map(Destination));
        let table = self.table();
        let mut script = format!("add table inet {table}\ndelete table inet {table}\nadd table inet {table}\n");
        let _ = writeln!(script, "add chain inet {table} out {{ type nat hook postrouting priority srcnat; }}");
        for (family, v6) in [("ip", false), ("ip6", true)] {
            let of_family = inside.iter().filter(|network| network.is_v6() == v6);
            let set = of_family.map(ToString::to_string).collect::<Vec<_>>().join(", ");
            if !set.is_empty() {
                let rule = format!("{family} saddr {{ {set} }} {family} daddr != {{ {set} }}");
                let _ = writeln!(script, "add rule inet {table} out {rule} fib daddr type != local masquerade");
            }
        }
        script
    }
}

/// Makes a fabric and takes it away.
pub struct Fabric {
    config: FabricConfig,
    exec: Arc<dyn Exec>,
}

impl Fabric {
    #[must_use]
    pub fn new(config: FabricConfig, machine: &Machine) -> Self {
        Self { config, exec: Arc::clone(&machine.exec) }
    }

    /// Makes the fabric; what is there already stays.
    ///
    /// # Errors
    /// The configuration is wrong, or the machine refuses a step.
    pub async fn up(&self) -> Result<(), NodeError> {
        self.config.validate()?;
        let hub = self.config.hub();
        self.namespaces().create(&hub).await?;
        let bridge = self.network(Some(&hub));
        bridge.add_bridge("br0").await?;
        for parameter in ["bridge-nf-call-iptables", "bridge-nf-call-ip6tables"] {
            self.set(Some(&hub), &format!("net/bridge/{parameter}"), "0").await?;
        }
        self.connect_machine(&bridge).await?;
        for node in &self.config.nodes {
            self.connect_node(&bridge, node).await?;
        }
        Nft::new(Arc::clone(&self.exec), None).apply(&self.config.masquerade()).await?;
        Ok(())
    }

    /// Takes the fabric away with every node's namespace; the processes in them must have ended. Forwarding stays on.
    ///
    /// # Errors
    /// The machine refuses a step; the others are taken.
    pub async fn down(&self) -> Result<(), NodeError> {
        self.config.validate()?;
        let mut outcomes: Vec<Result<(), NodeError>> = Vec::new();
        let machine = self.network(None);
        outcomes.push(machine.delete_link(&self.config.host_link()).await.map_err(NodeError::from));
        for node in &self.config.nodes {
            outcomes.push(self.namespaces().delete(&self.config.netns(node.number)).await.map_err(NodeError::from));
        }
        outcomes.push(self.namespaces().delete(&self.config.hub()).await.map_err(NodeError::from));
        let script = format!("delete table inet {}\n", self.config.table());
        outcomes.push(match Nft::new(Arc::clone(&self.exec), None).apply(&script).await {
            Err(FilterError::NotFound) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        });
        outcomes.into_iter().collect()
    }

    async fn connect_machine(&self, bridge: &IpRoute) -> Result<(), NodeError> {
        let machine = self.network(None);
        let link = self.config.host_link();
        machine.add_veth(&link, "host", &self.config.hub()).await?;
        bridge.set_master("host", "br0").await?;
        for address in self.config.links(GATEWAY) {
            machine.add_address(&link, address).await?;
        }
        machine.set_up(&link).await?;
        for parameter in FORWARDING {
            self.set(None, parameter, "1").await?;
        }
        for node in &self.config.nodes {
            for route in self.config.routes(node.number, &node.pod_networks) {
                machine.set_route(&route).await?;
            }
        }
        Ok(())
    }

    async fn connect_node(&self, bridge: &IpRoute, node: &FabricNode) -> Result<(), NodeError> {
        let name = self.config.netns(node.number);
        self.namespaces().create(&name).await?;
        let port = format!("n{}", node.number);
        bridge.add_veth(&port, "eth0", &name).await?;
        bridge.set_master(&port, "br0").await?;
        let network = self.network(Some(&name));
        for address in self.config.links(node.number) {
            network.add_address("eth0", address).await?;
        }
        network.set_up("eth0").await?;
        for parameter in
            FORWARDING.iter().chain(&["net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables"])
        {
            self.set(Some(&name), parameter, "1").await?;
        }
        // Without a default route a connection to a Service's address fails before its rules are looked at.
        let defaults: Vec<_> = [false, true].map(Destination::default_of).into();
        let mut routes = self.config.routes(GATEWAY, &defaults);
        routes.extend(self.config.routes(GATEWAY, &self.config.host_pod_networks));
        for other in self.config.nodes.iter().filter(|other| other.number != node.number) {
            routes.extend(self.config.routes(other.number, &other.pod_networks));
        }
        for route in routes {
            network.set_route(&route).await?;
        }
        Ok(())
    }

    fn namespaces(&self) -> IpNetns {
        IpNetns::new(Arc::clone(&self.exec))
    }

    fn network(&self, netns: Option<&str>) -> IpRoute {
        IpRoute::new(Arc::clone(&self.exec), netns.map(path_of).as_deref())
    }

    /// Network parameters are those of the writer's namespace, so that the write has to happen inside.
    async fn set(&self, netns: Option<&str>, parameter: &str, value: &str) -> Result<(), NodeError> {
        let script = r#"[ ! -e "/proc/sys/$0" ] || echo "$1" > "/proc/sys/$0""#;
        let command = Command::with("sh", &["-c", script, parameter, value]).netns(netns.map(path_of));
        self.exec.run_ok(&command).await?;
        Ok(())
    }
}

#[cfg(test)]
#[path = "fabric_tests.rs"]
mod tests;
