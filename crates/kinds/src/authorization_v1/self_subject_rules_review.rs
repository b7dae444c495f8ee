//! SelfSubjectRulesReview of authorization.k8s.io/v1: its names, and its rules.

use api_types::authorization_v1::SelfSubjectRulesReview;

use crate::info::ResourceInfo;
use crate::rules::TypedRules;

static INFO: ResourceInfo<'static> = ResourceInfo::review::<SelfSubjectRulesReview>();

/// The rules of the kind.
pub(crate) struct SelfSubjectRulesReviewRules;

impl TypedRules for SelfSubjectRulesReviewRules {
    type Object = SelfSubjectRulesReview;
    const INFO: &'static ResourceInfo<'static> = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
