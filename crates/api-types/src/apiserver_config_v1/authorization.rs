//! AuthorizationConfiguration: who decides about requests, in order.

use api_machinery::api;
use api_machinery::time::GoDuration;

/// Who decides about requests.
#[api]
pub struct AuthorizationConfiguration {
    /// The authorizers; the first that has an opinion decides.
    #[field(0, always)]
    pub authorizers: Vec<AuthorizerConfiguration>,
}

/// One authorizer.
#[api]
pub struct AuthorizerConfiguration {
    /// AlwaysAllow, AlwaysDeny, ABAC, Node, RBAC or Webhook.
    #[field(0, name = "type", always)]
    pub type_: String,
    /// Its name in metrics; that of any but a webhook is its type in lower case.
    #[field(0, always)]
    pub name: String,
    /// How a webhook is asked.
    #[field(0)]
    pub webhook: Option<WebhookConfiguration>,
}

/// How a webhook is asked.
#[api]
pub struct WebhookConfiguration {
    /// How long a request that was allowed is remembered.
    #[field(0, name = "authorizedTTL", always, fill = "\"5m\"")]
    pub authorized_ttl: GoDuration,
    /// Whether it is.
    #[field(0, fill = "true")]
    pub cache_authorized_requests: Option<bool>,
    /// How long a request that was not allowed is remembered.
    #[field(0, name = "unauthorizedTTL", always, fill = "\"30s\"")]
    pub unauthorized_ttl: GoDuration,
    /// Whether it is.
    #[field(0, fill = "true")]
    pub cache_unauthorized_requests: Option<bool>,
    /// How long one question may take, at most 30s.
    #[field(0, always)]
    pub timeout: GoDuration,
    /// The version of SubjectAccessReview that it is asked with: v1 or v1beta1.
    #[field(0, always)]
    pub subject_access_review_version: String,
    /// The version that match conditions see: v1.
    #[field(0, always)]
    pub match_condition_subject_access_review_version: String,
    /// What a question that fails comes to: NoOpinion or Deny.
    #[field(0, always)]
    pub failure_policy: String,
    /// Where it is.
    #[field(0, always)]
    pub connection_info: WebhookConnectionInfo,
    /// Which requests it is asked about, all of which must hold. Without any, about all.
    #[field(0, always)]
    pub match_conditions: Vec<WebhookMatchCondition>,
}

/// Where a webhook is.
#[api]
pub struct WebhookConnectionInfo {
    /// InClusterConfig or KubeConfigFile.
    #[field(0, name = "type", always)]
    pub type_: String,
    /// The file, by its whole path.
    #[field(0)]
    pub kube_config_file: Option<String>,
}

/// One condition.
#[api]
pub struct WebhookMatchCondition {
    /// The condition, in CEL.
    #[field(0, always)]
    pub expression: String,
}
