//! Asking the API server about tokens and about what users may do.

use std::collections::BTreeMap;
use std::time::Duration;

use api_machinery::object::{Kind, Object};
use api_types::authentication_v1::{TokenReview, UserInfo};
use api_types::authorization_v1::{ResourceAttributes, SubjectAccessReview};
use async_trait::async_trait;
use authn::{AuthnError, Identity, TokenAuthenticator};
use base::Backoff;
use client::{ApiObject, Client, ClientError};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::access::Authorizer;

/// The standard back-off of webhooks.
const TRIES: usize = 5;
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_LAST: Duration = Duration::from_secs(5);
/// Answers remembered.
const MAX_ANSWERS: usize = 8192;

/// Creates a review, and again where that failed in a way that may pass.
async fn ask<T: Kind + Object + ApiObject>(client: &Client, review: &T) -> Result<T, ClientError> {
    let mut pause = Backoff::new(RETRY_FIRST, 1.5, RETRY_LAST, 0.2);
    let api = client.all::<T>();
    for _ in 1..TRIES {
        match api.create(review).await {
            Err(error) if may_pass(&error) => tokio::time::sleep(pause.step(client.rng())).await,
            outcome => return outcome,
        }
    }
    api.create(review).await
}

fn may_pass(error: &ClientError) -> bool {
    error.is_timeout() || error.is_too_many_requests() || error.api().is_none_or(|api| api.code >= 500)
}

/// Bearer tokens, by TokenReview. Wrap it in a cache.
pub(crate) struct ReviewTokens(pub(crate) Client);

#[async_trait]
impl TokenAuthenticator for ReviewTokens {
    async fn authenticate_token(&self, token: &str, audiences: &[String]) -> Result<Option<Identity>, AuthnError> {
        let mut review = TokenReview::default();
        token.clone_into(&mut review.spec.token);
        review.spec.audiences = audiences.to_vec();
        let answer = ask(&self.0, &review).await.map_err(|error| AuthnError::Lookup(error.to_string()))?;
        let status = answer.status;
        if !status.authenticated {
            return match status.error.as_str() {
                "" => Ok(None),
                error => Err(AuthnError::Refused(error.to_owned())),
            };
        }
        Ok(Some(Identity { audiences: status.audiences, ..Identity::of(status.user) }))
    }
}

/// Users by SubjectAccessReview, with a memory for both answers.
pub(crate) struct ReviewAuthorizer {
    client: Client,
    node: String,
    allowed_ttl: Duration,
    denied_ttl: Duration,
    answers: Mutex<BTreeMap<String, (Instant, bool)>>,
}

impl ReviewAuthorizer {
    pub(crate) fn new(client: &Client, node: &str, allowed_ttl: Duration, denied_ttl: Duration) -> Self {
        Self { client: client.clone(), node: node.to_owned(), allowed_ttl, denied_ttl, answers: Mutex::default() }
    }

    fn remembered(&self, key: &str) -> Option<bool> {
        let answers = self.answers.lock();
        let (until, allowed) = answers.get(key)?;
        (Instant::now() < *until).then_some(*allowed)
    }

    fn remember(&self, key: String, allowed: bool) {
        let now = Instant::now();
        let ttl = if allowed { self.allowed_ttl } else { self.denied_ttl };
        let mut answers = self.answers.lock();
        if answers.len() >= MAX_ANSWERS {
            answers.retain(|_, (until, _)| now < *until);
        }
        if answers.len() < MAX_ANSWERS {
            answers.insert(key, (now + ttl, allowed));
        }
    }

    fn review(&self, user: &UserInfo, verb: &str, subresource: &str) -> SubjectAccessReview {
        let mut review = SubjectAccessReview::default();
        review.spec.user.clone_from(&user.username);
        review.spec.uid.clone_from(&user.uid);
        review.spec.groups.clone_from(&user.groups);
        review.spec.extra.clone_from(&user.extra);
        review.spec.resource_attributes = Some(ResourceAttributes {
            verb: verb.to_owned(),
            version: "v1".to_owned(),
            resource: "nodes".to_owned(),
            subresource: subresource.to_owned(),
            name: self.node.clone(),
            ..ResourceAttributes::default()
        });
        review
    }
}

#[async_trait]
impl Authorizer for ReviewAuthorizer {
    async fn allows(&self, user: &UserInfo, verb: &str, subresource: &str, _: &str) -> Result<bool, ClientError> {
        let review = self.review(user, verb, subresource);
        let key = api_machinery::json::encode(&review.spec);
        if let Some(allowed) = self.remembered(&key) {
            return Ok(allowed);
        }
        let allowed = ask(&self.client, &review).await?.status.allowed;
        self.remember(key, allowed);
        Ok(allowed)
    }
}
