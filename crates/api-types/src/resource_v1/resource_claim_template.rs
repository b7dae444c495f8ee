//! ResourceClaimTemplate and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::resource_claim::ResourceClaimSpec;

/// Makes a claim for each pod that names it.
#[api(kind = "ResourceClaimTemplate", resource = "resourceclaimtemplates", namespaced)]
pub struct ResourceClaimTemplate {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What claims are made of. It never changes.
    #[field(2, always, required)]
    pub spec: ResourceClaimTemplateSpec,
}

/// What claims are made of.
#[api]
pub struct ResourceClaimTemplateSpec {
    /// Labels and annotations of claims.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Spec of claims.
    #[field(2, always, required)]
    pub spec: ResourceClaimSpec,
}
