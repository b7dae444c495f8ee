//! What the webhooks of both kinds have in common.

use api_machinery::meta::LabelSelector;

use super::{MatchCondition, MutatingWebhook, RuleWithOperations, ValidatingWebhook, WebhookClientConfig};

/// A webhook of either kind, read where it lies, so that rules and calls are written once.
#[derive(Debug, Clone, Copy)]
pub struct Webhook<'a> {
    pub name: &'a str,
    pub client_config: &'a WebhookClientConfig,
    pub rules: &'a [RuleWithOperations],
    pub failure_policy: Option<&'a str>,
    pub match_policy: Option<&'a str>,
    pub namespace_selector: Option<&'a LabelSelector>,
    pub object_selector: Option<&'a LabelSelector>,
    pub side_effects: Option<&'a str>,
    pub timeout_seconds: Option<i32>,
    pub admission_review_versions: &'a [String],
    /// Nothing for those that validate.
    pub reinvocation_policy: Option<&'a str>,
    pub match_conditions: &'a [MatchCondition],
}

macro_rules! webhook {
    ($kind:ty, $own:ident => $reinvocation_policy:expr) => {
        impl<'a> From<&'a $kind> for Webhook<'a> {
            fn from($own: &'a $kind) -> Self {
                Self {
                    name: &$own.name,
                    client_config: &$own.client_config,
                    rules: &$own.rules,
                    failure_policy: $own.failure_policy.as_deref(),
                    match_policy: $own.match_policy.as_deref(),
                    namespace_selector: $own.namespace_selector.as_ref(),
                    object_selector: $own.object_selector.as_ref(),
                    side_effects: $own.side_effects.as_deref(),
                    timeout_seconds: $own.timeout_seconds,
                    admission_review_versions: &$own.admission_review_versions,
                    reinvocation_policy: $reinvocation_policy,
                    match_conditions: &$own.match_conditions,
                }
            }
        }
    };
}

webhook!(MutatingWebhook, own => own.reinvocation_policy.as_deref());
webhook!(ValidatingWebhook, own => None);
