//! Ingress and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::constants::path_type;
use crate::core_v1::TypedLocalObjectReference;
use crate::core_v1::constants::protocol;

/// Routes outside HTTP traffic to services.
#[api(kind = "Ingress", resource = "ingresses", namespaced)]
pub struct Ingress {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The wanted routing.
    #[field(2)]
    pub spec: IngressSpec,
    /// Last observed state of the ingress.
    #[field(3)]
    pub status: IngressStatus,
}

/// The wanted routing of an ingress.
#[api]
pub struct IngressSpec {
    /// Ingress class whose controller handles this object.
    #[field(4)]
    pub ingress_class_name: Option<String>,
    /// Backend for requests that match no rule. Needed without rules.
    #[field(1)]
    pub default_backend: Option<IngressBackend>,
    /// TLS certificates for host names.
    #[field(2)]
    pub tls: Vec<IngressTLS>,
    /// Host rules. Unmatched requests go to the default backend.
    #[field(3)]
    pub rules: Vec<IngressRule>,
}

/// Where requests go. Exactly one of service and resource is set.
#[api]
pub struct IngressBackend {
    /// Service that receives the requests. Excludes resource.
    #[field(4)]
    pub service: Option<IngressServiceBackend>,
    /// Object in the same namespace that handles requests. Excludes service.
    #[field(3)]
    pub resource: Option<TypedLocalObjectReference>,
}

/// A service and port as backend.
#[api]
pub struct IngressServiceBackend {
    /// Name of the service in the same namespace.
    #[field(1, always, required)]
    pub name: String,
    /// Port of the service.
    #[field(2)]
    pub port: ServiceBackendPort,
}

/// A service port, given by name or number.
#[api(atomic)]
pub struct ServiceBackendPort {
    /// Name of the port. Excludes number.
    #[field(1)]
    pub name: String,
    /// Number of the port. Excludes name.
    #[field(2)]
    pub number: i32,
}

/// A certificate for some host names.
#[api]
pub struct IngressTLS {
    /// Host names the certificate covers. Default depends on the controller.
    #[field(1)]
    pub hosts: Vec<String>,
    /// Secret that holds the certificate and key.
    #[field(2)]
    pub secret_name: String,
}

/// Routes requests for one host.
#[api]
pub struct IngressRule {
    /// Host name, which may start with *. Empty matches all hosts.
    #[field(1)]
    pub host: String,
    /// Routing of requests that match the host.
    #[field(2, inline)]
    pub ingress_rule_value: IngressRuleValue,
}

/// How requests for a host are routed.
#[api]
pub struct IngressRuleValue {
    /// HTTP path routing.
    #[field(1)]
    pub http: Option<HTTPIngressRuleValue>,
}

/// HTTP path routing of a host.
#[api]
pub struct HTTPIngressRuleValue {
    /// Path rules, at least one.
    #[field(1, always, required)]
    pub paths: Vec<HTTPIngressPath>,
}

/// Sends requests for a path to a backend.
#[api]
pub struct HTTPIngressPath {
    /// URL path to match. Must start with / unless implementation specific.
    #[field(1)]
    pub path: String,
    /// How path matches: Exact, Prefix or ImplementationSpecific. Required.
    #[field(3, always, required, go = "v1.PathType", values = path_type::ALL)]
    pub path_type: Option<String>,
    /// Where matching requests go.
    #[field(2, always, required)]
    pub backend: IngressBackend,
}

/// The observed state of an ingress.
#[api]
pub struct IngressStatus {
    /// State of the load balancer.
    #[field(1)]
    pub load_balancer: IngressLoadBalancerStatus,
}

/// The state of an ingress load balancer.
#[api]
pub struct IngressLoadBalancerStatus {
    /// Entry points of the load balancer.
    #[field(1)]
    pub ingress: Vec<IngressLoadBalancerIngress>,
}

/// One entry point of an ingress load balancer.
#[api]
pub struct IngressLoadBalancerIngress {
    /// IP address of the entry point.
    #[field(1)]
    pub ip: String,
    /// Host name of the entry point.
    #[field(2)]
    pub hostname: String,
    /// Ports the entry point offers.
    #[field(4)]
    pub ports: Vec<IngressPortStatus>,
}

/// The state of one entry port.
#[api]
pub struct IngressPortStatus {
    /// Port number.
    #[field(1, always, required)]
    pub port: i32,
    /// Transport protocol: TCP, UDP or SCTP.
    #[field(2, always, required, go = "v1.Protocol", values = protocol::ALL)]
    pub protocol: String,
    /// Problem with the port, as a camel case word.
    #[field(3)]
    pub error: Option<String>,
}
