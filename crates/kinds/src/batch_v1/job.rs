//! Job of batch/v1: its names, and its rules.

use api_types::batch_v1::Job;

use super::{job_status, job_validation};
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::{Dependents, Lifecycle};
use crate::pod_spec::disabled;
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::workload;
use api_machinery::field_path::{ErrorList, Path};
use api_machinery::time::Time;
use api_types::core_v1::PodSpec;

static INFO: ResourceInfo<'static> = ResourceInfo {
    categories: &["all"],
    storage: Some(StorageInfo::of::<Job>("jobs", "mudhfqk/qZY=")),
    unconditional_update: true,
    field_selectors: &["status.successful"],
    subresources: &[SubresourceInfo::status("Job")],
    ..ResourceInfo::of::<Job>()
};

/// The rules of the kind.
pub(crate) struct JobRules;

impl TypedRules for JobRules {
    type Object = Job;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Job>] = &[
        Cell::NAME,
        Cell::text("Status", |object, _| state(object).into()),
        Cell::text("Completions", |object, _| completions(object).into()),
        Cell::text("Duration", |object, now| duration(object, now).into()),
        Cell::AGE,
        Cell::wide("Containers", |object, _| table::names(&object.spec.template.spec.containers)),
        Cell::wide("Images", |object, _| table::images(&object.spec.template.spec.containers)),
        Cell::wide("Selector", |object, _| table::selector(object.spec.selector.as_ref(), "<error>")),
    ];
    const LIFECYCLE: Lifecycle = Lifecycle {
        dependents: Dependents::Orphan,
        delete_warning: Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
             set propagationPolicy=Orphan to suppress this warning",
        ),
        ..Lifecycle::DEFAULT
    };
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn unknown_field(field: &str) -> String {
        format!("field label {field:?} not supported for {}", INFO.kind)
    }

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut Job) {
        crate::pod_spec::defaults::set_defaults(&mut object.spec.template.spec);
        // None of these is set in the templates of cron jobs.
        let spec = &mut object.spec;
        spec.manual_selector.get_or_insert(false);
        spec.completion_mode.get_or_insert_with(|| "NonIndexed".to_owned());
        spec.suspend.get_or_insert(false);
        if spec.completions.is_none() && spec.parallelism.is_none() {
            spec.completions = Some(1);
        }
        spec.parallelism.get_or_insert(1);
        let limit = if spec.backoff_limit_per_index.is_some() { i32::MAX } else { 6 };
        spec.backoff_limit.get_or_insert(limit);
        let policy = if spec.pod_failure_policy.is_some() { "Failed" } else { "TerminatingOrFailed" };
        spec.pod_replacement_policy.get_or_insert_with(|| policy.to_owned());
        if object.metadata.labels.is_empty() {
            object.metadata.labels = object.spec.template.metadata.labels.clone();
        }
    }

    fn prepare_create(cx: &RuleContext, object: &mut Job) {
        if object.spec.manual_selector != Some(true) {
            generate_selector(object);
        }
        disabled::drop_fields(&mut object.spec.template.spec, None, &cx.gates);
    }

    fn prepare_update(cx: &RuleContext, endpoint: Endpoint, object: &mut Job, old: &Job) {
        if endpoint != Endpoint::Status {
            disabled::drop_fields(&mut object.spec.template.spec, Some(&old.spec.template.spec), &cx.gates);
        }
    }

    fn validate(cx: &RuleContext, object: &Job) -> ErrorList {
        let mut errors = ErrorList::new();
        job_validation::validate_job(object, None, &cx.gates, &mut errors);
        errors
    }

    fn validate_as_new(cx: &RuleContext, object: &Job, old: &Job) -> Option<ErrorList> {
        let mut errors = ErrorList::new();
        job_validation::validate_job(object, Some(old), &cx.gates, &mut errors);
        Some(errors)
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &Job, old: &Job) -> ErrorList {
        let mut errors = ErrorList::new();
        match endpoint {
            Endpoint::Status => job_status::validate(object, old, &mut errors),
            _ => job_validation::validate_update(object, old, &cx.gates, &mut errors),
        }
        errors
    }

    fn warnings(object: &Job, old: Option<&Job>) -> Vec<String> {
        let mut warnings = workload::name_warnings(&object.metadata, old.is_none());
        if old.is_none_or(|old| old.metadata.generation != object.metadata.generation) {
            warnings.extend(job_validation::warnings("spec", &object.spec));
            let template = &object.spec.template;
            let path = Path::new("spec").child("template");
            warnings.extend(workload::template_warnings(&path, &object.metadata, None, template));
        }
        warnings
    }

    fn field(object: &Job, path: &str) -> Option<String> {
        (path == "status.successful").then(|| object.status.succeeded.to_string())
    }

    fn pods(object: &Job) -> Option<(Path, &PodSpec)> {
        Some((workload::pods_path(), &object.spec.template.spec))
    }
}

/// The labels that tell a job's pods from those of every other, with their values: the old names, then the present.
pub(super) fn generated_labels(job: &Job) -> [(&'static str, &str); 4] {
    let (name, uid) = (job.metadata.name.as_str(), job.metadata.uid.as_str());
    [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ]
}

/// Selects the job's own pods by its uid. What the client wrote stays, and validation refuses it where it is wrong.
fn generate_selector(job: &mut Job) {
    let labels = generated_labels(job).map(|(key, value)| (key, value.to_owned()));
    // Upstream's defaults give a job without labels those of its template, and again on every read, so that both have
    // what is added here. A copy cannot be told from equal labels of its own, which get them, too.
    let shares = job.metadata.labels == job.spec.template.metadata.labels;
    for (key, value) in labels {
        job.spec.template.metadata.labels.entry(key.to_owned()).or_insert(value);
    }
    if shares {
        job.metadata.labels.clone_from(&job.spec.template.metadata.labels);
    }
    let uid = job.metadata.uid.clone();
    let selector = job.spec.selector.get_or_insert_default();
    selector.match_labels.entry("batch.kubernetes.io/controller-uid".to_owned()).or_insert(uid);
}

/// The state in a word: the first of these conditions that is true.
fn state(job: &Job) -> &'static str {
    let is = |type_: &str| component_helpers::conditions::is_true(&job.status.conditions, type_);
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if job.metadata.deletion_timestamp.is_some() {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(job: &Job) -> String {
    let (spec, succeeded) = (&job.spec, job.status.succeeded);
    match (spec.completions, spec.parallelism.unwrap_or(0)) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(job: &Job, now: Time) -> String {
    let Some(start) = job.status.start_time else { return String::new() };
    let end = job.status.completion_time.unwrap_or(now);
    api_machinery::human_duration::age_text(end.seconds_since(start))
}
