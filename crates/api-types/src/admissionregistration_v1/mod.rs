//! admissionregistration.k8s.io/v1: one file per kind, with what it is made of.

pub mod constants;
mod match_condition;
mod match_resources;
mod mutating_admission_policy;
mod mutating_admission_policy_binding;
mod mutating_webhook_configuration;
mod policy_parts;
mod rule;
mod validating_admission_policy;
mod validating_admission_policy_binding;
mod validating_webhook_configuration;
mod webhook;
mod webhook_client_config;

pub use match_condition::MatchCondition;
pub use match_resources::{MatchResources, NamedRuleWithOperations};
pub use mutating_admission_policy::{
    ApplyConfiguration, JSONPatch, MutatingAdmissionPolicy, MutatingAdmissionPolicySpec, Mutation,
};
pub use mutating_admission_policy_binding::{MutatingAdmissionPolicyBinding, MutatingAdmissionPolicyBindingSpec};
pub use mutating_webhook_configuration::{MutatingWebhook, MutatingWebhookConfiguration};
pub use policy_parts::{ParamKind, ParamRef, Variable};
pub use rule::{Rule, RuleWithOperations};
pub use validating_admission_policy::{
    AuditAnnotation, ExpressionWarning, TypeChecking, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
    ValidatingAdmissionPolicyStatus, Validation,
};
pub use validating_admission_policy_binding::{ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec};
pub use validating_webhook_configuration::{ValidatingWebhook, ValidatingWebhookConfiguration};
pub use webhook::Webhook;
pub use webhook_client_config::{ServiceReference, WebhookClientConfig};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.admissionregistration.v1";
/// The API group.
pub const GROUP: &str = "admissionregistration.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
/// The versions in which the kinds may be served, the best first.
pub const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
