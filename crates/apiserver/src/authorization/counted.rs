//! An authorizer whose decisions are counted.

use std::sync::Arc;

use api_types::authentication_v1::UserInfo;
use async_trait::async_trait;
use authz::{Attributes, Authorizer, Decision, Outcome, RuleSet};
use component_base::metrics::Counters;
use prometheus::Counter;

/// Counts what another decides; having no opinion is no decision.
pub(super) struct Counted {
    inner: Arc<dyn Authorizer>,
    allowed: Counter,
    denied: Counter,
}

impl Counted {
    /// `kind` is the authorizer's type.
    pub(super) fn new(inner: Arc<dyn Authorizer>, kind: &str, name: &str, decisions: &Counters) -> Self {
        let of = |decision: &str| decisions.with(&[decision, name, kind]);
        Self { inner, allowed: of("allowed"), denied: of("denied") }
    }
}

#[async_trait]
impl Authorizer for Counted {
    async fn authorize(&self, attributes: &Attributes) -> Outcome {
        let outcome = self.inner.authorize(attributes).await;
        match outcome.decision {
            Decision::Allow => self.allowed.inc(),
            Decision::Deny => self.denied.inc(),
            Decision::NoOpinion => {}
        }
        outcome
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> RuleSet {
        self.inner.rules_for(user, namespace)
    }
}
