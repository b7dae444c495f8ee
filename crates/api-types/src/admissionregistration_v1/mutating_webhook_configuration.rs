//! MutatingWebhookConfiguration and what it is made of.

use api_machinery::api;
use api_machinery::meta::{LabelSelector, ObjectMeta};

use super::constants::{failure_policy_type, match_policy_type, reinvocation_policy_type, side_effect_class};
use super::{MatchCondition, RuleWithOperations, WebhookClientConfig};

/// Names webhooks that may change what is written.
#[api(kind = "MutatingWebhookConfiguration", resource = "mutatingwebhookconfigurations")]
pub struct MutatingWebhookConfiguration {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The webhooks, each with what it is asked about.
    #[field(2, merge_key = "name")]
    pub webhooks: Vec<MutatingWebhook>,
}

/// A webhook that may change what is written.
#[api]
pub struct MutatingWebhook {
    /// Name of the webhook, a domain of at least three segments that no other webhook beside it has.
    #[field(1, always, required)]
    pub name: String,
    /// How the webhook is reached.
    #[field(2, always, required)]
    pub client_config: WebhookClientConfig,
    /// What requests it is asked about; any rule that matches will do.
    #[field(3, atomic)]
    pub rules: Vec<RuleWithOperations>,
    /// What happens when it cannot be asked: Ignore, or Fail by default.
    #[field(4, go = "v1.FailurePolicyType", values = failure_policy_type::ALL, fill = "\"Fail\"")]
    pub failure_policy: Option<String>,
    /// Whether rules match the resource of the request only (Exact), or also what is the same in another group or version
    /// (Equivalent, the default).
    #[field(9, go = "v1.MatchPolicyType", values = match_policy_type::ALL, fill = "\"Equivalent\"")]
    pub match_policy: Option<String>,
    /// Namespaces whose objects it is asked about, by their labels. Objects without a namespace always match.
    #[field(5, fill = "{}")]
    pub namespace_selector: Option<LabelSelector>,
    /// Objects that it is asked about, by the labels of the new or of the old one.
    #[field(11, fill = "{}")]
    pub object_selector: Option<LabelSelector>,
    /// Whether it does anything beside its answer: None, or NoneOnDryRun. Some and Unknown are of older versions.
    #[field(6, always, required, go = "v1.SideEffectClass", values = side_effect_class::ALL)]
    pub side_effects: Option<String>,
    /// Seconds, from 1 to 30, that it has for an answer; 10 by default.
    #[field(7, fill = "10")]
    pub timeout_seconds: Option<i32>,
    /// Versions of AdmissionReview that it understands, the best first.
    #[field(8, always, required, atomic)]
    pub admission_review_versions: Vec<String>,
    /// Whether it is asked once more where others changed the object after it: IfNeeded, or Never by default.
    #[field(10, go = "v1.ReinvocationPolicyType", values = reinvocation_policy_type::ALL, fill = "\"Never\"")]
    pub reinvocation_policy: Option<String>,
    /// Conditions that a request must fulfil beside, at most 64.
    #[field(12, merge_key = "name")]
    pub match_conditions: Vec<MatchCondition>,
}
