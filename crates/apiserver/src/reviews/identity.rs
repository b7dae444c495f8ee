//! `SelfSubjectReview`: who I am to the server.

use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use api_machinery::status::ApiError;
use api_types::authentication_v1::{SelfSubjectReview, SelfSubjectReviewStatus, UserInfo};
use async_trait::async_trait;
use component_base::serving::Response;
use http::StatusCode;

use super::virtual_write::{Passing, expect_post};
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::respond;
use crate::routes::Endpoint;

/// Who am I?
pub(super) struct SelfSubjectReviews;

#[async_trait]
impl Endpoint for SelfSubjectReviews {
    async fn serve(&self, cx: &Arc<ApiCx>, mut request: Request<Authorized>) -> Result<Response, ApiError> {
        let options = expect_post(&request)?;
        let mut review: SelfSubjectReview = request.decode().await?;
        Passing::begin(cx, &request, &options, &mut review).await?.end(&review).await?;
        let answer = SelfSubjectReview {
            metadata: ObjectMeta { creation_timestamp: cx.clock().wall().into(), ..ObjectMeta::default() },
            status: SelfSubjectReviewStatus { user_info: UserInfo::clone(request.user()) },
        };
        respond::object(request.preferences(), StatusCode::CREATED, &answer)
    }
}
