//! Where a node's kubelet is asked.

use std::net::IpAddr;

use api_types::core_v1::Node;

/// How the address of a kubelet is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Addressing {
    /// Types of addresses, the most wanted first.
    pub(crate) preferred: Vec<String>,
    pub(crate) port: u16,
    /// Whether the port that a node tells goes before that.
    pub(crate) uses_status_port: bool,
}

/// A node has no address of a kind that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("node {node} had no addresses that matched types {}", types.join(", "))]
pub(crate) struct NoAddress {
    node: String,
    types: Vec<String>,
}

impl Addressing {
    /// The URL of a node's kubelet.
    ///
    /// # Errors
    /// When the node has no address of a kind that is wanted.
    pub(crate) fn url(&self, node: &Node) -> Result<String, NoAddress> {
        let addresses = &node.status.addresses;
        let of_type = |type_: &String| addresses.iter().find(|own| own.type_ == *type_ && !own.address.is_empty());
        let Some(address) = self.preferred.iter().find_map(of_type) else {
            return Err(NoAddress { node: node.metadata.name.clone(), types: self.preferred.clone() });
        };
        let told = u16::try_from(node.status.daemon_endpoints.kubelet_endpoint.port).unwrap_or(0);
        let port = if self.uses_status_port && told != 0 { told } else { self.port };
        Ok(match address.address.parse() {
            Ok(IpAddr::V6(ip)) => format!("https://[{ip}]:{port}"),
            _ => format!("https://{}:{port}", address.address),
        })
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::NodeAddress;

    use super::*;

    #[test]
    fn addresses_are_chosen_by_type() {
        let node = |addresses: &[(&str, &str)], port| {
            let mut node = Node::default();
            node.metadata.name = "n".into();
            let address =
                |(type_, address): &(&str, &str)| NodeAddress { type_: (*type_).into(), address: (*address).into() };
            node.status.addresses = addresses.iter().map(address).collect();
            node.status.daemon_endpoints.kubelet_endpoint.port = port;
            node
        };
        let both = [("InternalIP", "10.0.0.1"), ("Hostname", "n.example")];
        for (preferred, uses_status_port, addresses, port, expected) in [
            (vec!["Hostname", "InternalIP"], false, &both[..], 0, Ok("https://n.example:10250")),
            (vec!["InternalIP"], false, &both, 12, Ok("https://10.0.0.1:10250")),
            (vec!["InternalIP"], true, &both, 12, Ok("https://10.0.0.1:12")),
            (vec!["InternalIP"], true, &both, 0, Ok("https://10.0.0.1:10250")),
            (vec!["InternalIP"], false, &[("InternalIP", "fd00::1")], 0, Ok("https://[fd00::1]:10250")),
            (
                vec!["ExternalDNS", "ExternalIP"],
                false,
                &both,
                0,
                Err("node n had no addresses that matched types ExternalDNS, ExternalIP"),
            ),
        ] {
            let preferred = preferred.into_iter().map(str::to_owned).collect();
            let addressing = Addressing { preferred, port: 10250, uses_status_port };
            let url = addressing.url(&node(addresses, port)).map_err(|error| error.to_string());
            assert_eq!(url.as_deref().map_err(String::as_str), expected);
        }
    }
}
