//! The addresses of a node: what the cloud says, put in order by what the kubelet was told. Pure.

use std::net::IpAddr;

use api_types::core_v1::{Node, NodeAddress};

/// What a kubelet was started with as `--node-ip`.
pub(crate) const PROVIDED_NODE_IP: &str = "alpha.kubernetes.io/provided-node-ip";
const HOSTNAME: &str = "Hostname";

/// The addresses that the kubelet was told, which must all be the cloud's.
///
/// # Errors
/// When one cannot be read.
fn provided(node: &Node) -> Result<Vec<IpAddr>, String> {
    let Some(text) = node.metadata.annotations.get(PROVIDED_NODE_IP).filter(|text| !text.is_empty()) else {
        return Ok(Vec::new());
    };
    let parse = |one: &str| one.trim().parse().map_err(|error| format!("failed to parse node IP {text:?}: {error}"));
    text.split(',').map(parse).collect()
}

/// The addresses that a node should have; nothing where the cloud knows none. Those that the kubelet was told come
/// first, and others of their types are left out. The node's own host name stays where the cloud has none.
///
/// # Errors
/// When the kubelet was told an address that cannot be read, or is not the cloud's.
pub(crate) fn wanted(node: &Node, cloud: &[NodeAddress]) -> Result<Option<Vec<NodeAddress>>, String> {
    if cloud.is_empty() {
        return Ok(None);
    }
    let mut known = cloud.to_vec();
    if !known.iter().any(|address| address.type_ == HOSTNAME) {
        known.extend(node.status.addresses.iter().filter(|address| address.type_ == HOSTNAME).cloned());
    }
    let mut first: Vec<NodeAddress> = Vec::new();
    for ip in provided(node)? {
        let is_it = |address: &&NodeAddress| address.address.parse::<IpAddr>().is_ok_and(|one| one == ip);
        let before = first.len();
        first.extend(known.iter().filter(is_it).cloned());
        if first.len() == before {
            return Err(format!("failed to get node address from cloud provider that matches ip: {ip}"));
        }
    }
    let rest: Vec<_> = known.into_iter().filter(|one| first.iter().all(|told| told.type_ != one.type_)).collect();
    first.extend(rest);
    Ok(Some(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(list: &[(&str, &str)]) -> Vec<NodeAddress> {
        let address =
            |(type_, address): &(&str, &str)| NodeAddress { type_: (*type_).into(), address: (*address).into() };
        list.iter().map(address).collect()
    }

    #[test]
    fn what_the_kubelet_was_told_comes_first() {
        let cloud = [
            ("InternalIP", "10.0.0.1"),
            ("InternalIP", "10.0.0.2"),
            ("InternalIP", "fd00::2"),
            ("ExternalIP", "1.1.1.1"),
        ];
        let own = [("Hostname", "n"), ("InternalIP", "10.9.9.9")];
        let with = |told: &str, cloud: &[(&str, &str)]| {
            let mut node = Node::default();
            node.status.addresses = addresses(&own);
            if !told.is_empty() {
                node.metadata.annotations.insert(PROVIDED_NODE_IP.into(), told.into());
            }
            wanted(&node, &addresses(cloud))
        };
        assert_eq!(with("", &[]), Ok(None));
        let all = [cloud[0], cloud[1], cloud[2], cloud[3], own[0]];
        assert_eq!(with("", &cloud), Ok(Some(addresses(&all))));
        assert_eq!(with("10.0.0.2", &cloud), Ok(Some(addresses(&[cloud[1], cloud[3], own[0]]))));
        assert_eq!(with("10.0.0.2,fd00::2", &cloud), Ok(Some(addresses(&[cloud[1], cloud[2], cloud[3], own[0]]))));
        let named = [cloud[0], ("Hostname", "cloud")];
        assert_eq!(with("", &named), Ok(Some(addresses(&named))), "the cloud's host name");
        assert_eq!(
            with("10.9.9.9", &cloud),
            Err("failed to get node address from cloud provider that matches ip: 10.9.9.9".into())
        );
        assert!(with("here", &cloud).is_err_and(|error| error.starts_with("failed to parse node IP \"here\": ")));
    }
}
