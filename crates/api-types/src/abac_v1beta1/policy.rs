//! Policy: what some user or group may do.

use api_machinery::api;

/// One policy.
#[api(group = "abac.authorization.kubernetes.io", version = "v1beta1", kind = "Policy")]
pub struct Policy {
    /// What it says.
    #[field(0)]
    pub spec: PolicySpec,
}

/// What a policy says. An empty member means nothing, and `*` anything.
#[api]
pub struct PolicySpec {
    /// The user; with a group, both must fit.
    #[field(0)]
    pub user: String,
    /// The group.
    #[field(0)]
    pub group: String,
    /// Whether it allows to get, list and watch only.
    #[field(0)]
    pub readonly: bool,
    /// The API group.
    #[field(0)]
    pub api_group: String,
    /// The resource, by its plural name.
    #[field(0)]
    pub resource: String,
    /// The namespace.
    #[field(0)]
    pub namespace: String,
    /// A path, which may end in a star.
    #[field(0)]
    pub non_resource_path: String,
}
