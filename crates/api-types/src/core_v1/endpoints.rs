//! Endpoints and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::ObjectReference;
use super::constants::protocol;

/// Deprecated. Addresses behind a service; use EndpointSlice instead.
#[api(kind = "Endpoints", resource = "endpoints", namespaced)]
pub struct Endpoints {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Groups of addresses and the ports they share.
    #[field(2)]
    pub subsets: Vec<EndpointSubset>,
}

/// Addresses that share the same ports.
#[api]
pub struct EndpointSubset {
    /// Addresses that are ready.
    #[field(1)]
    pub addresses: Vec<EndpointAddress>,
    /// Addresses that are not ready yet or fail their check.
    #[field(2)]
    pub not_ready_addresses: Vec<EndpointAddress>,
    /// Ports available on the addresses.
    #[field(3)]
    pub ports: Vec<EndpointPort>,
}

/// One address of an endpoint.
#[api(atomic)]
pub struct EndpointAddress {
    /// IP address; it may not be loopback or link-local.
    #[field(1, always, required)]
    pub ip: String,
    /// Host name of the endpoint.
    #[field(3)]
    pub hostname: String,
    /// Node that hosts the endpoint.
    #[field(4)]
    pub node_name: Option<String>,
    /// Object that provides the endpoint, usually a pod.
    #[field(2)]
    pub target_ref: Option<ObjectReference>,
}

/// One port of an endpoint.
#[api(atomic)]
pub struct EndpointPort {
    /// Name of the port, matching the service port; required when several.
    #[field(1)]
    pub name: String,
    /// Port number.
    #[field(2, always, required)]
    pub port: i32,
    /// Protocol of the port: TCP (default), UDP or SCTP.
    #[field(3, fill = "\"TCP\"", go = "v1.Protocol", values = protocol::ALL)]
    pub protocol: String,
    /// Hint about the application protocol of the port.
    #[field(4)]
    pub app_protocol: Option<String>,
}
