//! networking.k8s.io/v1beta1: what had another form there than it has in `networking_v1`. Nobody serves that any more; a
//! store may hold it.

mod ingress;

pub use ingress::{
    HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule, IngressRuleValue, IngressSpec,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.networking.v1beta1";
/// The API group.
pub const GROUP: &str = "networking.k8s.io";
/// The version.
pub const VERSION: &str = "v1beta1";
