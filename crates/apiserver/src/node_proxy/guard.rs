//! Which addresses may be dialled. The address that was checked is the one that is dialled.

use std::net::{IpAddr, SocketAddr};

/// How strict the check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A node's agent, where the node says it is and that may be here: anything but addresses that belong to no node.
    Node,
    /// Whatever pods, endpoints and nodes claim: only addresses that route.
    Routable,
}

impl Reach {
    /// Whether an address may be dialled.
    pub(crate) fn allows(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let link_local = match address {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let never = link_local || address.is_unspecified() || address.is_multicast();
        match self {
            Self::Node => !never,
            Self::Routable => !never && !address.is_loopback(),
        }
    }
}

/// The addresses of a host, all of which must be allowed.
///
/// # Errors
/// Upstream's text, for a 400.
pub(crate) async fn resolve(host: &str, port: u16, reach: Reach) -> Result<Vec<SocketAddr>, String> {
    let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => tokio::net::lookup_host((host, port)).await.map_err(|error| error.to_string())?.collect(),
    };
    if addresses.is_empty() {
        return Err("no addresses for hostname".to_owned());
    }
    if addresses.iter().all(|address| reach.allows(address.ip())) {
        Ok(addresses)
    } else {
        Err("address not allowed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_of_the_host_itself_are_refused() {
        let cases = [
            ("127.0.0.1", true, false),
            ("::1", true, false),
            ("::ffff:127.0.0.1", true, false),
            ("169.254.169.254", false, false),
            ("::ffff:169.254.169.254", false, false),
            ("fe80::1", false, false),
            ("0.0.0.0", false, false),
            ("224.0.0.1", false, false),
            ("10.1.2.3", true, true),
            ("2001:db8::1", true, true),
        ];
        for (address, node, routable) in cases {
            assert_eq!(resolve(address, 1, Reach::Node).await.is_ok(), node, "{address}");
            assert_eq!(resolve(address, 1, Reach::Routable).await.is_ok(), routable, "{address}");
        }
    }
}
