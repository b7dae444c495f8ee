//! Validation of webhooks, whichever kind they are of. What became forbidden over time is let be on an update, where
//! the stored object has it somewhere: the loosening looks at the stored object as a whole.

use std::collections::BTreeSet;

use admission_cel::Scope;
use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::admissionregistration_v1::Webhook;
use api_types::admissionregistration_v1::constants::{
    failure_policy_type, match_policy_type, reinvocation_policy_type, side_effect_class,
};

use super::expressions::{self, Stored};
use super::{match_conditions, operation_rules};
use crate::field_rules;
use crate::label_selector::{self, Values};
use crate::webhook_client;

/// What may be said of side effects; older objects may say more.
const SIDE_EFFECTS: [&str; 2] = [side_effect_class::NONE, side_effect_class::NONE_ON_DRY_RUN];

/// What is asked of a configuration.
struct Demands<'a> {
    unique_names: bool,
    no_side_effects: bool,
    known_review: bool,
    conditions: bool,
    selector_values: Values,
    /// Expressions that are stored already.
    stored: Stored<'a>,
}

impl<'a> Demands<'a> {
    fn of(new: &[Webhook<'_>], old: Option<&[Webhook<'a>]>) -> Self {
        let all = |rule: fn(&Webhook<'_>) -> bool| old.is_none_or(|old| old.iter().all(rule));
        Self {
            unique_names: old.is_none_or(has_unique_names),
            no_side_effects: all(|own| own.side_effects.is_some_and(|class| SIDE_EFFECTS.contains(&class))),
            known_review: all(knows_a_review),
            conditions: old.is_none_or(|old| {
                let pairs = new.iter().zip(old);
                new.len() != old.len()
                    || pairs.into_iter().any(|(new, old)| new.match_conditions != old.match_conditions)
            }),
            selector_values: if all(has_good_selectors) { Values::Checked } else { Values::AsStored },
            stored: old
                .into_iter()
                .flatten()
                .flat_map(|own| expressions::of_conditions(own.match_conditions))
                .collect(),
        }
    }
}

fn has_unique_names(webhooks: &[Webhook<'_>]) -> bool {
    let names: BTreeSet<&str> = webhooks.iter().map(|own| own.name).collect();
    names.len() == webhooks.len()
}

fn knows_a_review(webhook: &Webhook<'_>) -> bool {
    webhook_client::knows_a_review(webhook.admission_review_versions)
}

fn has_good_selectors(webhook: &Webhook<'_>) -> bool {
    let selectors = [webhook.namespace_selector, webhook.object_selector];
    !selectors.into_iter().flatten().any(label_selector::is_bad)
}

/// Checks the webhooks of a configuration that is new or replaces `old`.
pub(super) fn validate(new: &[Webhook<'_>], old: Option<&[Webhook<'_>]>) -> ErrorList {
    let demands = Demands::of(new, old);
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (index, webhook) in new.iter().enumerate() {
        let path = Path::new("webhooks").index(index);
        validate_webhook(&path, webhook, &demands, &mut errors);
        review_versions(&path.child("admissionReviewVersions"), webhook, demands.known_review, &mut errors);
        if demands.unique_names && !webhook.name.is_empty() && !seen.insert(webhook.name) {
            errors.push(path.child("name").duplicate(webhook.name));
        }
    }
    errors
}

fn validate_webhook(path: &Path, webhook: &Webhook<'_>, demands: &Demands<'_>, errors: &mut ErrorList) {
    errors.extend(names::fully_qualified_name(&path.child("name"), webhook.name));
    for (index, rule) in webhook.rules.iter().enumerate() {
        operation_rules::validate(&path.child("rules").index(index), rule, errors);
    }
    let mut choice = |field: &'static str, value: Option<&str>, supported: &[&str]| {
        if let Some(value) = value {
            field_rules::one_of(&path.child(field), value, supported, errors);
        }
    };
    choice("failurePolicy", webhook.failure_policy, failure_policy_type::ALL);
    choice("matchPolicy", webhook.match_policy, match_policy_type::ALL);
    let classes = if demands.no_side_effects { &SIDE_EFFECTS } else { side_effect_class::ALL };
    choice("sideEffects", webhook.side_effects, classes);
    if webhook.side_effects.is_none() {
        let detail = format!("must specify one of {}", classes.join(", "));
        errors.push(path.child("sideEffects").required(detail));
    }
    if let Some(seconds) = webhook.timeout_seconds
        && !(1..=30).contains(&seconds)
    {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(path.child("timeoutSeconds").invalid(seconds, detail));
    }
    for (field, selector) in
        [("namespaceSelector", webhook.namespace_selector), ("objectSelector", webhook.object_selector)]
    {
        if let Some(selector) = selector {
            label_selector::validate(&path.child(field), selector, demands.selector_values, errors);
        }
    }
    if let Some(policy) = webhook.reinvocation_policy {
        field_rules::one_of(&path.child("reinvocationPolicy"), policy, reinvocation_policy_type::ALL, errors);
    }
    client_config(&path.child("clientConfig"), webhook, errors);
    if demands.conditions {
        let scope = Scope { authorizer: true, ..Scope::default() };
        let at = path.child("matchConditions");
        match_conditions::validate(&at, webhook.match_conditions, scope, &demands.stored, errors);
    }
}

fn client_config(path: &Path, webhook: &Webhook<'_>, errors: &mut ErrorList) {
    match (&webhook.client_config.url, &webhook.client_config.service) {
        (Some(url), None) => webhook_client::validate_url(&path.child("url"), url, errors),
        (None, Some(service)) => {
            let named = webhook_client::Service {
                namespace: &service.namespace,
                name: &service.name,
                path: service.path.as_deref(),
                port: service.port,
            };
            webhook_client::validate_service(&path.child("service"), &named, errors);
        }
        _ => errors.push(path.required("exactly one of url or service is required")),
    }
}

fn review_versions(path: &Path, webhook: &Webhook<'_>, known: bool, errors: &mut ErrorList) {
    let versions = webhook.admission_review_versions;
    if versions.is_empty() {
        errors.push(path.required(format!("must specify one of {}", webhook_client::KNOWN_REVIEWS.join(", "))));
        return;
    }
    webhook_client::validate_review_versions(path, versions, known, errors);
}
