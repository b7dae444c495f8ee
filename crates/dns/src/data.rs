//! What the zone is made of: Services with their ready endpoints, and the namespaces that exist.

use std::net::IpAddr;

use api_types::core_v1::Service;
use api_types::core_v1::constants::service_type;
use api_types::discovery_v1::EndpointSlice;

/// A Service as DNS sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceRecord {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its addresses; none for headless Services.
    pub cluster_ips: Vec<IpAddr>,
    /// The name it stands for; empty for none.
    pub external_name: String,
    /// Its ports.
    pub ports: Vec<PortRecord>,
}

/// A port of a Service or endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortRecord {
    /// Its name; may be empty.
    pub name: String,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
    /// Its number.
    pub number: u16,
}

/// A ready endpoint of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointRecord {
    /// Its label below the Service's name.
    pub label: String,
    /// Its address.
    pub address: IpAddr,
    /// Its ports.
    pub ports: Vec<PortRecord>,
}

/// A view of the cluster. Answers are snapshots of the moment.
pub trait ClusterData: Send + Sync {
    /// Whether the first contents have arrived.
    fn is_synced(&self) -> bool;
    /// When the contents last changed, in seconds since the epoch.
    fn serial(&self) -> u32;
    /// Whether there is such a namespace.
    fn has_namespace(&self, name: &str) -> bool;
    /// A Service.
    fn service(&self, namespace: &str, name: &str) -> Option<ServiceRecord>;
    /// The ready endpoints of a Service.
    fn endpoints(&self, namespace: &str, name: &str) -> Vec<EndpointRecord>;
    /// The Service that has an address.
    fn service_by_ip(&self, address: IpAddr) -> Option<ServiceRecord>;
    /// The ready endpoints with an address, each with its Service's namespace and name.
    fn endpoints_by_ip(&self, address: IpAddr) -> Vec<(String, String, EndpointRecord)>;
}

impl ServiceRecord {
    /// What DNS needs of a Service.
    #[must_use]
    pub fn of(service: &Service) -> Self {
        let spec = &service.spec;
        let external = spec.type_ == service_type::EXTERNAL_NAME;
        let texts = spec.cluster_ips.iter().chain(spec.cluster_ips.is_empty().then_some(&spec.cluster_ip));
        Self {
            namespace: service.metadata.namespace.clone(),
            name: service.metadata.name.clone(),
            cluster_ips: texts.filter(|_| !external).filter_map(|text| text.parse().ok()).collect(),
            external_name: if external { spec.external_name.trim_end_matches('.').to_owned() } else { String::new() },
            ports: spec.ports.iter().filter_map(|port| record(&port.name, &port.protocol, Some(port.port))).collect(),
        }
    }

    /// Whether traffic goes to endpoints directly.
    #[must_use]
    pub fn is_headless(&self) -> bool {
        self.cluster_ips.is_empty() && self.external_name.is_empty()
    }
}

fn record(name: &str, protocol: &str, number: Option<i32>) -> Option<PortRecord> {
    let protocol = if protocol.is_empty() { "tcp".to_owned() } else { protocol.to_lowercase() };
    Some(PortRecord { name: name.to_owned(), protocol, number: u16::try_from(number?).ok()? })
}

/// The ready endpoints of a slice.
#[must_use]
pub fn endpoints_of(slice: &EndpointSlice) -> Vec<EndpointRecord> {
    let ports: Vec<PortRecord> = slice
        .ports
        .iter()
        .filter_map(|port| {
            record(port.name.as_deref().unwrap_or_default(), port.protocol.as_deref().unwrap_or_default(), port.port)
        })
        .collect();
    let ready = slice.endpoints.iter().filter(|one| one.conditions.ready.unwrap_or(true));
    let mut records = Vec::new();
    for endpoint in ready {
        for address in endpoint.addresses.iter().filter_map(|text| text.parse::<IpAddr>().ok()) {
            let label = match endpoint.hostname.as_deref() {
                Some(hostname) if !hostname.is_empty() => hostname.to_owned(),
                _ => dashed(address),
            };
            records.push(EndpointRecord { label, address, ports: ports.clone() });
        }
    }
    records
}

/// An address as a label: `10-1-2-3`, `fd00--1`.
#[must_use]
pub fn dashed(address: IpAddr) -> String {
    address.to_string().replace(['.', ':'], "-")
}
