//! Somebody elsewhere who knows tokens, asked by a TokenReview.
//! Concept: <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#webhook-token-authentication>

use std::time::Duration;

use api_machinery::json;
use api_types::authentication_v1::{TokenReview, TokenReviewStatus};
use async_trait::async_trait;
use base::{Expiring, Rng, SharedClock};
use client::Webhook;
use parking_lot::Mutex;
use pki::KeyedDigest;

use crate::authenticator::{AuthnError, TokenAuthenticator};
use crate::identity::Identity;

const KIND: &str = "TokenReview";
/// Answers remembered. Tokens come from whoever likes to send some, so that there is a bound; what is not remembered is
/// asked again.
const MAX_ANSWERS: usize = 32_768;

/// The version that a webhook speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenReviewVersion {
    /// authentication.k8s.io/v1.
    V1,
    /// authentication.k8s.io/v1beta1, which has the same members.
    V1beta1,
}

impl TokenReviewVersion {
    /// The version of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1beta1),
            _ => None,
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "authentication.k8s.io/v1",
            Self::V1beta1 => "authentication.k8s.io/v1beta1",
        }
    }
}

/// What was answered, errors of the review itself aside.
type Answer = Result<Option<Identity>, AuthnError>;

/// The authenticator. What a webhook has answered is remembered, good or bad; failures to ask are not.
pub struct WebhookTokens {
    webhook: Webhook,
    version: TokenReviewVersion,
    api_audiences: Vec<String>,
    answers: Mutex<Expiring<[u8; 32], Answer>>,
    digest: KeyedDigest,
    ttl: Duration,
    clock: SharedClock,
}

impl WebhookTokens {
    /// Asks `webhook`; `ttl` is how long answers are remembered, zero for not at all. Answers that name no audiences are
    /// good for `api_audiences`.
    #[must_use]
    pub fn new(
        webhook: Webhook,
        version: TokenReviewVersion,
        api_audiences: Vec<String>,
        ttl: Duration,
        clock: SharedClock,
        rng: &Rng,
    ) -> Self {
        let (answers, digest) = (Mutex::new(Expiring::new(MAX_ANSWERS)), KeyedDigest::new(rng));
        Self { webhook, version, api_audiences, answers, digest, ttl, clock }
    }

    async fn ask(&self, token: &str, audiences: &[String]) -> Result<TokenReviewStatus, AuthnError> {
        let mut review = TokenReview::default();
        token.clone_into(&mut review.spec.token);
        review.spec.audiences = audiences.to_vec();
        let question = json::encode_typed(KIND, self.version.api_version(), &review);
        let failed = |why: String| AuthnError::Lookup(why);
        let answered = self.webhook.ask(question.into(), |_, _| {}).await;
        let body = answered.map_err(|error| failed(error.to_string()))?;
        let mut review = TokenReview::default();
        let decoded = json::decode(&body, &mut review).map_err(|error| failed(error.to_string()))?;
        let own = (decoded.type_meta.api_version.as_str(), decoded.type_meta.kind.as_str());
        if own != (self.version.api_version(), KIND) {
            let wanted = self.version.api_version();
            return Err(failed(format!("expected {KIND} of {wanted}, got {:?} of {:?}", own.1, own.0)));
        }
        Ok(review.status)
    }

    /// What an answer means to whoever asked for these audiences.
    fn meaning(&self, status: TokenReviewStatus, audiences: &[String]) -> Answer {
        let for_audiences = if status.audiences.is_empty() { &self.api_audiences } else { &status.audiences };
        let granted: Vec<String> = for_audiences.iter().filter(|own| audiences.contains(own)).cloned().collect();
        if !audiences.is_empty() && granted.is_empty() {
            return Ok(None);
        }
        if !status.authenticated {
            return if status.error.is_empty() { Ok(None) } else { Err(AuthnError::Refused(status.error)) };
        }
        Ok(Some(Identity { audiences: granted, ..Identity::of(status.user) }))
    }
}

#[async_trait]
impl TokenAuthenticator for WebhookTokens {
    async fn authenticate_token(&self, token: &str, audiences: &[String]) -> Answer {
        // Who asks for none means the API server's own, as upstream's requests do.
        let audiences = if audiences.is_empty() { &self.api_audiences } else { audiences };
        let key = self.digest.of(std::iter::once(token.as_bytes()).chain(audiences.iter().map(String::as_bytes)));
        if let Some(answer) = self.answers.lock().get(&key, self.clock.monotonic()) {
            return answer;
        }
        let answer = self.meaning(self.ask(token, audiences).await?, audiences);
        if !self.ttl.is_zero() {
            let now = self.clock.monotonic();
            self.answers.lock().insert(key, answer.clone(), now + self.ttl, now);
        }
        answer
    }
}
