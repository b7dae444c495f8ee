//! SelfSubjectRulesReview and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

/// Lists what the caller may do in one namespace.
#[api(kind = "SelfSubjectRulesReview", resource = "selfsubjectrulesreviews")]
pub struct SelfSubjectRulesReview {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The namespace to look at.
    #[field(2, always, required)]
    pub spec: SelfSubjectRulesReviewSpec,
    /// Result, filled in by the server.
    #[field(3)]
    pub status: SubjectRulesReviewStatus,
}

/// What to list rules for.
#[api]
pub struct SelfSubjectRulesReviewSpec {
    /// Namespace to list rules for. Required.
    #[field(1)]
    pub namespace: String,
}

/// The rules found for the caller.
#[api]
pub struct SubjectRulesReviewStatus {
    /// Allowed actions on resources, in no particular order.
    #[field(1, always, required)]
    pub resource_rules: Vec<ResourceRule>,
    /// Allowed actions on URL paths, in no particular order.
    #[field(2, always, required)]
    pub non_resource_rules: Vec<NonResourceRule>,
    /// Whether rules may be missing from the lists.
    #[field(3, always, required)]
    pub incomplete: bool,
    /// Problem met while collecting rules.
    #[field(4)]
    pub evaluation_error: String,
}

/// Allowed actions on resources.
#[api]
pub struct ResourceRule {
    /// Allowed verbs. The value * means all.
    #[field(1, always, required)]
    pub verbs: Vec<String>,
    /// API groups of the resources. The value * means all.
    #[field(2)]
    pub api_groups: Vec<String>,
    /// Resources covered. The value * means all.
    #[field(3)]
    pub resources: Vec<String>,
    /// Object names covered. Empty means all.
    #[field(4)]
    pub resource_names: Vec<String>,
}

/// Allowed actions on URL paths.
#[api]
pub struct NonResourceRule {
    /// Allowed HTTP verbs in lower case. The value * means all.
    #[field(1, always, required)]
    pub verbs: Vec<String>,
    /// URL paths covered, with * allowed at the end.
    #[field(2, name = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
}
