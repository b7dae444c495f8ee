//! The kinds of admissionregistration.k8s.io/v1.

mod match_conditions;
mod mutating_webhook_configuration;
mod operation_rules;
#[cfg(test)]
mod tests;
mod validating_webhook_configuration;
mod webhooks;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<mutating_webhook_configuration::MutatingWebhookConfigurationRules>::new(),
    &Typed::<validating_webhook_configuration::ValidatingWebhookConfigurationRules>::new(),
];

/// The end of names that files of manifests have to themselves.
const STATIC_SUFFIX: &str = ".static.k8s.io";

/// Warns of a name that is kept for what comes from files.
fn name_warnings(name: &str) -> Vec<String> {
    let warning = "metadata.name: names ending with \".static.k8s.io\" are reserved for static manifest-based \
                   configurations and cannot be managed via the API";
    if name.ends_with(STATIC_SUFFIX) { vec![warning.to_owned()] } else { Vec::new() }
}
