//! SelfSubjectAccessReview of authorization.k8s.io/v1: its names, and its rules.

use api_types::authorization_v1::SelfSubjectAccessReview;

use crate::info::ResourceInfo;
use crate::rules::TypedRules;

static INFO: ResourceInfo<'static> = ResourceInfo::review::<SelfSubjectAccessReview>();

/// The rules of the kind.
pub(crate) struct SelfSubjectAccessReviewRules;

impl TypedRules for SelfSubjectAccessReviewRules {
    type Object = SelfSubjectAccessReview;
    const INFO: &'static ResourceInfo<'static> = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
