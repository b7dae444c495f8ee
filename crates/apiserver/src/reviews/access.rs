//! `SubjectAccessReview`, its namespaced form, and that of the caller.

use std::sync::Arc;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use api_types::authorization_v1::{
    LocalSubjectAccessReview, SelfSubjectAccessReview, SubjectAccessReview, SubjectAccessReviewSpec,
};
use async_trait::async_trait;
use component_base::serving::Response;
use http::StatusCode;

use super::evaluate::evaluate;
use super::validate;
use super::virtual_write::{Passing, expect_post};
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::respond;
use crate::routes::Endpoint;

/// May they, anywhere?
pub(super) struct SubjectAccessReviews;
/// May they, in this namespace?
pub(super) struct LocalSubjectAccessReviews;
/// May I?
pub(super) struct SelfSubjectAccessReviews;

/// The user of a review is taken literally: no group is added.
fn user_of(spec: &SubjectAccessReviewSpec) -> Arc<UserInfo> {
    Arc::new(UserInfo {
        username: spec.user.clone(),
        uid: spec.uid.clone(),
        groups: spec.groups.clone(),
        extra: spec.extra.clone(),
    })
}

#[async_trait]
impl Endpoint for SubjectAccessReviews {
    async fn serve(&self, cx: &Arc<ApiCx>, mut request: Request<Authorized>) -> Result<Response, ApiError> {
        let options = expect_post(&request)?;
        let mut review: SubjectAccessReview = request.decode().await?;
        let passing = Passing::begin(cx, &request, &options, &mut review).await?;
        let (spec, mut errors) = (&review.spec, ErrorList::default());
        let (resource, path) = (spec.resource_attributes.as_ref(), spec.non_resource_attributes.as_ref());
        validate::attributes(Some((&spec.user, &spec.groups)), resource, path, &mut errors);
        validate::metadata(&review.metadata, false, &mut errors);
        validate::refuse(&errors)?;
        passing.end(&review).await?;
        review.status = evaluate(&**cx.authorizer(), user_of(spec), resource, path).await;
        respond::object(request.preferences(), StatusCode::CREATED, &review)
    }
}

#[async_trait]
impl Endpoint for LocalSubjectAccessReviews {
    async fn serve(&self, cx: &Arc<ApiCx>, mut request: Request<Authorized>) -> Result<Response, ApiError> {
        let options = expect_post(&request)?;
        let namespace = request.info().namespace.clone();
        if namespace.is_empty() {
            return Err(ApiError::bad_request("namespace is required on this type: "));
        }
        let mut review: LocalSubjectAccessReview = request.decode().await?;
        if review.metadata.namespace.is_empty() {
            review.metadata.namespace.clone_from(&namespace);
        }
        if review.metadata.namespace != namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let passing = Passing::begin(cx, &request, &options, &mut review).await?;
        let spec = &review.spec;
        check_local(&review)?;
        passing.end(&review).await?;
        review.status = evaluate(&**cx.authorizer(), user_of(spec), spec.resource_attributes.as_ref(), None).await;
        respond::object(request.preferences(), StatusCode::CREATED, &review)
    }
}

fn check_local(review: &LocalSubjectAccessReview) -> Result<(), ApiError> {
    let (spec, mut errors) = (&review.spec, ErrorList::default());
    let (resource, path) = (spec.resource_attributes.as_ref(), spec.non_resource_attributes.as_ref());
    validate::attributes(Some((&spec.user, &spec.groups)), resource, path, &mut errors);
    validate::metadata(&review.metadata, true, &mut errors);
    let at = Path::new("spec");
    if let Some(resource) = &spec.resource_attributes
        && resource.namespace != review.metadata.namespace
    {
        let path = at.child("resourceAttributes").child("namespace");
        errors.push(path.invalid(&resource.namespace, "must match metadata.namespace"));
    }
    if let Some(path) = &spec.non_resource_attributes {
        let value = validate::shown(path);
        errors.push(at.child("nonResourceAttributes").invalid(value, "disallowed on this kind of request"));
    }
    validate::refuse(&errors)
}

#[async_trait]
impl Endpoint for SelfSubjectAccessReviews {
    async fn serve(&self, cx: &Arc<ApiCx>, mut request: Request<Authorized>) -> Result<Response, ApiError> {
        let options = expect_post(&request)?;
        let mut review: SelfSubjectAccessReview = request.decode().await?;
        let passing = Passing::begin(cx, &request, &options, &mut review).await?;
        let (spec, mut errors) = (&review.spec, ErrorList::default());
        let (resource, path) = (spec.resource_attributes.as_ref(), spec.non_resource_attributes.as_ref());
        validate::attributes(None, resource, path, &mut errors);
        validate::metadata(&review.metadata, false, &mut errors);
        validate::refuse(&errors)?;
        passing.end(&review).await?;
        review.status = evaluate(&**cx.authorizer(), request.user().clone(), resource, path).await;
        respond::object(request.preferences(), StatusCode::CREATED, &review)
    }
}
