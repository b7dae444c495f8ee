//! EndpointSlice and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::constants::address_type;
use crate::core_v1::ObjectReference;
use crate::core_v1::constants::protocol;

/// Part of the endpoints that back a service.
#[api(kind = "EndpointSlice", resource = "endpointslices", namespaced)]
pub struct EndpointSlice {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Type of all addresses: IPv4, IPv6 or FQDN. Immutable.
    #[field(4, always, required, go = "v1.AddressType", values = address_type::ALL)]
    pub address_type: String,
    /// Endpoints in the slice, at most 1000.
    #[field(2, always)]
    pub endpoints: Vec<Endpoint>,
    /// Ports that every endpoint offers, at most 20000.
    #[field(3, always)]
    pub ports: Vec<EndpointPort>,
}

/// One backend of a service.
#[api]
pub struct Endpoint {
    /// Addresses of the backend, 1 to 100. Consumers use only the first.
    #[field(1, always, required, set)]
    pub addresses: Vec<String>,
    /// Current state of the endpoint.
    #[field(2)]
    pub conditions: EndpointConditions,
    /// Host name of the endpoint, used in DNS.
    #[field(3)]
    pub hostname: Option<String>,
    /// Object behind the endpoint, usually a pod.
    #[field(4)]
    pub target_ref: Option<ObjectReference>,
    /// Leftover topology data from v1beta1, read-only.
    #[field(5)]
    pub deprecated_topology: BTreeMap<String, String>,
    /// Node that hosts the endpoint.
    #[field(6)]
    pub node_name: Option<String>,
    /// Zone that holds the endpoint.
    #[field(7)]
    pub zone: Option<String>,
    /// Who should preferably use the endpoint.
    #[field(8)]
    pub hints: Option<EndpointHints>,
}

/// The state of an endpoint.
#[api]
pub struct EndpointConditions {
    /// Whether the endpoint accepts new traffic. Absent counts as true.
    #[field(1)]
    pub ready: Option<bool>,
    /// Whether the endpoint can serve, even while terminating. Absent follows ready.
    #[field(2)]
    pub serving: Option<bool>,
    /// Whether the endpoint is shutting down. Absent counts as false.
    #[field(3)]
    pub terminating: Option<bool>,
}

/// Who should preferably use an endpoint.
#[api]
pub struct EndpointHints {
    /// Zones that should use the endpoint, at most 8.
    #[field(1)]
    pub for_zones: Vec<ForZone>,
    /// Nodes that should use the endpoint, at most 8.
    #[field(2)]
    pub for_nodes: Vec<ForNode>,
}

/// Names a zone that should use an endpoint.
#[api]
pub struct ForZone {
    /// Name of the zone.
    #[field(1, always, required)]
    pub name: String,
}

/// Names a node that should use an endpoint.
#[api]
pub struct ForNode {
    /// Name of the node.
    #[field(1, always, required)]
    pub name: String,
}

/// A port that endpoints offer.
#[api(atomic)]
pub struct EndpointPort {
    /// Name of the port, unique in the slice. Default is empty.
    #[field(1)]
    pub name: Option<String>,
    /// Transport protocol: TCP (default), UDP or SCTP.
    #[field(2, go = "v1.Protocol", values = protocol::ALL)]
    pub protocol: Option<String>,
    /// Port number. Absent leaves the choice to the consumer.
    #[field(3)]
    pub port: Option<i32>,
    /// Application protocol of the port, such as kubernetes.io/h2c.
    #[field(4)]
    pub app_protocol: Option<String>,
}
