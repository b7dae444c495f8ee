//! IngressClass and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// Ties ingresses to the controller that handles them.
#[api(kind = "IngressClass", resource = "ingressclasses")]
pub struct IngressClass {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Controller and its parameters.
    #[field(2)]
    pub spec: IngressClassSpec,
}

/// Controller of an ingress class.
#[api]
pub struct IngressClassSpec {
    /// Name of the controller, as domain/path. Immutable.
    #[field(1)]
    pub controller: String,
    /// Object with further settings for the controller.
    #[field(2)]
    pub parameters: Option<IngressClassParametersReference>,
}

/// Points to an object with controller settings.
#[api]
pub struct IngressClassParametersReference {
    /// API group of the object. Absent means core.
    #[field(1)]
    pub api_group: Option<String>,
    /// Kind of the object.
    #[field(2, always, required)]
    pub kind: String,
    /// Name of the object.
    #[field(3, always, required)]
    pub name: String,
    /// Scope of the object: Cluster (default) or Namespace.
    #[field(4, always)]
    pub scope: Option<String>,
    /// Namespace of the object. Needed for scope Namespace, else not allowed.
    #[field(5)]
    pub namespace: Option<String>,
}
