//! The chain of authorizers.

use std::sync::Arc;

use api_types::authentication_v1::UserInfo;
use api_types::rbac_v1::PolicyRule;
use async_trait::async_trait;

use crate::{Attributes, in_group};

/// Members of this group may do everything, whatever is configured.
const SUPERUSERS: &str = "system:masters";

/// What an authorizer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The request may pass.
    Allow,
    /// The request may not pass, whatever others say.
    Deny,
    /// Somebody else may allow it.
    NoOpinion,
}

/// A decision and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The decision.
    pub decision: Decision,
    /// Why; shown to the caller when the request is refused.
    pub reason: String,
    /// What went wrong on the way, if anything did.
    pub error: Option<String>,
}

impl Outcome {
    /// Allowed, with a reason for the audit log.
    #[must_use]
    pub fn allow(reason: impl Into<String>) -> Self {
        Self { decision: Decision::Allow, reason: reason.into(), error: None }
    }

    /// No opinion, with a reason for the caller.
    #[must_use]
    pub fn no_opinion(reason: impl Into<String>) -> Self {
        Self { decision: Decision::NoOpinion, reason: reason.into(), error: None }
    }
}

/// The rules that a caller has in a namespace, as far as they can be listed.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    /// Rules about resources and paths.
    pub rules: Vec<PolicyRule>,
    /// Whether some authorizer could not list its rules.
    pub incomplete: bool,
    /// Why not.
    pub errors: Vec<String>,
}

/// Errors as one text: equal ones once, several in brackets.
#[must_use]
pub fn aggregate(errors: Vec<String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for error in errors {
        if !different.contains(&error) {
            different.push(error);
        }
    }
    if let [one] = different.as_slice() { one.clone() } else { format!("[{}]", different.join(", ")) }
}

/// Somebody who decides about requests. One that asks elsewhere waits for the answer; the request's deadline ends the wait.
#[async_trait]
pub trait Authorizer: Send + Sync {
    /// Decides about one request.
    async fn authorize(&self, attributes: &Attributes) -> Outcome;
    /// Lists what a caller may do in a namespace, from memory: one that would have to ask elsewhere says that it cannot.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> RuleSet;
}

/// Authorizers in order, behind the built-in superusers.
#[derive(Clone, Default)]
pub struct Chain {
    authorizers: Vec<Arc<dyn Authorizer>>,
}

impl Chain {
    /// A chain in this order.
    #[must_use]
    pub fn new(authorizers: Vec<Arc<dyn Authorizer>>) -> Self {
        Self { authorizers }
    }
}

#[async_trait]
impl Authorizer for Chain {
    async fn authorize(&self, attributes: &Attributes) -> Outcome {
        if in_group(&attributes.user, SUPERUSERS) {
            return Outcome::allow("");
        }
        let (mut reasons, mut errors) = (Vec::new(), Vec::new());
        for authorizer in &self.authorizers {
            let outcome = authorizer.authorize(attributes).await;
            if outcome.decision != Decision::NoOpinion {
                return outcome;
            }
            if !outcome.reason.is_empty() {
                reasons.push(outcome.reason);
            }
            errors.extend(outcome.error);
        }
        let error = (!errors.is_empty()).then(|| aggregate(errors));
        Outcome { decision: Decision::NoOpinion, reason: reasons.join("\n"), error }
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> RuleSet {
        let mut all = RuleSet::default();
        for authorizer in &self.authorizers {
            let own = authorizer.rules_for(user, namespace);
            all.rules.extend(own.rules);
            all.incomplete |= own.incomplete;
            all.errors.extend(own.errors);
        }
        all
    }
}

/// Allows everything (`--authorization-mode=AlwaysAllow`).
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysAllow;

#[async_trait]
impl Authorizer for AlwaysAllow {
    async fn authorize(&self, _: &Attributes) -> Outcome {
        Outcome::allow("")
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> RuleSet {
        let all = || vec!["*".to_owned()];
        let resources = PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() };
        let paths = PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() };
        RuleSet { rules: vec![resources, paths], ..RuleSet::default() }
    }
}

/// Allows nothing (`--authorization-mode=AlwaysDeny`).
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysDeny;

#[async_trait]
impl Authorizer for AlwaysDeny {
    async fn authorize(&self, _: &Attributes) -> Outcome {
        Outcome::no_opinion("Everything is forbidden.")
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> RuleSet {
        RuleSet::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn superusers_pass_and_reasons_are_joined() {
        let chain = Chain::new(vec![Arc::new(AlwaysDeny), Arc::new(AlwaysDeny)]);
        let mut attributes = Attributes::default();
        let refused = chain.authorize(&attributes).await;
        assert_eq!(refused.reason, "Everything is forbidden.\nEverything is forbidden.");
        Arc::make_mut(&mut attributes.user).groups.push("system:masters".into());
        assert_eq!(chain.authorize(&attributes).await.decision, Decision::Allow);
    }
}
