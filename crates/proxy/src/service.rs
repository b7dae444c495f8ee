//! What the proxy serves: one entry for each port of each Service in one family.

use std::net::IpAddr;

use api_types::core_v1::constants::service_type;
use api_types::core_v1::{Service, ServicePort};
use component_base::{Feature, Gates};
use sys::net::Destination;

use crate::Family;

/// A Service's port, as rules and endpoints refer to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortKey {
    /// The Service's namespace.
    pub namespace: String,
    /// The Service's name.
    pub name: String,
    /// The port's name; may be empty.
    pub port: String,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
}

impl PortKey {
    /// `namespace/name[:port]`, for comments and logs.
    #[must_use]
    pub fn display(&self) -> String {
        let colon = if self.port.is_empty() { "" } else { ":" };
        format!("{}/{}{colon}{}", self.namespace, self.name, self.port)
    }
}

/// A Service's port with the addresses at which it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedPort {
    /// Which one.
    pub key: PortKey,
    /// The address inside the cluster.
    pub cluster_ip: IpAddr,
    /// The port at all addresses but the nodes' own.
    pub port: u16,
    /// The port at the nodes' addresses; 0 for none.
    pub node_port: u16,
    /// Further addresses that route here.
    pub external_ips: Vec<IpAddr>,
    /// Load balancer addresses that route here.
    pub load_balancer_ips: Vec<IpAddr>,
    /// The sources that load balancer addresses take; empty for all.
    pub source_ranges: Vec<String>,
    /// Outside traffic only goes to endpoints on this node.
    pub external_local: bool,
    /// Inside traffic only goes to endpoints on this node.
    pub internal_local: bool,
    /// How long a client sticks to an endpoint.
    pub affinity_seconds: Option<u32>,
    /// The port on which load balancers ask whether this node has endpoints; 0 for none.
    pub health_check_port: u16,
}

impl ServedPort {
    /// Whether it has an address that the outside reaches.
    #[must_use]
    pub fn is_external(&self) -> bool {
        self.node_port != 0 || !self.load_balancer_ips.is_empty() || !self.external_ips.is_empty()
    }

    /// Whether any traffic goes to endpoints on all nodes.
    #[must_use]
    pub fn uses_cluster_endpoints(&self) -> bool {
        !self.internal_local || self.is_external()
    }

    /// Whether any traffic goes to endpoints on this node only.
    #[must_use]
    pub fn uses_local_endpoints(&self) -> bool {
        self.internal_local || (self.external_local && self.is_external())
    }
}

/// Services are served at the addresses that their users chose, which is to end.
pub(crate) const SERVES_EXTERNAL_IPS: Feature = Feature::named("AllowServiceExternalIPs");

/// Whether Services are served at the addresses that their users chose (KEP-5707).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExternalIps {
    /// They are.
    #[default]
    Served,
    /// Nobody is served there.
    Ignored,
}

impl ExternalIps {
    /// As these gates are switched.
    #[must_use]
    pub fn of(gates: &Gates) -> Self {
        if gates.enabled(SERVES_EXTERNAL_IPS) { Self::Served } else { Self::Ignored }
    }
}

/// The served ports of a Service in one family; none where the Service is not the proxy's business.
#[must_use]
pub fn served_ports(service: &Service, family: Family, external_ips: ExternalIps) -> Vec<ServedPort> {
    let spec = &service.spec;
    let skipped = spec.cluster_ip.is_empty() || spec.cluster_ip == "None" || spec.type_ == service_type::EXTERNAL_NAME;
    let Some(cluster_ip) = cluster_ip(service, family).filter(|_| !skipped) else { return Vec::new() };
    spec.ports.iter().filter_map(|port| served_port(service, port, cluster_ip, family, external_ips)).collect()
}

fn cluster_ip(service: &Service, family: Family) -> Option<IpAddr> {
    let spec = &service.spec;
    let all = spec.cluster_ips.iter().chain(std::iter::once(&spec.cluster_ip));
    all.filter_map(|text| text.parse::<IpAddr>().ok()).find(|address| Family::of(*address) == family)
}

fn served_port(
    service: &Service,
    port: &ServicePort,
    cluster_ip: IpAddr,
    family: Family,
    external_ips: ExternalIps,
) -> Option<ServedPort> {
    let spec = &service.spec;
    let external_ips = match external_ips {
        ExternalIps::Served => of_family(&spec.external_ips, family),
        ExternalIps::Ignored => Vec::new(),
    };
    let external = match spec.type_.as_str() {
        service_type::LOAD_BALANCER | service_type::NODE_PORT => true,
        _ => !spec.external_ips.is_empty(),
    };
    let external_local = external && spec.external_traffic_policy == "Local";
    let checked = external_local && spec.type_ == service_type::LOAD_BALANCER;
    let timeout = spec.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
    Some(ServedPort {
        key: PortKey {
            namespace: service.metadata.namespace.clone(),
            name: service.metadata.name.clone(),
            port: port.name.clone(),
            protocol: if port.protocol.is_empty() { "TCP".into() } else { port.protocol.clone() },
        },
        cluster_ip,
        port: u16::try_from(port.port).ok()?,
        node_port: u16::try_from(port.node_port).ok()?,
        external_ips,
        load_balancer_ips: load_balancer_ips(service, family),
        source_ranges: source_ranges(&spec.load_balancer_source_ranges, family),
        external_local,
        internal_local: spec.internal_traffic_policy.as_deref() == Some("Local"),
        affinity_seconds: timeout.filter(|_| spec.session_affinity == "ClientIP").and_then(|s| u32::try_from(s).ok()),
        health_check_port: if checked { u16::try_from(spec.health_check_node_port).unwrap_or(0) } else { 0 },
    })
}

fn of_family(texts: &[String], family: Family) -> Vec<IpAddr> {
    texts.iter().filter_map(|text| text.parse().ok()).filter(|address| Family::of(*address) == family).collect()
}

/// The addresses that the load balancer hands on unchanged.
fn load_balancer_ips(service: &Service, family: Family) -> Vec<IpAddr> {
    let ingress = &service.status.load_balancer.ingress;
    let direct = ingress.iter().filter(|one| one.ip_mode.as_deref().is_none_or(|mode| mode == "VIP"));
    of_family(&direct.map(|one| one.ip.clone()).collect::<Vec<_>>(), family)
}

/// The ranges of the family; one that takes everybody makes them all moot. What is no range would make the table fail
/// for every Service.
fn source_ranges(ranges: &[String], family: Family) -> Vec<String> {
    let is_range = |range: &String| range.contains('/') && range.parse::<Destination>().is_ok();
    let own: Vec<String> = ranges
        .iter()
        .map(|range| range.trim().to_owned())
        .filter(|range| Family::of_text(range) == Some(family) && is_range(range))
        .collect();
    if own.iter().any(|range| range.ends_with("/0")) { Vec::new() } else { own }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(type_: &str) -> Service {
        let mut service = Service::default();
        service.metadata.namespace = "demo".into();
        service.metadata.name = "web".into();
        service.spec.type_ = type_.into();
        service.spec.cluster_ip = "10.96.7.7".into();
        service.spec.cluster_ips = vec!["10.96.7.7".into(), "fd00:96::7".into()];
        service.spec.ports = vec![ServicePort { port: 80, node_port: 30080, ..ServicePort::default() }];
        service
    }

    #[test]
    fn services_without_an_address_of_the_family_are_skipped() {
        let mut headless = service("ClusterIP");
        headless.spec.cluster_ip = "None".into();
        let mut v4_only = service("ClusterIP");
        v4_only.spec.cluster_ips.pop();
        for (service, family, expected) in [
            (service("ClusterIP"), Family::V4, Some("10.96.7.7")),
            (service("ClusterIP"), Family::V6, Some("fd00:96::7")),
            (v4_only, Family::V6, None),
            (headless, Family::V4, None),
            (service("ExternalName"), Family::V4, None),
        ] {
            let found =
                served_ports(&service, family, ExternalIps::Served).first().map(|port| port.cluster_ip.to_string());
            assert_eq!(found.as_deref(), expected);
        }
    }

    #[test]
    fn addresses_that_users_chose_are_served_where_they_may_be() {
        let mut service = service("LoadBalancer");
        service.spec.external_ips = vec!["192.0.2.1".into(), "2001:db8::1".into()];
        service.spec.external_traffic_policy = "Local".into();
        for (external_ips, expected) in [(ExternalIps::Served, &["192.0.2.1"][..]), (ExternalIps::Ignored, &[])] {
            let ports = served_ports(&service, Family::V4, external_ips);
            let shown: Vec<_> = ports[0].external_ips.iter().map(ToString::to_string).collect();
            assert!(shown == expected && ports[0].external_local, "{external_ips:?}: {shown:?}");
        }
        assert_eq!(ExternalIps::of(&Gates::default()), ExternalIps::Served);
        assert_eq!(ExternalIps::of(&Gates::default().with(SERVES_EXTERNAL_IPS, false)), ExternalIps::Ignored);
    }

    #[test]
    fn source_ranges_of_everybody_are_none() {
        let mut service = service("LoadBalancer");
        service.spec.load_balancer_source_ranges =
            vec![" 203.0.113.0/24".into(), "fd00::/8".into(), "203.0.113.0/33".into(), "203.0.113.9".into()];
        assert_eq!(served_ports(&service, Family::V4, ExternalIps::Served)[0].source_ranges, ["203.0.113.0/24"]);
        service.spec.load_balancer_source_ranges.push("0.0.0.0/0".into());
        assert!(served_ports(&service, Family::V4, ExternalIps::Served)[0].source_ranges.is_empty());
    }
}
