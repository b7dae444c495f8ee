//! Policy and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// How much of which requests is told; the first rule that fits decides.
#[api(kind = "Policy")]
pub struct Policy {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Rules in order. A request that none fits is not audited.
    #[field(2, always, atomic)]
    pub rules: Vec<PolicyRule>,
    /// Stages of which nothing is told, whatever the rule.
    #[field(3, atomic, go = "audit.Stage")]
    pub omit_stages: Vec<String>,
    /// Whether objects are told without their record of managers, where a rule says nothing.
    #[field(4)]
    pub omit_managed_fields: bool,
}

/// How much is told of the requests that fit. A field that is empty fits every request.
#[api]
pub struct PolicyRule {
    /// How much: None, Metadata, Request or RequestResponse.
    #[field(1, always, go = "audit.Level")]
    pub level: String,
    /// Who sends the request.
    #[field(2, atomic)]
    pub users: Vec<String>,
    /// Groups of whoever does, one of them.
    #[field(3, atomic)]
    pub user_groups: Vec<String>,
    /// Verbs.
    #[field(4, atomic)]
    pub verbs: Vec<String>,
    /// Resources. With them the rule is about no mere paths.
    #[field(5, atomic)]
    pub resources: Vec<GroupResources>,
    /// Namespaces; the empty text is cluster scope. With them the rule is about no mere paths.
    #[field(6, atomic)]
    pub namespaces: Vec<String>,
    /// Paths, which may end in a star. With them the rule is about no resources.
    #[field(7, name = "nonResourceURLs", atomic)]
    pub non_resource_urls: Vec<String>,
    /// Stages of which nothing is told, beside those of the policy.
    #[field(8, atomic, go = "audit.Stage")]
    pub omit_stages: Vec<String>,
    /// Whether objects are told without their record of managers; without a value, what the policy says.
    #[field(9)]
    pub omit_managed_fields: Option<bool>,
}

/// Resources of one group.
#[api]
pub struct GroupResources {
    /// Group; empty for core.
    #[field(1)]
    pub group: String,
    /// Resources: `pods`, `pods/log`, `*`, `pods/*`, `*/scale`. Without any, all of the group.
    #[field(2, atomic)]
    pub resources: Vec<String>,
    /// Names of objects. Without any, all of them.
    #[field(3, atomic)]
    pub resource_names: Vec<String>,
}
