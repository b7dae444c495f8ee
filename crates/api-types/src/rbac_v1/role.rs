//! Role and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

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

/// Allows some verbs on some resources or URLs.
#[api]
pub struct PolicyRule {
    /// Allowed verbs. The value * allows all.
    #[field(1, always, required)]
    pub verbs: Vec<String>,
    /// API groups of the resources. Empty text is core, * is all.
    #[field(2)]
    pub api_groups: Vec<String>,
    /// Resources the rule covers, with subresources as pods/log. The value * covers all.
    #[field(3)]
    pub resources: Vec<String>,
    /// Object names the rule is limited to. Empty allows every name.
    #[field(4)]
    pub resource_names: Vec<String>,
    /// URL paths the rule covers, with * allowed at the end. Cluster roles only.
    #[field(5, name = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
}
