//! Role and ClusterRole, whose rules had a field more once.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use crate::rbac_v1::AggregationRule;

/// A set of permissions within one namespace.
#[api(kind = "Role", resource = "roles", namespaced)]
pub struct Role {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Permissions of the role.
    #[field(2, always)]
    pub rules: Vec<PolicyRule>,
}

/// A set of permissions usable in the whole cluster.
#[api(kind = "ClusterRole", resource = "clusterroles")]
pub struct ClusterRole {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Permissions of the role.
    #[field(2, always)]
    pub rules: Vec<PolicyRule>,
    /// Selects cluster roles whose rules a controller copies into this one.
    #[field(3)]
    pub aggregation_rule: Option<AggregationRule>,
}

/// Allows some verbs on some resources or URLs.
#[api]
pub struct PolicyRule {
    /// Allowed verbs.
    #[field(1, always)]
    pub verbs: Vec<String>,
    /// API groups of the resources.
    #[field(3)]
    pub api_groups: Vec<String>,
    /// Resources the rule covers.
    #[field(4)]
    pub resources: Vec<String>,
    /// Object names the rule is limited to.
    #[field(5)]
    pub resource_names: Vec<String>,
    /// URL paths the rule covers.
    #[field(6, name = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
}
