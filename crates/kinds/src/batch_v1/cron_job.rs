//! CronJob of batch/v1: its names, and its rules.

use api_types::batch_v1::CronJob;

use super::job_validation;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::pod_spec::disabled;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::versions::Former;
use crate::{field_rules, workload};
use api_machinery::field_path::ErrorList;
use api_machinery::field_path::{BadValue, Path};
use api_types::batch_v1::CronJobSpec;
use api_types::batch_v1::constants::concurrency_policy;
use api_types::core_v1::PodSpec;
use component_helpers::cron::Schedule;
use component_helpers::time_zone::TimeZone;
use feature_gates::Gates;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["cj"],
    categories: &["all"],
    storage: Some(StorageInfo::of::<CronJob>("cronjobs", "sd5LIXh4Fjs=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::status("CronJob")],
    ..ResourceInfo::of::<CronJob>()
};

/// The rules of the kind.
pub(crate) struct CronJobRules;

impl TypedRules for CronJobRules {
    type Object = CronJob;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<CronJob>] = &[
        Cell::NAME,
        Cell::text("Schedule", |object, _| object.spec.schedule.clone().into()),
        Cell::text("Timezone", |object, _| object.spec.time_zone.clone().unwrap_or_else(|| "<none>".into()).into()),
        Cell::boolean("Suspend", |object, _| suspended(object.spec.suspend).into()),
        Cell::number("Active", |object, _| object.status.active.len().into()),
        Cell::text("Last Schedule", |object, now| {
            let last = object.status.last_schedule_time;
            last.map_or_else(|| "<none>".to_owned(), |at| table::since(at, now)).into()
        }),
        Cell::AGE,
        Cell::wide("Containers", |object, _| table::names(&object.spec.job_template.spec.template.spec.containers)),
        Cell::wide("Images", |object, _| table::images(&object.spec.job_template.spec.template.spec.containers)),
        Cell::wide("Selector", |object, _| table::selector(object.spec.job_template.spec.selector.as_ref(), "<error>")),
    ];
    const FORMER: &'static [Former] = &[Former::same("batch/v1beta1")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn prepare_create(cx: &RuleContext, object: &mut CronJob) {
        disabled::drop_fields(&mut object.spec.job_template.spec.template.spec, None, &cx.gates);
    }

    fn prepare_update(cx: &RuleContext, endpoint: Endpoint, object: &mut CronJob, old: &CronJob) {
        if endpoint != Endpoint::Status {
            let stored = &old.spec.job_template.spec.template.spec;
            disabled::drop_fields(&mut object.spec.job_template.spec.template.spec, Some(stored), &cx.gates);
        }
    }

    fn validate(cx: &RuleContext, object: &CronJob) -> ErrorList {
        let mut errors = ErrorList::new();
        if object.metadata.name.len() > NAME_MAX_BYTES {
            let detail = format!("must be no more than {NAME_MAX_BYTES} characters");
            errors.push(Path::new("metadata").child("name").invalid(&object.metadata.name, detail));
        }
        validate_spec(&object.spec, None, &cx.gates, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &CronJob, old: &CronJob) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint != Endpoint::Status {
            validate_spec(&object.spec, Some(&old.spec), &cx.gates, &mut errors);
        }
        errors
    }

    fn warnings(object: &CronJob, old: Option<&CronJob>) -> Vec<String> {
        let mut warnings = workload::name_warnings(&object.metadata, old.is_none());
        if old.is_none_or(|old| old.metadata.generation != object.metadata.generation) {
            warnings.extend(job_validation::warnings("spec.jobTemplate.spec", &object.spec.job_template.spec));
            let template = &object.spec.job_template.spec.template;
            let path = Path::new("spec").child("jobTemplate").child("spec").child("template");
            warnings.extend(workload::template_warnings(&path, &object.metadata, None, template));
        }
        if old.is_some() && object.spec.schedule.contains("TZ") {
            // Upstream doubles the path, too.
            warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
        }
        warnings
    }

    fn set_defaults(object: &mut CronJob) {
        crate::pod_spec::defaults::set_defaults(&mut object.spec.job_template.spec.template.spec);
    }

    fn pods(object: &CronJob) -> Option<(Path, &PodSpec)> {
        Some((
            Path::new("spec").child("jobTemplate").child("spec").child("template").child("spec"),
            &object.spec.job_template.spec.template.spec,
        ))
    }
}

fn suspended(suspend: Option<bool>) -> &'static str {
    match suspend {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    }
}

/// The names of jobs are 11 characters longer than their cron job's.
const NAME_MAX_BYTES: usize = 52;

fn validate_spec(spec: &CronJobSpec, old: Option<&CronJobSpec>, gates: &Gates, errors: &mut ErrorList) {
    let path = Path::new("spec");
    let at = path.child("schedule");
    if field_rules::required(&at, &spec.schedule, errors) {
        validate_schedule(&at, spec, old, errors);
    }
    let deadline = spec.starting_deadline_seconds.unwrap_or(0);
    field_rules::not_negative(&path.child("startingDeadlineSeconds"), deadline, errors);
    if let Some(zone) = spec.time_zone.as_ref().filter(|_| old.is_none_or(|old| old.time_zone != spec.time_zone)) {
        validate_time_zone(&path.child("timeZone"), zone, errors);
    }
    field_rules::choice(&path.child("concurrencyPolicy"), &spec.concurrency_policy, concurrency_policy::ALL, errors);
    let template = path.child("jobTemplate").child("spec");
    let job = &spec.job_template.spec;
    job_validation::validate_spec(&template, job, old.map(|old| &old.job_template.spec), gates, errors);
    if let Some(selector) = &job.selector {
        let value = workload::selector_value(Some(selector));
        errors.push(template.child("selector").invalid(value, "`selector` will be auto-generated"));
    }
    if job.manual_selector == Some(true) {
        errors.push(template.child("manualSelector").not_supported_in_order(BadValue::from(true), &["nil", "false"]));
    }
    for (field, limit) in [
        ("successfulJobsHistoryLimit", spec.successful_jobs_history_limit),
        ("failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ] {
        field_rules::not_negative(&path.child(field), limit.unwrap_or(0).into(), errors);
    }
}

fn validate_schedule(at: &Path, spec: &CronJobSpec, old: Option<&CronJobSpec>, errors: &mut ErrorList) {
    let schedule = &spec.schedule;
    if let Err(error) = Schedule::parse(schedule) {
        errors.push(at.invalid(schedule, error.to_string()));
    }
    if !schedule.contains("TZ") {
        return;
    }
    if old.is_none_or(|old| !old.schedule.contains("TZ")) {
        errors.push(at.invalid(schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
    } else if spec.time_zone.is_some() {
        errors.push(at.invalid(schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"));
    }
}

fn validate_time_zone(path: &Path, zone: &str, errors: &mut ErrorList) {
    let is_part = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
        (1..=14).contains(&part.len())
            && part.bytes().all(allowed)
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
    };
    if zone.is_empty() {
        errors.push(path.invalid(zone, "timeZone must be nil or non-empty string"));
        return;
    }
    if !zone.split('/').all(is_part) {
        errors.push(path.invalid(zone, format!("unknown time zone {zone}")));
        return;
    }
    if zone.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(path.invalid(zone, detail));
    }
    // The exact word names the machine's own zone upstream, which is read without fault.
    if zone != "Local"
        && let Err(error) = TimeZone::find(zone)
    {
        errors.push(path.invalid(zone, error.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(errors: &ErrorList) -> String {
        errors.iter().map(|error| error.detail.as_str()).collect::<Vec<_>>().join(";")
    }

    #[test]
    fn zones_have_names() {
        for (zone, expected) in [
            ("Europe/Berlin", ""),
            ("Etc/GMT+5", ""),
            ("", "timeZone must be nil or non-empty string"),
            ("../x", "unknown time zone ../x"),
            ("Mars/Base", "unknown time zone Mars/Base"),
            ("Local", "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"),
            (
                "local",
                "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones;unknown time zone \
                 local",
            ),
        ] {
            let mut errors = ErrorList::new();
            validate_time_zone(&Path::new("timeZone"), zone, &mut errors);
            assert_eq!(details(&errors), expected, "{zone}");
        }
    }

    #[test]
    fn schedules_are_understood_and_keep_zones_out() {
        const NO_ZONE: &str = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        const NOT_BOTH: &str = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        for (schedule, stored, zone, expected) in [
            ("*/5 * * * *", None, None, ""),
            ("@every 1h", None, Some("UTC"), ""),
            ("* * *", None, None, "expected exactly 5 fields, found 3: [* * *]"),
            ("TZ=UTC * * * * *", None, None, NO_ZONE),
            ("TZ=UTC * * * * *", Some("* * * * *"), None, NO_ZONE),
            ("TZ=UTC * * * * *", Some("TZ=UTC 1 * * * *"), None, ""),
            ("TZ=UTC * * * * *", Some("TZ=UTC 1 * * * *"), Some("UTC"), NOT_BOTH),
        ] {
            let spec = |schedule: &str| CronJobSpec {
                schedule: schedule.into(),
                time_zone: zone.map(Into::into),
                ..CronJobSpec::default()
            };
            let mut errors = ErrorList::new();
            let old = stored.map(spec);
            validate_schedule(&Path::new("schedule"), &spec(schedule), old.as_ref(), &mut errors);
            assert_eq!(details(&errors), expected, "{schedule}");
        }
    }
}
