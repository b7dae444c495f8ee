//! `TokenReview`: whose token this is.

use std::sync::Arc;

use api_machinery::status::ApiError;
use api_types::authentication_v1::{TokenReview, TokenReviewStatus};
use async_trait::async_trait;
use authn::AuthnError;
use component_base::serving::Response;
use http::StatusCode;

use super::virtual_write::{Passing, expect_post};
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::respond;
use crate::routes::Endpoint;

/// Whose token is this?
pub(super) struct TokenReviews;

#[async_trait]
impl Endpoint for TokenReviews {
    async fn serve(&self, cx: &Arc<ApiCx>, mut request: Request<Authorized>) -> Result<Response, ApiError> {
        let options = expect_post(&request)?;
        let mut review: TokenReview = request.decode().await?;
        let passing = Passing::begin(cx, &request, &options, &mut review).await?;
        if !request.info().namespace.is_empty() {
            let namespace = &request.info().namespace;
            return Err(ApiError::bad_request(format!("namespace is not allowed on this type: {namespace}")));
        }
        if review.spec.token.is_empty() {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        passing.end(&review).await?;
        review.status = evaluate(cx, &review).await?;
        respond::object(request.preferences(), StatusCode::CREATED, &review)
    }
}

/// Asks every source of tokens.
async fn evaluate(cx: &ApiCx, review: &TokenReview) -> Result<TokenReviewStatus, ApiError> {
    let mut audiences = review.spec.audiences.clone();
    if audiences.is_empty() {
        audiences.clone_from(&cx.authentication().api_audiences);
    }
    // Upstream asks for the server's own token first, whose refusal is joined to that of the others.
    let refused = |why: AuthnError| {
        let error = AuthnError::join(vec![AuthnError::InvalidBearerToken, why]);
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        TokenReviewStatus { error, ..TokenReviewStatus::default() }
    };
    let identity = match cx.authentication().tokens.authenticate_token(&review.spec.token, &audiences).await {
        Ok(Some(identity)) => identity,
        Ok(None) => return Ok(refused(AuthnError::InvalidBearerToken)),
        Err(error) => return Ok(refused(error)),
    };
    let vouched: Vec<String> =
        identity.audiences.iter().filter(|audience| audiences.contains(audience)).cloned().collect();
    if !identity.audiences.is_empty() && vouched.is_empty() && !audiences.is_empty() {
        return Err(ApiError::internal("error validating audiences"));
    }
    let mut user = Arc::unwrap_or_clone(identity.user);
    if !user.groups.iter().any(|group| group == authn::AUTHENTICATED) {
        user.groups.push(authn::AUTHENTICATED.to_owned());
    }
    Ok(TokenReviewStatus { authenticated: true, user, audiences: vouched, error: String::new() })
}
