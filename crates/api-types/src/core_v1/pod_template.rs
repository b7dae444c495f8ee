//! PodTemplate and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::PodSpec;

/// A stored template for creating pods.
#[api(kind = "PodTemplate", resource = "podtemplates", namespaced)]
pub struct PodTemplate {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The template of the pods.
    #[field(2)]
    pub template: PodTemplateSpec,
}

/// Template for the pods that a controller creates.
#[api]
pub struct PodTemplateSpec {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Specification of the pods to create.
    #[field(2)]
    pub spec: PodSpec,
}
