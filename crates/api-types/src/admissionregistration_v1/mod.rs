//! admissionregistration.k8s.io/v1: one file per kind, with what it is made of.

pub mod constants;
mod match_condition;
mod mutating_webhook_configuration;
mod rule;
mod validating_webhook_configuration;
mod webhook;
mod webhook_client_config;

pub use match_condition::MatchCondition;
pub use mutating_webhook_configuration::{MutatingWebhook, MutatingWebhookConfiguration};
pub use rule::{Rule, RuleWithOperations};
pub use validating_webhook_configuration::{ValidatingWebhook, ValidatingWebhookConfiguration};
pub use webhook::Webhook;
pub use webhook_client_config::{ServiceReference, WebhookClientConfig};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.admissionregistration.v1";
/// The API group.
pub const GROUP: &str = "admissionregistration.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
