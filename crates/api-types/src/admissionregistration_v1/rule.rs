//! What requests webhooks and policies are about.

use api_machinery::api;

use super::constants::{operation_type, scope_type};

/// Matches requests by what is done to which resources.
#[api]
pub struct RuleWithOperations {
    /// What is done: CREATE, UPDATE, DELETE, CONNECT or all of them with *, which stands alone.
    #[field(1, atomic, go = "[]v1.OperationType", values = operation_type::ALL)]
    pub operations: Vec<String>,
    /// The resources that it is done to.
    #[field(2, inline)]
    pub rule: Rule,
}

/// Matches resources.
#[api]
pub struct Rule {
    /// API groups that match. The value * matches all, and stands alone.
    #[field(1, atomic)]
    pub api_groups: Vec<String>,
    /// API versions that match. The value * matches all, and stands alone.
    #[field(2, atomic)]
    pub api_versions: Vec<String>,
    /// Resources that match: pods, pods/log, pods/* with all subresources, */scale, * without subresources, */* for all.
    #[field(3, atomic)]
    pub resources: Vec<String>,
    /// Whether only Namespaced or only Cluster resources match; * by default, which is both.
    #[field(4, go = "v1.ScopeType", values = scope_type::ALL, fill = "\"*\"")]
    pub scope: Option<String>,
}
