//! Somebody elsewhere who decides, asked by a SubjectAccessReview.
//! Concept: <https://kubernetes.io/docs/reference/access-authn-authz/webhook/>

mod cache;
mod conditions;
mod metrics;
mod review;

use std::sync::Arc;

use api_machinery::json;
use api_types::authentication_v1::UserInfo;
use api_types::authorization_v1::{SubjectAccessReviewSpec, SubjectAccessReviewStatus};
use async_trait::async_trait;
use base::SharedClock;
use client::Webhook;

pub use cache::Ttls;
pub use conditions::{Condition, MAX_CONDITIONS, compile};
pub use metrics::WebhookMetrics;
pub use review::ReviewVersion;

use crate::{Attributes, Authorizer, Decision, Outcome, RuleSet};
use cache::Cache;
use conditions::Matched;

const TYPE: &str = "Webhook";

/// What a question that fails comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Others decide.
    NoOpinion,
    /// The request may not pass.
    Deny,
}

/// How a webhook is asked.
pub struct Settings {
    /// Its name in metrics.
    pub name: String,
    /// The version that it speaks.
    pub version: ReviewVersion,
    /// How long answers are remembered.
    pub ttls: Ttls,
    /// What a question that fails comes to.
    pub failure_policy: FailurePolicy,
    /// Which requests it is asked about.
    pub conditions: Vec<Arc<dyn Condition>>,
}

/// The authorizer.
pub struct WebhookAuthorizer {
    webhook: Webhook,
    settings: Settings,
    cache: Cache,
    metrics: WebhookMetrics,
    clock: SharedClock,
}

impl WebhookAuthorizer {
    /// An authorizer that asks `webhook`.
    #[must_use]
    pub fn new(webhook: Webhook, settings: Settings, metrics: WebhookMetrics, clock: SharedClock) -> Self {
        let cache = Cache::new(settings.ttls, Arc::clone(&clock));
        Self { webhook, settings, cache, metrics, clock }
    }

    fn failed(&self, error: String) -> Outcome {
        let decision = match self.settings.failure_policy {
            FailurePolicy::NoOpinion => Decision::NoOpinion,
            FailurePolicy::Deny => Decision::Deny,
        };
        Outcome { decision, reason: String::new(), error: Some(error) }
    }

    /// Asks, or remembers.
    async fn review(
        &self,
        spec: SubjectAccessReviewSpec,
        attributes: &Attributes,
    ) -> Result<SubjectAccessReviewStatus, String> {
        let key = cache::may_be_remembered(attributes).then(|| json::encode(&spec));
        if let Some(status) = key.as_ref().and_then(|key| self.cache.get(key)) {
            return Ok(status);
        }
        let (name, version) = (&self.settings.name, self.settings.version);
        let question = review::question(spec, version);
        let tried = |outcome: Result<(), &client::ClientError>, took| {
            self.metrics.asked(name, metrics::result(outcome), took);
        };
        let answered = match self.webhook.ask(question, tried).await {
            Ok(body) => review::answer(&body, version).map_err(|error| (error, "error")),
            Err(error) => Err((error.to_string(), metrics::result(Err(&error)))),
        };
        match answered {
            Ok(status) => {
                key.into_iter().for_each(|key| self.cache.insert(key, &status));
                Ok(status)
            }
            Err((error, result)) => {
                if self.settings.failure_policy == FailurePolicy::NoOpinion {
                    self.metrics.failed_open(name, result);
                }
                tracing::error!(name, error, "Failed to make webhook authorizer request");
                Err(error)
            }
        }
    }
}

#[async_trait]
impl Authorizer for WebhookAuthorizer {
    async fn authorize(&self, attributes: &Attributes) -> Outcome {
        let spec = review::spec(attributes);
        let labels = [self.settings.name.as_str(), TYPE];
        let begun = self.clock.monotonic();
        let matched = conditions::evaluate(&self.settings.conditions, &spec);
        if !self.settings.conditions.is_empty() {
            self.metrics.condition_time.with(&labels).observe((self.clock.monotonic() - begun).as_secs_f64());
        }
        match matched {
            Matched::Yes => {}
            Matched::No => {
                self.metrics.exclusions.with(&labels).inc();
                return Outcome::no_opinion("");
            }
            Matched::Failed(error) => {
                self.metrics.condition_errors.with(&labels).inc();
                return self.failed(error);
            }
        }
        match self.review(spec, attributes).await {
            Ok(status) => outcome(status),
            Err(error) => self.failed(error),
        }
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> RuleSet {
        let errors = vec!["webhook authorizer does not support user rule resolution".to_owned()];
        RuleSet { incomplete: true, errors, ..RuleSet::default() }
    }
}

fn outcome(status: SubjectAccessReviewStatus) -> Outcome {
    let (decision, error) = match (status.denied, status.allowed) {
        (true, true) => {
            let both = "webhook subject access review returned both allow and deny response";
            (Decision::Deny, Some(both.to_owned()))
        }
        (true, false) => (Decision::Deny, None),
        (false, true) => (Decision::Allow, None),
        (false, false) => (Decision::NoOpinion, None),
    };
    Outcome { decision, reason: status.reason, error }
}
