//! What a node's status says.

use api_types::core_v1::Node;

use crate::conditions;

/// Whether the node's `Ready` condition is true.
#[must_use]
pub fn is_ready(node: &Node) -> bool {
    conditions::is_true(&node.status.conditions, "Ready")
}

/// The first address of a type, such as `InternalIP` or `Hostname`.
#[must_use]
pub fn address<'a>(node: &'a Node, type_: &str) -> Option<&'a str> {
    node.status.addresses.iter().find(|address| address.type_ == type_).map(|address| address.address.as_str())
}

/// The address at which the API server finds the node's kubelet, by an order of preferred types.
#[must_use]
pub fn preferred_address<'a>(node: &'a Node, types: &[&str]) -> Option<&'a str> {
    types.iter().find_map(|type_| address(node, type_))
}
