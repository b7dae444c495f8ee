//! How fast an autoscaler goes.

use api_machinery::field_path::{ErrorList, Path};
use api_types::autoscaling_v2::constants::{hpa_scaling_policy_type, scaling_policy_select};
use api_types::autoscaling_v2::{HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior};

use crate::field_rules::{self, NOT_NEGATIVE, POSITIVE};

const MAX_WINDOW_SECONDS: i32 = 3600;
const MAX_PERIOD_SECONDS: i32 = 1800;

/// Each direction gets what it leaves out; what it says stays whole.
pub(super) fn set_defaults(behavior: &mut HorizontalPodAutoscalerBehavior) {
    let up = behavior.scale_up.get_or_insert_default();
    up.stabilization_window_seconds.get_or_insert(0);
    fill(up, &[("Pods", 4), ("Percent", 100)]);
    // How long it waits before it goes down is the controller's own to say.
    fill(behavior.scale_down.get_or_insert_default(), &[("Percent", 100)]);
}

fn fill(rules: &mut HPAScalingRules, policies: &[(&str, i32)]) {
    rules.select_policy.get_or_insert_with(|| "Max".into());
    if rules.policies.is_empty() {
        let policy = |(type_, value): &(&str, i32)| HPAScalingPolicy {
            type_: (*type_).to_owned(),
            value: *value,
            period_seconds: 15,
        };
        rules.policies = policies.iter().map(policy).collect();
    }
}

/// Whether a direction says how far from its goal a metric may be.
pub(super) fn has_tolerance(behavior: &HorizontalPodAutoscalerBehavior) -> bool {
    [&behavior.scale_up, &behavior.scale_down].into_iter().flatten().any(|rules| rules.tolerance.is_some())
}

pub(super) fn drop_tolerance(behavior: &mut HorizontalPodAutoscalerBehavior) {
    for rules in [&mut behavior.scale_up, &mut behavior.scale_down].into_iter().flatten() {
        rules.tolerance = None;
    }
}

/// Checks both directions.
pub(super) fn validate(path: &Path, behavior: &HorizontalPodAutoscalerBehavior, errors: &mut ErrorList) {
    for (field, rules) in [("scaleUp", &behavior.scale_up), ("scaleDown", &behavior.scale_down)] {
        if let Some(rules) = rules {
            validate_rules(&path.child(field), rules, errors);
        }
    }
}

fn validate_rules(path: &Path, rules: &HPAScalingRules, errors: &mut ErrorList) {
    let at = path.child("stabilizationWindowSeconds");
    match rules.stabilization_window_seconds {
        Some(seconds) if seconds < 0 => errors.push(at.invalid(seconds, "must be greater than or equal to zero")),
        Some(seconds) if seconds > MAX_WINDOW_SECONDS => {
            errors.push(at.invalid(seconds, format!("must be less than or equal to {MAX_WINDOW_SECONDS}")));
        }
        _ => {}
    }
    let select = rules.select_policy.as_ref();
    field_rules::one_of_if_set(&path.child("selectPolicy"), select, scaling_policy_select::ALL, errors);
    let at = path.child("policies");
    if rules.policies.is_empty() {
        errors.push(at.required("must specify at least one Policy"));
    }
    for (index, policy) in rules.policies.iter().enumerate() {
        validate_policy(&at.index(index), policy, errors);
    }
    if let Some(tolerance) = rules.tolerance.as_ref().filter(|tolerance| tolerance.sign() < 0) {
        errors.push(path.child("tolerance").invalid(tolerance.to_string(), NOT_NEGATIVE));
    }
}

fn validate_policy(path: &Path, policy: &HPAScalingPolicy, errors: &mut ErrorList) {
    field_rules::one_of(&path.child("type"), &policy.type_, hpa_scaling_policy_type::ALL, errors);
    if policy.value <= 0 {
        errors.push(path.child("value").invalid(policy.value, POSITIVE));
    }
    let (at, period) = (path.child("periodSeconds"), policy.period_seconds);
    if period <= 0 {
        errors.push(at.invalid(period, POSITIVE));
    }
    if period > MAX_PERIOD_SECONDS {
        errors.push(at.invalid(period, format!("must be less than or equal to {MAX_PERIOD_SECONDS}")));
    }
}
