//! Which addresses may be dialled. The address that was checked is the one that is dialled.

use std::net::IpAddr;

use base::SharedConnector;

use super::connection::Way;

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

/// The way to a port of a host, all of whose addresses must be allowed. A name means what it means to whoever connects: where
/// that is not this host, it is not looked up here, and leads nowhere near it.
///
/// # Errors
/// Upstream's text, for a 400.
pub(crate) async fn way(connector: &SharedConnector, host: &str, port: u16, reach: Reach) -> Result<Way, String> {
    let connector = SharedConnector::clone(connector);
    let addresses: Vec<IpAddr> = match host.parse() {
        Ok(address) => vec![address],
        Err(_) if !connector.is_direct() => {
            if is_own(host) {
                return Err("address not allowed".to_owned());
            }
            return Ok(Way { connector, places: vec![(host.to_owned(), port)] });
        }
        Err(_) => {
            let found = tokio::net::lookup_host((host, port)).await.map_err(|error| error.to_string())?;
            found.map(|address| address.ip()).collect()
        }
    };
    if addresses.is_empty() {
        return Err("no addresses for hostname".to_owned());
    }
    if addresses.iter().all(|address| reach.allows(*address)) {
        let places = addresses.iter().map(|address| (address.to_string(), port)).collect();
        Ok(Way { connector, places })
    } else {
        Err("address not allowed".to_owned())
    }
}

/// Whether a name means the host where it is looked up, or is an address in a form that only resolvers take for one.
fn is_own(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let last = host.rsplit('.').next().unwrap_or_default();
    last == "localhost" || last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::{Connecting, Connector, Direct};

    use super::*;

    #[derive(Debug)]
    struct Elsewhere;

    impl Connector for Elsewhere {
        fn connect<'a>(&'a self, _: &'a str, _: u16) -> Connecting<'a> {
            unreachable!("nobody dials")
        }

        fn is_direct(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn names_go_to_a_proxy_but_those_of_its_own_host() {
        let connector: SharedConnector = Arc::new(Elsewhere);
        for (name, allowed) in [
            ("node-1", true),
            ("node-1.example.", true),
            ("0xray.example", true),
            ("10.example", true),
            ("localhost", false),
            ("LOCALHOST.", false),
            ("a.localhost", false),
            ("127.1", false),
            ("2130706433", false),
            ("0x7f000001", false),
            ("0x7f.1", false),
            ("", false),
        ] {
            assert_eq!(way(&connector, name, 1, Reach::Node).await.is_ok(), allowed, "{name}");
        }
    }

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
            for (reach, allowed) in [(Reach::Node, node), (Reach::Routable, routable)] {
                assert_eq!(way(&Direct::shared(), address, 1, reach).await.is_ok(), allowed, "{address}");
            }
        }
    }
}
