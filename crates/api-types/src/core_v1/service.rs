//! Service and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::intstr::IntOrString;
use api_machinery::meta::{Condition, ObjectMeta};

use super::constants::{
    ip_family, ip_family_policy, protocol, service_affinity, service_external_traffic_policy,
    service_internal_traffic_policy, service_type,
};

/// A stable name and address for a set of pods.
#[api(kind = "Service", resource = "services", namespaced)]
pub struct Service {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The wanted behaviour of the service.
    #[field(2)]
    pub spec: ServiceSpec,
    /// Current state of the service, set by the system.
    #[field(3)]
    pub status: ServiceStatus,
}

/// Describes a service and how it is reached.
#[api]
pub struct ServiceSpec {
    /// Ports that the service exposes.
    #[field(1, merge_key = "port", keys("port", "protocol"))]
    pub ports: Vec<ServicePort>,
    /// Labels of the pods that receive traffic; empty means endpoints come from elsewhere.
    #[field(2, atomic)]
    pub selector: BTreeMap<String, String>,
    /// Virtual IP of the service; None makes it headless; usually assigned.
    #[field(3, name = "clusterIP")]
    pub cluster_ip: String,
    /// Virtual IPs, at most one per family; the first equals clusterIP.
    #[field(18, name = "clusterIPs")]
    pub cluster_ips: Vec<String>,
    /// How it is exposed: ClusterIP (default), NodePort, LoadBalancer or ExternalName.
    #[field(4, fill = "\"ClusterIP\"", go = "v1.ServiceType", values = service_type::ALL)]
    pub type_: String,
    /// Extra IP addresses on which nodes accept traffic; not managed by Kubernetes.
    #[field(5, name = "externalIPs")]
    pub external_ips: Vec<String>,
    /// Session affinity: None (default) or ClientIP.
    #[field(7, fill = "\"None\"", go = "v1.ServiceAffinity", values = service_affinity::ALL)]
    pub session_affinity: String,
    /// Deprecated. IP wanted for the load balancer; support depends on the provider.
    #[field(8, name = "loadBalancerIP")]
    pub load_balancer_ip: String,
    /// Client address ranges the load balancer accepts; empty accepts all.
    #[field(9)]
    pub load_balancer_source_ranges: Vec<String>,
    /// DNS name returned as a CNAME record; only for type ExternalName.
    #[field(10)]
    pub external_name: String,
    /// Routing of external traffic: Cluster (default) or Local.
    #[field(11, go = "v1.ServiceExternalTrafficPolicy", values = service_external_traffic_policy::ALL)]
    pub external_traffic_policy: String,
    /// Health check port on nodes; for LoadBalancer with Local policy only.
    #[field(12)]
    pub health_check_node_port: i32,
    /// Publishes addresses even when pods are not ready; default false.
    #[field(13)]
    pub publish_not_ready_addresses: bool,
    /// Settings of session affinity.
    #[field(14)]
    pub session_affinity_config: Option<SessionAffinityConfig>,
    /// IP families of the service: IPv4, IPv6 or both.
    #[field(19, go = "[]v1.IPFamily", values = ip_family::ALL)]
    pub ip_families: Vec<String>,
    /// Dual-stack wish: SingleStack (default), PreferDualStack or RequireDualStack.
    #[field(17, go = "v1.IPFamilyPolicy", values = ip_family_policy::ALL)]
    pub ip_family_policy: Option<String>,
    /// Whether node ports are assigned for LoadBalancer services; default true.
    #[field(20)]
    pub allocate_load_balancer_node_ports: Option<bool>,
    /// Load balancer implementation to use; unset uses the cloud's default.
    #[field(21)]
    pub load_balancer_class: Option<String>,
    /// Routing of cluster-internal traffic: Cluster (default) or Local.
    #[field(22, go = "v1.ServiceInternalTrafficPolicy", values = service_internal_traffic_policy::ALL)]
    pub internal_traffic_policy: Option<String>,
    /// Endpoint preference: PreferSameZone, PreferSameNode or PreferClose; unset uses default routing.
    #[field(23)]
    pub traffic_distribution: Option<String>,
}

/// One port of a service.
#[api]
pub struct ServicePort {
    /// Name of the port; required when there are several.
    #[field(1)]
    pub name: String,
    /// Protocol of the port: TCP (default), UDP or SCTP.
    #[field(2, default = "\"TCP\"", fill = "\"TCP\"", go = "v1.Protocol", values = protocol::ALL)]
    pub protocol: String,
    /// Hint about the application protocol, for example kubernetes.io/h2c.
    #[field(6)]
    pub app_protocol: Option<String>,
    /// Port that the service listens on, 1 to 65535.
    #[field(3, always, required)]
    pub port: i32,
    /// Pod port, as number or name; default is the service port.
    #[field(4)]
    pub target_port: IntOrString,
    /// Port on every node for NodePort and LoadBalancer; usually assigned.
    #[field(5)]
    pub node_port: i32,
}

/// Settings of session affinity.
#[api]
pub struct SessionAffinityConfig {
    /// Settings of affinity by client IP address.
    #[field(1, name = "clientIP")]
    pub client_ip: Option<ClientIPConfig>,
}

/// Settings of affinity by client IP address.
#[api]
pub struct ClientIPConfig {
    /// Seconds a client stays with one pod, 1 to 86400; default 10800.
    #[field(1)]
    pub timeout_seconds: Option<i32>,
}

/// Current state of a service.
#[api]
pub struct ServiceStatus {
    /// State of the load balancer, if there is one.
    #[field(1)]
    pub load_balancer: LoadBalancerStatus,
    /// Current conditions of the service.
    #[field(2, merge_key = "type")]
    pub conditions: Vec<Condition>,
}

/// State of a load balancer.
#[api]
pub struct LoadBalancerStatus {
    /// Entry points at which traffic for the service arrives.
    #[field(1)]
    pub ingress: Vec<LoadBalancerIngress>,
}

/// One entry point of a load balancer.
#[api]
pub struct LoadBalancerIngress {
    /// IP address of the entry point, for IP-based balancers.
    #[field(1)]
    pub ip: String,
    /// Host name of the entry point, for DNS-based balancers.
    #[field(2)]
    pub hostname: String,
    /// Handling of the IP by nodes: VIP (default) or Proxy.
    #[field(3, go = "v1.LoadBalancerIPMode")]
    pub ip_mode: Option<String>,
    /// State of the service ports on the load balancer.
    #[field(4)]
    pub ports: Vec<PortStatus>,
}

/// State of one service port on a load balancer.
#[api]
pub struct PortStatus {
    /// Number of the service port.
    #[field(1, always, required)]
    pub port: i32,
    /// Protocol of the port: TCP, UDP or SCTP.
    #[field(2, always, required, go = "v1.Protocol", values = protocol::ALL)]
    pub protocol: String,
    /// CamelCase error when the port has a problem.
    #[field(3)]
    pub error: Option<String>,
}
