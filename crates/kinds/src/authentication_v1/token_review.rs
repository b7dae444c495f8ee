//! TokenReview of authentication.k8s.io/v1: its names, and its rules.

use api_types::authentication_v1::TokenReview;

use crate::info::ResourceInfo;
use crate::rules::TypedRules;

static INFO: ResourceInfo<'static> = ResourceInfo::review::<TokenReview>();

/// The rules of the kind.
pub(crate) struct TokenReviewRules;

impl TypedRules for TokenReviewRules {
    type Object = TokenReview;
    const INFO: &'static ResourceInfo<'static> = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
