//! What requests policies and their bindings are about.

use api_machinery::api;
use api_machinery::meta::LabelSelector;

use super::RuleWithOperations;
use super::constants::match_policy_type;

/// Matches requests by what is done to which resources, with what labels.
#[api(atomic)]
pub struct MatchResources {
    /// Namespaces whose objects match, by their labels. Objects without a namespace always match.
    #[field(1, fill = "{}")]
    pub namespace_selector: Option<LabelSelector>,
    /// Objects that match, by the labels of the new or of the old one.
    #[field(2, fill = "{}")]
    pub object_selector: Option<LabelSelector>,
    /// What requests match; any rule will do. In a binding none stands for all that the policy matches.
    #[field(3, atomic)]
    pub resource_rules: Vec<NamedRuleWithOperations>,
    /// What requests do not match, whatever the rules say.
    #[field(4, atomic)]
    pub exclude_resource_rules: Vec<NamedRuleWithOperations>,
    /// Whether rules match the resource of the request only (Exact), or also what is the same in another group or version
    /// (Equivalent, the default).
    #[field(7, go = "v1.MatchPolicyType", values = match_policy_type::ALL, fill = "\"Equivalent\"")]
    pub match_policy: Option<String>,
}

/// A rule that may be about some objects only, by their names.
#[api(atomic)]
pub struct NamedRuleWithOperations {
    /// Names of the objects; none for all.
    #[field(1, atomic)]
    pub resource_names: Vec<String>,
    /// What is done to which resources.
    #[field(2, inline)]
    pub rule: RuleWithOperations,
}
