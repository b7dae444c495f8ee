//! EndpointSlice whose endpoints have a topology.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use crate::core_v1::ObjectReference;
use crate::discovery_v1::{EndpointConditions, EndpointHints, EndpointPort};

/// Part of the endpoints that back a service.
#[api(kind = "EndpointSlice", resource = "endpointslices", namespaced)]
pub struct EndpointSlice {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Type of all addresses: IPv4, IPv6 or FQDN.
    #[field(4, always)]
    pub address_type: String,
    /// Endpoints in the slice.
    #[field(2, always)]
    pub endpoints: Vec<Endpoint>,
    /// Ports that every endpoint offers.
    #[field(3, always)]
    pub ports: Vec<EndpointPort>,
}

/// One backend of a service.
#[api]
pub struct Endpoint {
    /// Addresses of the backend.
    #[field(1, always, set)]
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
    /// Where the endpoint is: node, zone and region by their labels.
    #[field(5)]
    pub topology: BTreeMap<String, String>,
    /// Node that hosts the endpoint.
    #[field(6)]
    pub node_name: Option<String>,
    /// Who should preferably use the endpoint.
    #[field(7)]
    pub hints: Option<EndpointHints>,
}
