//! By which addresses the node is known.

use std::net::IpAddr;
use std::sync::Arc;

use api_types::core_v1::{Node, NodeAddress};
use async_trait::async_trait;
use sys::net::{NetError, Network};

use super::NodeSettings;

/// The annotation that tells a cloud controller which addresses were asked for.
pub(super) const PROVIDED_IP: &str = "alpha.kubernetes.io/provided-node-ip";

/// Where addresses come from.
#[async_trait]
pub trait AddressSource: Send + Sync + 'static {
    /// The addresses of a host name.
    async fn look_up(&self, name: &str) -> Vec<IpAddr>;

    /// The addresses of all interfaces.
    async fn own(&self) -> Result<Vec<IpAddr>, NetError>;

    /// The address of the default route.
    async fn of_default_route(&self, v6: bool) -> Option<IpAddr>;
}

#[async_trait]
impl AddressSource for Arc<dyn Network> {
    async fn look_up(&self, name: &str) -> Vec<IpAddr> {
        let found = tokio::net::lookup_host((name, 0)).await;
        found.map(|addresses| addresses.map(|address| address.ip()).collect()).unwrap_or_default()
    }

    async fn own(&self) -> Result<Vec<IpAddr>, NetError> {
        let interfaces = self.interfaces().await?;
        Ok(interfaces.into_iter().flat_map(|interface| interface.addresses).map(|address| address.ip).collect())
    }

    async fn of_default_route(&self, v6: bool) -> Option<IpAddr> {
        self.default_address(v6).await.ok().flatten()
    }
}

/// Why nobody knows by which addresses the node is reached. The machine's network may change: the next report looks again.
#[derive(Debug, thiserror::Error)]
pub(super) enum AddressError {
    #[error(transparent)]
    Interfaces(#[from] NetError),
    #[error("failed to validate nodeIP: {0}")]
    NodeIp(#[from] NodeIpError),
    #[error("can't get ip address of node {node}. error: no default routes found")]
    NoRoute { node: String },
}

/// Why an address cannot be the node's, in upstream's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NodeIpError {
    #[error("nodeIP can't be loopback address")]
    Loopback,
    #[error("nodeIP can't be a multicast address")]
    Multicast,
    #[error("nodeIP can't be a link-local unicast address")]
    LinkLocal,
    #[error("nodeIP can't be an all zeros address")]
    Unspecified,
    #[error("node IP: \"{0}\" not found in the host's network interfaces")]
    Foreign(IpAddr),
}

/// The node's addresses; with an external cloud those that its controller wrote stay.
pub(super) async fn of_node(
    settings: &NodeSettings,
    source: &dyn AddressSource,
    present: Option<&Node>,
) -> Result<Vec<NodeAddress>, AddressError> {
    if settings.external_cloud {
        let written = present.map(|node| node.status.addresses.clone()).unwrap_or_default();
        if !written.is_empty() {
            return Ok(written);
        }
        if settings.node_ips.is_empty() {
            return Ok(vec![address("Hostname", &settings.hostname)]);
        }
    }
    let own = source.own().await?;
    let mut ips = Vec::new();
    for ip in settings.node_ips.iter().filter(|ip| !ip.is_unspecified()) {
        validate(*ip, &own)?;
        ips.push(*ip);
    }
    if ips.is_empty() {
        ips.push(guess(settings, source, &own).await?);
    }
    let mut addresses: Vec<_> = ips.iter().map(|ip| address("InternalIP", &ip.to_string())).collect();
    addresses.push(address("Hostname", &settings.hostname));
    Ok(addresses)
}

fn address(type_: &str, address: &str) -> NodeAddress {
    NodeAddress { type_: type_.to_owned(), address: address.to_owned() }
}

/// The host name's address, else that of the default route.
async fn guess(settings: &NodeSettings, source: &dyn AddressSource, own: &[IpAddr]) -> Result<IpAddr, AddressError> {
    if let Ok(ip) = settings.hostname.parse() {
        return Ok(ip);
    }
    let prefers_v6 = settings.node_ips.first().is_some_and(IpAddr::is_ipv6);
    let found = source.look_up(&settings.name).await;
    let valid = || found.iter().copied().filter(|ip| validate(*ip, own).is_ok());
    if let Some(ip) = valid().find(|ip| ip.is_ipv6() == prefers_v6).or_else(|| valid().next()) {
        return Ok(ip);
    }
    for v6 in [prefers_v6, !prefers_v6] {
        if let Some(ip) = source.of_default_route(v6).await {
            return Ok(ip);
        }
    }
    Err(AddressError::NoRoute { node: settings.name.clone() })
}

fn validate(ip: IpAddr, own: &[IpAddr]) -> Result<(), NodeIpError> {
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if ip.is_loopback() {
        return Err(NodeIpError::Loopback);
    }
    if ip.is_multicast() {
        return Err(NodeIpError::Multicast);
    }
    if link_local {
        return Err(NodeIpError::LinkLocal);
    }
    if ip.is_unspecified() {
        return Err(NodeIpError::Unspecified);
    }
    if own.contains(&ip) { Ok(()) } else { Err(NodeIpError::Foreign(ip)) }
}

/// The addresses that pods see as the host's: the first of each family, internal before external ones.
pub(super) fn host_ips(node: &Node) -> Vec<IpAddr> {
    let of_type = |type_: &'static str| {
        let addresses = node.status.addresses.iter().filter(move |address| address.type_ == type_);
        addresses.filter_map(|address| address.address.parse::<IpAddr>().ok())
    };
    let mut ips: Vec<IpAddr> = Vec::new();
    for ip in of_type("InternalIP").chain(of_type("ExternalIP")) {
        if ips.iter().all(|known| known.is_ipv4() != ip.is_ipv4()) {
            ips.push(ip);
        }
    }
    ips
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Made {
        look_up: Vec<&'static str>,
        own: Vec<&'static str>,
        route: Option<&'static str>,
    }

    #[async_trait]
    impl AddressSource for Made {
        async fn look_up(&self, _: &str) -> Vec<IpAddr> {
            self.look_up.iter().map(|ip| ip.parse().unwrap()).collect()
        }

        async fn own(&self) -> Result<Vec<IpAddr>, NetError> {
            Ok(self.own.iter().map(|ip| ip.parse().unwrap()).collect())
        }

        async fn of_default_route(&self, v6: bool) -> Option<IpAddr> {
            self.route.map(|ip| ip.parse::<IpAddr>().unwrap()).filter(|ip| ip.is_ipv6() == v6)
        }
    }

    async fn found(node_ips: &[&str], source: &Made) -> Result<String, AddressError> {
        let settings = NodeSettings {
            name: "n1".into(),
            hostname: "n1".into(),
            node_ips: node_ips.iter().map(|ip| ip.parse().unwrap()).collect(),
            ..NodeSettings::default()
        };
        let addresses = of_node(&settings, source, None).await?;
        Ok(addresses.iter().map(|one| format!("{}={}", one.type_, one.address)).collect::<Vec<_>>().join(" "))
    }

    #[tokio::test]
    async fn addresses_are_found_or_validated() {
        let source = Made {
            look_up: vec!["127.0.1.1", "fd00::5", "10.0.0.5"],
            own: vec!["10.0.0.5", "fd00::5", "127.0.0.1", "10.0.0.9"],
            route: Some("10.0.0.9"),
        };
        let cases: [(&[&str], Result<&str, &str>); 5] = [
            (&[], Ok("InternalIP=10.0.0.5 Hostname=n1")),
            (&["::"], Ok("InternalIP=fd00::5 Hostname=n1")),
            (&["10.0.0.9", "fd00::5"], Ok("InternalIP=10.0.0.9 InternalIP=fd00::5 Hostname=n1")),
            (&["127.0.0.1"], Err("failed to validate nodeIP: nodeIP can't be loopback address")),
            (
                &["10.0.0.7"],
                Err("failed to validate nodeIP: node IP: \"10.0.0.7\" not found in the host's network interfaces"),
            ),
        ];
        for (ips, expected) in cases {
            let result = found(ips, &source).await.map_err(|error| error.to_string());
            assert_eq!(result.as_deref().map_err(String::as_str), expected, "{ips:?}");
        }
        let routed = Made { look_up: vec![], ..source };
        assert_eq!(found(&[], &routed).await.unwrap(), "InternalIP=10.0.0.9 Hostname=n1");
        let lost = Made { look_up: vec![], own: vec![], route: None };
        let error = found(&[], &lost).await.unwrap_err().to_string();
        assert_eq!(error, "can't get ip address of node n1. error: no default routes found");
    }
}
