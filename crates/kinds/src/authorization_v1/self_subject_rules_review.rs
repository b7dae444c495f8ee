//! SelfSubjectRulesReview of authorization.k8s.io/v1: its names, and its rules.

use api_types::authorization_v1::SelfSubjectRulesReview;

use crate::info::ResourceInfo;
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "authorization.k8s.io",
    version: "v1",
    kind: "SelfSubjectRulesReview",
    resource: "selfsubjectrulesreviews",
    singular: "selfsubjectrulesreview",
    short_names: &[],
    categories: &[],
    namespaced: false,
    verbs: &["create"],
    storage: None,
    create_on_update: false,
    unconditional_update: false,
    field_selectors: &[],
    columns: &[],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct SelfSubjectRulesReviewRules;

impl TypedRules for SelfSubjectRulesReviewRules {
    type Object = SelfSubjectRulesReview;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
