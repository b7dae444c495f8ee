//! Validation of what a job asks for, which jobs and the templates of cron jobs share. Statuses are `job_status`'s.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::labels::Selector;
use api_machinery::names;
use api_types::batch_v1::constants::{completion_mode, pod_replacement_policy};
use api_types::batch_v1::{Job, JobSpec};
use api_types::core_v1::constants::restart_policy;
use api_types::core_v1::{Container, PodTemplateSpec};
use component_helpers::selectors::selector_of;
use feature_gates::Gates;

use super::job::generated_labels;
use super::{job_policies, job_status};
use crate::field_rules::{self as rules, IMMUTABLE};
use crate::gates::{SUSPENDED_JOB_PLACING, SUSPENDED_JOB_RESOURCES};
use crate::internal_json;
use crate::label_selector::{self, Values};
use crate::pod_spec::validation::validate_template;
use crate::workload;

const MANAGED_BY_MAX_BYTES: usize = 63;
const MAX_PARALLELISM: i32 = 100_000;
/// Beyond this many indexes the lists of finished ones would grow too long, so the other bounds get tighter.
const MANY_COMPLETIONS: i32 = 100_000;
const MAX_WITH_MANY: i32 = 10_000;

/// Whether each index runs on its own.
pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

/// Checks a whole job, created or updated.
pub(super) fn validate_job(job: &Job, old: Option<&Job>, gates: &Gates, errors: &mut ErrorList) {
    validate_generated(job, old, errors);
    validate_selected(&Path::new("spec"), &job.spec, old.map(|old| &old.spec), gates, errors);
    let Some(last) = job.spec.completions.filter(|count| is_indexed(&job.spec) && *count > 0) else { return };
    let host = format!("{}-{}", job.metadata.name, last - 1);
    if !names::dns1123_label(&host).is_empty() {
        let detail = format!("will not able to create pod with invalid DNS label: {host}");
        errors.push(Path::new("metadata").child("name").invalid(&job.metadata.name, detail));
    }
}

/// What was generated must be as generated, so that no job selects the pods of another.
fn validate_generated(job: &Job, old: Option<&Job>, errors: &mut ErrorList) {
    let Some(selector) = job.spec.selector.as_ref().filter(|_| job.spec.manual_selector != Some(true)) else { return };
    if job.metadata.uid.is_empty() {
        errors.push(Path::new("metadata").child("uid").required(""));
    }
    let stored = |key: &str| old.is_none_or(|old| old.spec.template.metadata.labels.contains_key(key));
    let has_prefixed = stored("batch.kubernetes.io/controller-uid") && stored("batch.kubernetes.io/job-name");
    let expected = generated_labels(job);
    let labels = &job.spec.template.metadata.labels;
    let path = Path::new("spec").child("template").child("metadata").child("labels");
    for (key, value) in expected.iter().filter(|(key, _)| has_prefixed || !key.contains('/')) {
        let detail = format!("must be '{value}'");
        match labels.get(*key) {
            None => errors.push(path.key(key).required(detail)),
            Some(actual) if actual != value => {
                errors.push(path.key(key).invalid(BadValue::texts(labels), detail));
            }
            Some(_) => {}
        }
    }
    let own = expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    if selector_of(Some(selector)).is_ok_and(|selector: Selector| !selector.matches(&own)) {
        let value = workload::selector_value(Some(selector));
        errors.push(Path::new("spec").child("selector").invalid(value, "`selector` not auto-generated"));
    }
}

/// The spec of a job, with its selector.
fn validate_selected(path: &Path, spec: &JobSpec, old: Option<&JobSpec>, gates: &Gates, errors: &mut ErrorList) {
    validate_spec(path, spec, old, gates, errors);
    let at = path.child("selector");
    match &spec.selector {
        None => errors.push(at.required("")),
        Some(selector) => {
            let bad = old.and_then(|old| old.selector.as_ref()).is_some_and(label_selector::is_bad);
            let values = if bad { Values::AsStored } else { Values::Checked };
            label_selector::validate(&at, selector, values, errors);
        }
    }
    workload::validate_selects(&path.child("template"), spec.selector.as_ref(), &spec.template, errors);
}

/// The spec without its selector.
pub(super) fn validate_spec(path: &Path, spec: &JobSpec, old: Option<&JobSpec>, gates: &Gates, errors: &mut ErrorList) {
    for (field, value) in [
        ("parallelism", spec.parallelism.map(i64::from)),
        ("completions", spec.completions.map(i64::from)),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit.map(i64::from)),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished.map(i64::from)),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index.map(i64::from)),
        ("maxFailedIndexes", spec.max_failed_indexes.map(i64::from)),
    ] {
        rules::not_negative(&path.child(field), value.unwrap_or(0), errors);
    }
    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        errors.push(path.child("backoffLimitPerIndex").required("when maxFailedIndexes is specified"));
    }
    if let Some(manager) = &spec.managed_by {
        let at = path.child("managedBy");
        errors.extend(names::domain_prefixed_path(&at, manager));
        if manager.len() > MANAGED_BY_MAX_BYTES {
            errors.push(at.too_long(MANAGED_BY_MAX_BYTES));
        }
    }
    if let Some(mode) = spec.completion_mode.as_ref().filter(|mode| !completion_mode::ALL.contains(&mode.as_str())) {
        let at = path.child("completionMode");
        errors.push(at.not_supported_in_order(BadValue::named(mode), completion_mode::ALL));
    }
    if is_indexed(spec) {
        validate_indexed(path, spec, errors);
    } else if spec.completion_mode.as_deref().is_none_or(|mode| mode == "NonIndexed") {
        for (field, value) in
            [("backoffLimitPerIndex", spec.backoff_limit_per_index), ("maxFailedIndexes", spec.max_failed_indexes)]
        {
            if let Some(value) = value {
                errors.push(path.child(field).invalid(value, "requires indexed completion mode"));
            }
        }
    }
    job_policies::validate_failure(path, spec, errors);
    job_policies::validate_success(path, spec, errors);
    // With rules about failed pods, only pods that have failed may be replaced: the rules are not asked before.
    let has_rules = spec.pod_failure_policy.is_some();
    let replacement = if has_rules { &[pod_replacement_policy::FAILED] } else { pod_replacement_policy::ALL };
    rules::one_of_if_set(
        &path.child("podReplacementPolicy"),
        spec.pod_replacement_policy.as_ref(),
        replacement,
        errors,
    );
    validate_pods(&path.child("template"), spec, old.map(|old| &old.template), gates, errors);
}

fn validate_indexed(path: &Path, spec: &JobSpec, errors: &mut ErrorList) {
    let Some(completions) = spec.completions else {
        errors.push(path.child("completions").required("when completion mode is Indexed"));
        return;
    };
    let parallelism = spec.parallelism.unwrap_or(0);
    let mut most = |field: &'static str, value: i32, limit: i32, detail: &str| {
        if value > limit {
            errors.push(path.child(field).invalid(value, detail));
        }
    };
    let detail = "must be less than or equal to 100000 when completion mode is Indexed";
    most("parallelism", parallelism, MAX_PARALLELISM, detail);
    if let Some(failed) = spec.max_failed_indexes {
        most("maxFailedIndexes", failed, completions, "must be less than or equal to completions");
        most("maxFailedIndexes", failed, MAX_PARALLELISM, "must be less than or equal to 100000");
    }
    if completions <= MANY_COMPLETIONS || spec.backoff_limit_per_index.is_none() {
        return;
    }
    let detail = "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per \
                  index";
    most("parallelism", parallelism, MAX_WITH_MANY, detail);
    match spec.max_failed_indexes {
        Some(failed) => most("maxFailedIndexes", failed, MAX_WITH_MANY, detail),
        None => {
            errors.push(path.child("maxFailedIndexes").required("must be specified when completions is above 100000"))
        }
    }
}

fn validate_pods(path: &Path, spec: &JobSpec, old: Option<&PodTemplateSpec>, gates: &Gates, errors: &mut ErrorList) {
    errors.extend(validate_template(path, &spec.template, old, gates));
    let at = path.child("spec").child("restartPolicy");
    let policy = spec.template.spec.restart_policy.as_str();
    match policy {
        "" | "Always" => errors.push(at.required(r#"valid values: "OnFailure", "Never""#)),
        "Never" => {}
        "OnFailure" if spec.pod_failure_policy.is_none() => {}
        "OnFailure" => {
            let detail = r#"only "Never" is supported when podFailurePolicy is specified"#;
            errors.push(at.invalid(BadValue::named(policy), detail));
        }
        // Pods that always restart never end, so that a job takes all values but that one.
        _ => {
            let known = [restart_policy::ON_FAILURE, restart_policy::NEVER];
            errors.push(at.not_supported_in_order(BadValue::named(policy), &known));
        }
    }
}

/// Checks a job that is to replace `old`, once it was checked as a new one: as upstream, the rules of the spec run a second
/// time.
pub(super) fn validate_update(job: &Job, old: &Job, gates: &Gates, errors: &mut ErrorList) {
    let path = Path::new("spec");
    let (new, stored) = (&job.spec, &old.spec);
    validate_selected(&path, new, Some(stored), gates, errors);
    let at = path.child("completions");
    if new.completions != stored.completions {
        if !is_indexed(new) {
            errors.push(at.invalid(new.completions, IMMUTABLE));
        } else if new.completions != new.parallelism {
            errors.push(at.invalid(new.completions, "can only be modified in tandem with spec.parallelism"));
        }
    }
    let value = workload::selector_value(new.selector.as_ref());
    workload::immutable(&path.child("selector"), &new.selector, &stored.selector, value, errors);
    validate_template_update(job, old, gates, errors);
    let named = |value: &Option<String>| value.as_deref().map_or_else(BadValue::null, BadValue::named);
    let (mode, old_mode) = (&new.completion_mode, &stored.completion_mode);
    workload::immutable(&path.child("completionMode"), mode, old_mode, named(mode), errors);
    let (policy, old_policy) = (&new.pod_failure_policy, &stored.pod_failure_policy);
    let value = policy.as_ref().map_or_else(BadValue::null, |policy| internal_json::bad_value(policy));
    workload::immutable(&path.child("podFailurePolicy"), policy, old_policy, value, errors);
    let (limit, old_limit) = (&new.backoff_limit_per_index, &stored.backoff_limit_per_index);
    workload::immutable(&path.child("backoffLimitPerIndex"), limit, old_limit, (*limit).into(), errors);
    let (manager, old_manager) = (&new.managed_by, &stored.managed_by);
    let value = manager.as_ref().map_or_else(BadValue::null, BadValue::from);
    workload::immutable(&path.child("managedBy"), manager, old_manager, value, errors);
    let (policy, old_policy) = (&new.success_policy, &stored.success_policy);
    let value = policy.as_ref().map_or_else(BadValue::null, |policy| internal_json::bad_value(policy));
    workload::immutable(&path.child("successPolicy"), policy, old_policy, value, errors);
}

/// Nothing of the template may change, but where and with what a suspended job will run.
fn validate_template_update(job: &Job, old: &Job, gates: &Gates, errors: &mut ErrorList) {
    let path = Path::new("spec");
    let new = &job.spec.template;
    let is_editable = job_status::is_editable(old);
    let has_not_begun = old.spec.suspend == Some(true) && old.status.start_time.is_none();
    let mut allowed = old.spec.template.clone();
    if if gates.enabled(SUSPENDED_JOB_PLACING) { is_editable } else { has_not_begun } {
        take_placement(&mut allowed, new);
    }
    if !is_editable || !gates.enabled(SUSPENDED_JOB_RESOURCES) {
        workload::immutable(&path.child("template"), new, &allowed, template_value(new), errors);
        return;
    }
    take_resources(&mut allowed.spec.containers, &new.spec.containers);
    take_resources(&mut allowed.spec.init_containers, &new.spec.init_containers);
    let value = internal_json::bad_value(&new.spec);
    workload::immutable(&path.child("template.spec"), &new.spec, &allowed.spec, value, errors);
}

/// Takes over what says where pods may run, and labels and annotations with it.
fn take_placement(allowed: &mut PodTemplateSpec, new: &PodTemplateSpec) {
    allowed.metadata.labels.clone_from(&new.metadata.labels);
    allowed.metadata.annotations.clone_from(&new.metadata.annotations);
    allowed.spec.node_selector.clone_from(&new.spec.node_selector);
    allowed.spec.tolerations.clone_from(&new.spec.tolerations);
    allowed.spec.scheduling_gates.clone_from(&new.spec.scheduling_gates);
    let mut affinity = allowed.spec.affinity.take().unwrap_or_default();
    affinity.node_affinity = new.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.clone());
    let is_empty = affinity == Default::default();
    allowed.spec.affinity = (!is_empty || new.spec.affinity.is_some()).then_some(affinity);
}

/// Takes over the resources of the same containers in the same places.
fn take_resources(allowed: &mut [Container], new: &[Container]) {
    let names = |containers: &[Container]| containers.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    if names(allowed) == names(new) {
        for (allowed, new) in allowed.iter_mut().zip(new) {
            allowed.resources = new.resources.clone();
        }
    }
}

/// A template as upstream prints it: its metadata's members beside the spec.
fn template_value(template: &PodTemplateSpec) -> BadValue {
    let meta = api_machinery::json::encode(&template.metadata);
    let open = meta.strip_suffix('}').unwrap_or(&meta);
    let comma = if meta == "{}" { "" } else { "," };
    BadValue::json(format!("{open}{comma}\"Spec\":{}}}", internal_json::compact(&template.spec)))
}

/// What a client is told of a spec that is accepted; `path` is the spec's.
pub(super) fn warnings(path: &str, spec: &JobSpec) -> Vec<String> {
    let has_many = is_indexed(spec)
        && spec.completions.is_some_and(|count| count > MANY_COMPLETIONS)
        && spec.parallelism.is_some_and(|count| count > MAX_WITH_MANY);
    let text = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
                Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
    has_many.then(|| format!("{path}: {text}")).into_iter().collect()
}
