//! LocalSubjectAccessReview of authorization.k8s.io/v1: its names, and its rules.

use api_types::authorization_v1::LocalSubjectAccessReview;

use crate::info::ResourceInfo;
use crate::rules::TypedRules;

static INFO: ResourceInfo<'static> = ResourceInfo::review::<LocalSubjectAccessReview>();

/// The rules of the kind.
pub(crate) struct LocalSubjectAccessReviewRules;

impl TypedRules for LocalSubjectAccessReviewRules {
    type Object = LocalSubjectAccessReview;
    const INFO: &'static ResourceInfo<'static> = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
