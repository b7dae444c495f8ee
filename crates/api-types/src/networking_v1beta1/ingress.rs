//! Ingress with services by name and port in the backend. It had the same form in extensions/v1beta1.

use api_machinery::api;
use api_machinery::intstr::IntOrString;
use api_machinery::meta::ObjectMeta;

use crate::core_v1::TypedLocalObjectReference;
use crate::networking_v1::{IngressStatus, IngressTLS};

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
    /// Backend for requests that match no rule.
    #[field(1)]
    pub backend: Option<IngressBackend>,
    /// TLS certificates for host names.
    #[field(2)]
    pub tls: Vec<IngressTLS>,
    /// Host rules.
    #[field(3)]
    pub rules: Vec<IngressRule>,
}

/// Where requests go: a port of a service, or another object.
#[api]
pub struct IngressBackend {
    /// Name of the service.
    #[field(1)]
    pub service_name: String,
    /// Its port.
    #[field(2, omitzero)]
    pub service_port: IntOrString,
    /// The other object.
    #[field(3)]
    pub resource: Option<TypedLocalObjectReference>,
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
    /// Path rules.
    #[field(1, always)]
    pub paths: Vec<HTTPIngressPath>,
}

/// Sends requests for a path to a backend.
#[api]
pub struct HTTPIngressPath {
    /// URL path to match.
    #[field(1)]
    pub path: String,
    /// How path matches: as the class of the ingress has it where it is absent.
    #[field(3)]
    pub path_type: Option<String>,
    /// Where matching requests go.
    #[field(2, always)]
    pub backend: IngressBackend,
}
