//! SelfSubjectReview of authentication.k8s.io/v1: its names, and its rules.

use api_types::authentication_v1::SelfSubjectReview;

use crate::info::ResourceInfo;
use crate::rules::TypedRules;

static INFO: ResourceInfo<'static> = ResourceInfo::review::<SelfSubjectReview>();

/// The rules of the kind.
pub(crate) struct SelfSubjectReviewRules;

impl TypedRules for SelfSubjectReviewRules {
    type Object = SelfSubjectReview;
    const INFO: &'static ResourceInfo<'static> = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
