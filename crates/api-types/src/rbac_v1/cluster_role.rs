//! ClusterRole and what it is made of.

use api_machinery::api;
use api_machinery::meta::{LabelSelector, ObjectMeta};

use super::PolicyRule;

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

/// Selects cluster roles to combine into one.
#[api]
pub struct AggregationRule {
    /// Label selectors, any of which picks a cluster role to include.
    #[field(1)]
    pub cluster_role_selectors: Vec<LabelSelector>,
}
