//! ResourceQuota and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::ResourceList;
use super::constants::{resource_quota_scope, scope_selector_operator};

/// Limits on the total resource use of a namespace.
#[api(kind = "ResourceQuota", resource = "resourcequotas", namespaced)]
pub struct ResourceQuota {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The wanted quota.
    #[field(2)]
    pub spec: ResourceQuotaSpec,
    /// Enforced limits and current use.
    #[field(3)]
    pub status: ResourceQuotaStatus,
}

/// Describes the hard limits of a quota.
#[api]
pub struct ResourceQuotaSpec {
    /// Hard limit for each named resource.
    #[field(1, go = "v1.ResourceList")]
    pub hard: ResourceList,
    /// Scopes that an object must all match to be counted.
    #[field(2, go = "[]v1.ResourceQuotaScope", values = resource_quota_scope::ALL)]
    pub scopes: Vec<String>,
    /// Scope expressions that an object must all match to be counted.
    #[field(3)]
    pub scope_selector: Option<ScopeSelector>,
}

/// Scope requirements that must all hold.
#[api(atomic)]
pub struct ScopeSelector {
    /// Requirements on the scope of objects.
    #[field(1)]
    pub match_expressions: Vec<ScopedResourceSelectorRequirement>,
}

/// Compares one scope with values.
#[api]
pub struct ScopedResourceSelectorRequirement {
    /// Scope that is compared, for example PriorityClass.
    #[field(1, always, required, go = "v1.ResourceQuotaScope", values = resource_quota_scope::ALL)]
    pub scope_name: String,
    /// Comparison: In, NotIn, Exists or DoesNotExist.
    #[field(2, always, required, go = "v1.ScopeSelectorOperator", values = scope_selector_operator::ALL)]
    pub operator: String,
    /// Values to compare; empty for Exists and DoesNotExist.
    #[field(3)]
    pub values: Vec<String>,
}

/// Enforced limits and observed use of a quota.
#[api]
pub struct ResourceQuotaStatus {
    /// Hard limits that are enforced.
    #[field(1, go = "v1.ResourceList")]
    pub hard: ResourceList,
    /// Total use observed in the namespace.
    #[field(2, go = "v1.ResourceList")]
    pub used: ResourceList,
}
