//! `SelfSubjectRulesReview`: everything that I may do in a namespace, as far as it can be listed.

use std::sync::Arc;

use api_machinery::status::ApiError;
use api_types::authorization_v1::{NonResourceRule, ResourceRule, SelfSubjectRulesReview, SubjectRulesReviewStatus};
use async_trait::async_trait;
use authz::RuleSet;
use component_base::serving::Response;
use http::StatusCode;

use super::virtual_write::{Passing, expect_post};
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::respond;
use crate::routes::Endpoint;

/// What may I do?
pub(super) struct SelfSubjectRulesReviews;

#[async_trait]
impl Endpoint for SelfSubjectRulesReviews {
    async fn serve(&self, cx: &Arc<ApiCx>, mut request: Request<Authorized>) -> Result<Response, ApiError> {
        let options = expect_post(&request)?;
        let mut review: SelfSubjectRulesReview = request.decode().await?;
        let passing = Passing::begin(cx, &request, &options, &mut review).await?;
        if review.spec.namespace.is_empty() {
            return Err(ApiError::bad_request("no namespace on request"));
        }
        passing.end(&review).await?;
        let set = cx.authorizer().rules_for(request.user(), &review.spec.namespace);
        let answer = SelfSubjectRulesReview { status: status(set), ..SelfSubjectRulesReview::default() };
        respond::object(request.preferences(), StatusCode::CREATED, &answer)
    }
}

/// Rules that name resources and rules that name paths are listed apart.
fn status(set: RuleSet) -> SubjectRulesReviewStatus {
    let mut status = SubjectRulesReviewStatus {
        incomplete: set.incomplete,
        evaluation_error: if set.errors.is_empty() { String::new() } else { authz::aggregate(set.errors) },
        ..SubjectRulesReviewStatus::default()
    };
    for rule in set.rules {
        if !rule.resources.is_empty() {
            status.resource_rules.push(ResourceRule {
                verbs: rule.verbs.clone(),
                api_groups: rule.api_groups,
                resources: rule.resources,
                resource_names: rule.resource_names,
            });
        }
        if !rule.non_resource_urls.is_empty() {
            let non_resource_urls = rule.non_resource_urls;
            status.non_resource_rules.push(NonResourceRule { verbs: rule.verbs, non_resource_urls });
        }
    }
    status
}
