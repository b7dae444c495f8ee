//! Validation of what decides early whether a job failed or succeeded.

use api_machinery::field_path::{BadValue, ErrorKind, ErrorList, FieldError, Path};
use api_machinery::names;
use api_types::batch_v1::constants::{pod_failure_policy_action, pod_failure_policy_on_exit_codes_operator};
use api_types::batch_v1::{JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicyRule};
use api_types::core_v1::constants::condition_status;

use super::index_list;
use super::job_validation::is_indexed;
use crate::field_rules as rules;
use crate::internal_json;

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_PATTERNS: usize = 20;
const MAX_INDEXES_BYTES: usize = 65_536;

/// An invalid value that is not printed.
pub(super) fn unprinted(path: &Path, detail: &str) -> FieldError {
    FieldError { kind: ErrorKind::Invalid, field: path.to_string(), value: None, detail: detail.to_owned() }
}

/// Required, with the values listed in byte order as Go prints a list.
fn choice(path: &Path, value: &str, supported: &[&str], errors: &mut ErrorList) {
    if value.is_empty() {
        let mut quoted: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        quoted.sort_unstable();
        errors.push(path.required(format!("valid values: [{}]", quoted.join(" "))));
    } else {
        rules::one_of(path, value, supported, errors);
    }
}

/// `podFailurePolicy`; `path` is the spec's.
pub(super) fn validate_failure(path: &Path, spec: &JobSpec, errors: &mut ErrorList) {
    let Some(policy) = &spec.pod_failure_policy else { return };
    let path = path.child("podFailurePolicy").child("rules");
    if policy.rules.len() > MAX_RULES {
        errors.push(path.too_many(policy.rules.len(), MAX_RULES));
    }
    for (index, rule) in policy.rules.iter().enumerate() {
        validate_rule(&path.index(index), spec, rule, errors);
    }
}

fn validate_rule(path: &Path, spec: &JobSpec, rule: &PodFailurePolicyRule, errors: &mut ErrorList) {
    let at = path.child("action");
    choice(&at, &rule.action, pod_failure_policy_action::ALL, errors);
    if rule.action == "FailIndex" && spec.backoff_limit_per_index.is_none() {
        errors.push(at.invalid(BadValue::named(&rule.action), "requires the backoffLimitPerIndex to be set"));
    }
    if let Some(codes) = &rule.on_exit_codes {
        validate_codes(&path.child("onExitCodes"), spec, codes, errors);
    }
    let at = path.child("onPodConditions");
    if rule.on_pod_conditions.len() > MAX_PATTERNS {
        errors.push(at.too_many(rule.on_pod_conditions.len(), MAX_PATTERNS));
    }
    for (index, pattern) in rule.on_pod_conditions.iter().enumerate() {
        let at = at.index(index);
        let problems = names::qualified_name(&pattern.type_);
        let invalid = |detail| at.child("type").invalid(BadValue::named(&pattern.type_), detail);
        errors.extend(problems.into_iter().map(invalid));
        choice(&at.child("status"), &pattern.status, condition_status::ALL, errors);
    }
    match (rule.on_exit_codes.is_some(), !rule.on_pod_conditions.is_empty()) {
        (true, true) => {
            errors.push(unprinted(path, "specifying both OnExitCodes and OnPodConditions is not supported"));
        }
        (false, false) => {
            errors.push(unprinted(path, "specifying one of OnExitCodes and OnPodConditions is required"));
        }
        _ => {}
    }
}

fn validate_codes(path: &Path, spec: &JobSpec, codes: &PodFailurePolicyOnExitCodesRequirement, errors: &mut ErrorList) {
    choice(&path.child("operator"), &codes.operator, pod_failure_policy_on_exit_codes_operator::ALL, errors);
    if let Some(name) = &codes.container_name {
        let pods = &spec.template.spec;
        if !pods.containers.iter().chain(&pods.init_containers).any(|container| container.name == *name) {
            let detail = "must be one of the container or initContainer names in the pod template";
            errors.push(path.child("containerName").invalid(name, detail));
        }
    }
    let path = path.child("values");
    let printed = || BadValue::json(serde_json::json!(codes.values).to_string());
    if codes.values.is_empty() {
        errors.push(path.invalid(printed(), "at least one value is required"));
    } else if codes.values.len() > MAX_EXIT_CODES {
        errors.push(path.too_many(codes.values.len(), MAX_EXIT_CODES));
    }
    let mut is_ordered = true;
    let mut seen = std::collections::HashSet::new();
    for (index, value) in codes.values.iter().enumerate() {
        let at = path.index(index);
        if codes.operator == "In" && *value == 0 {
            errors.push(at.invalid(*value, "must not be 0 for the In operator"));
        }
        if !seen.insert(value) {
            errors.push(at.duplicate(*value));
        }
        is_ordered &= index == 0 || codes.values.get(index - 1).is_some_and(|previous| previous <= value);
    }
    if !is_ordered {
        errors.push(path.invalid(printed(), "must be ordered"));
    }
}

/// `successPolicy`; `path` is the spec's. Indexed jobs without completions were refused already.
pub(super) fn validate_success(path: &Path, spec: &JobSpec, errors: &mut ErrorList) {
    let Some(policy) = &spec.success_policy else { return };
    let path = path.child("successPolicy");
    if !is_indexed(spec) {
        errors.push(path.invalid(internal_json::bad_value(policy), "requires indexed completion mode"));
        return;
    }
    let path = path.child("rules");
    if policy.rules.is_empty() {
        errors.push(path.required("at least one rules must be specified when the successPolicy is specified"));
    }
    if policy.rules.len() > MAX_RULES {
        errors.push(path.too_many(policy.rules.len(), MAX_RULES));
    }
    let Some(completions) = spec.completions else { return };
    for (index, rule) in policy.rules.iter().enumerate() {
        validate_success_rule(&path.index(index), rule, completions, errors);
    }
}

fn validate_success_rule(path: &Path, rule: &SuccessPolicyRule, completions: i32, errors: &mut ErrorList) {
    if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
        errors.push(path.required("at least one of succeededCount or succeededIndexes must be specified"));
    }
    let mut listed = None;
    if let Some(indexes) = &rule.succeeded_indexes {
        let path = path.child("succeededIndexes");
        if indexes.len() > MAX_INDEXES_BYTES {
            errors.push(path.too_long(MAX_INDEXES_BYTES));
        }
        match index_list::parse(indexes, completions) {
            Ok(intervals) => listed = Some(index_list::count(&intervals)),
            Err(reason) => errors.push(path.invalid(indexes, format!("error parsing succeededIndexes: {reason}"))),
        }
    }
    let Some(count) = rule.succeeded_count else { return };
    let path = path.child("succeededCount");
    rules::not_negative(&path, count.into(), errors);
    if count > completions {
        let detail = format!("must be less than or equal to {completions} (the number of specified completions)");
        errors.push(path.invalid(count, detail));
    }
    if let Some(listed) = listed.filter(|listed| i64::from(count) > *listed) {
        let detail = format!(
            "must be less than or equal to {listed} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.push(path.invalid(count, detail));
    }
}
