//! Validation of the status of a job. Several rules look only at what a write changes, so that jobs which break them
//! already stay writable.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_types::batch_v1::{Job, JobStatus};
use component_helpers::conditions::is_true;

use super::index_list;
use super::job_policies::unprinted;
use super::job_validation::is_indexed;
use crate::field_rules::IMMUTABLE;
use crate::{internal_json, workload};

/// Whether a stored job is suspended with no pods left, so that its template may still change.
pub(super) fn is_editable(job: &Job) -> bool {
    let has_stopped = job.status.start_time.is_none() || is_true(&job.status.conditions, "Suspended");
    job.spec.suspend == Some(true) && job.status.active == 0 && has_stopped
}

fn is_finished(status: &JobStatus) -> bool {
    is_true(&status.conditions, "Complete") || is_true(&status.conditions, "Failed")
}

/// Checks the status of a job that is to replace `old`.
pub(super) fn validate(job: &Job, old: &Job, errors: &mut ErrorList) {
    let path = Path::new("status");
    let status = &job.status;
    let counters = [
        ("active", status.active.into()),
        ("succeeded", status.succeeded.into()),
        ("failed", status.failed.into()),
        ("ready", status.ready.unwrap_or(0).into()),
        ("terminating", status.terminating.unwrap_or(0).into()),
    ];
    workload::not_negative(&path, &counters, errors);
    validate_uncounted(&path, status, errors);
    let conditions = Conditions { path: path.child("conditions"), job, old };
    conditions.check_ends(errors);
    validate_completion(&path, job, old, errors);
    conditions.check_reasons(errors);
    validate_finished(&path, job, old, errors);
    validate_indexes(&path, job, old, errors);
    validate_settled(&path, job, old, errors);
    conditions.check_lasting(errors);
    validate_changes(&path, job, old, errors);
    conditions.check_criteria(errors);
}

fn validate_uncounted(path: &Path, status: &JobStatus, errors: &mut ErrorList) {
    let Some(uncounted) = &status.uncounted_terminated_pods else { return };
    let path = path.child("uncountedTerminatedPods");
    let mut seen = std::collections::HashSet::new();
    for (field, uids) in [("succeeded", &uncounted.succeeded), ("failed", &uncounted.failed)] {
        for (index, uid) in uids.iter().enumerate() {
            let at = path.child(field).index(index);
            if uid.is_empty() {
                errors.push(at.invalid(BadValue::named(uid), "must not be empty"));
            } else if !seen.insert(uid) {
                errors.push(at.duplicate(BadValue::named(uid)));
            }
        }
    }
}

/// The rules of conditions, which upstream checks in four goes between the others.
struct Conditions<'a> {
    path: Path,
    job: &'a Job,
    old: &'a Job,
}

impl Conditions<'_> {
    fn is(&self, type_: &str) -> bool {
        is_true(&self.job.status.conditions, type_)
    }

    fn was(&self, type_: &str) -> bool {
        is_true(&self.old.status.conditions, type_)
    }

    fn changed(&self, types: [&str; 2]) -> bool {
        types.iter().any(|type_| self.is(type_) != self.was(type_))
    }

    fn refuse(&self, is_bad: bool, detail: &str, errors: &mut ErrorList) {
        if is_bad {
            errors.push(unprinted(&self.path, detail));
        }
    }

    /// A job has one end.
    fn check_ends(&self, errors: &mut ErrorList) {
        let complete = self.is("Complete");
        let both = complete && self.is("Failed") && self.changed(["Complete", "Failed"]);
        self.refuse(both, "cannot set Complete=True and Failed=true conditions", errors);
        let both = complete && self.is("FailureTarget") && self.changed(["Complete", "FailureTarget"]);
        self.refuse(both, "cannot set Complete=True and FailureTarget=true conditions", errors);
    }

    /// What announces an end comes before it.
    fn check_reasons(&self, errors: &mut ErrorList) {
        let failed = self.is("Failed");
        let touched = failed != self.was("Failed") || self.job.status.failed_indexes != self.old.status.failed_indexes;
        let detail = "cannot set Failed=True condition without the FailureTarget=true condition";
        self.refuse(touched && failed && !self.is("FailureTarget"), detail, errors);
        let touched = self.changed(["Complete", "SuccessCriteriaMet"]);
        let detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        self.refuse(touched && self.is("Complete") && !self.is("SuccessCriteriaMet"), detail, errors);
    }

    /// An end stays.
    fn check_lasting(&self, errors: &mut ErrorList) {
        for type_ in ["Failed", "Complete", "FailureTarget"] {
            let detail = format!("cannot disable the terminal {type_}=True condition");
            self.refuse(self.was(type_) && !self.is(type_), &detail, errors);
        }
    }

    /// What goes with a success that was announced.
    fn check_criteria(&self, errors: &mut ErrorList) {
        let (met, was_met) = (self.is("SuccessCriteriaMet"), self.was("SuccessCriteriaMet"));
        let detail = "cannot set SuccessCriteriaMet=True and Failed=true conditions";
        self.refuse(met && self.is("Failed"), detail, errors);
        let detail = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions";
        self.refuse(met && self.is("FailureTarget"), detail, errors);
        let needs_met = self.job.spec.success_policy.is_some();
        let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        self.refuse(needs_met && self.is("Complete") && !met, detail, errors);
        self.refuse(was_met && !met, "cannot disable the SuccessCriteriaMet=True condition", errors);
        let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        self.refuse(self.was("Complete") && !was_met && met, detail, errors);
    }
}

/// Counters never go back, and times that were set stay.
fn validate_changes(path: &Path, job: &Job, old: &Job, errors: &mut ErrorList) {
    let (new, stored) = (&job.status, &old.status);
    if new.failed < stored.failed {
        errors.push(path.child("failed").invalid(new.failed, "cannot decrease the failed counter"));
    }
    // An indexed job that is scaled down forgets the successes of the indexes it loses.
    let is_elastic =
        is_indexed(&job.spec) && job.spec.completions.is_some() && job.spec.completions == job.spec.parallelism;
    if new.succeeded < stored.succeeded && !is_elastic {
        errors.push(path.child("succeeded").invalid(new.succeeded, "cannot decrease the succeeded counter"));
    }
    if stored.completion_time.is_some()
        && new.completion_time.is_some()
        && new.completion_time != stored.completion_time
    {
        errors.push(path.child("completionTime").invalid(new.completion_time, IMMUTABLE));
    }
    let start_changed = new.start_time != stored.start_time;
    let is_resuming = is_true(&stored.conditions, "Suspended") && !is_true(&new.conditions, "Suspended");
    if start_changed && stored.start_time.is_some() && job.spec.suspend != Some(true) && !is_resuming {
        let detail = "field is immutable for unsuspended job once set";
        errors.push(path.child("startTime").invalid(new.start_time, detail));
    }
}

fn validate_completion(path: &Path, job: &Job, old: &Job, errors: &mut ErrorList) {
    let (new, stored) = (&job.status, &old.status);
    let completed = path.child("completionTime");
    let is_complete = is_true(&new.conditions, "Complete");
    let time_changed = new.completion_time != stored.completion_time;
    if is_complete != is_true(&stored.conditions, "Complete") || time_changed {
        match new.completion_time {
            Some(time) if !is_complete => {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                errors.push(completed.invalid(time, detail));
            }
            None if is_complete => errors.push(completed.required("completionTime is required for Complete jobs")),
            _ => {}
        }
    }
    let start_changed = new.start_time != stored.start_time;
    if let (Some(start), Some(end)) = (new.start_time, new.completion_time)
        && (start_changed || time_changed)
        && end.seconds_since(start) < 0
    {
        errors.push(completed.invalid(end, "must be equal to or after `startTime`"));
    }
}

fn validate_finished(path: &Path, job: &Job, old: &Job, errors: &mut ErrorList) {
    let (new, stored) = (&job.status, &old.status);
    let just_finished = !is_finished(stored);
    if !is_finished(new) {
        return;
    }
    if new.active > 0 && (just_finished || new.active != stored.active) {
        errors.push(path.child("active").invalid(new.active, "active>0 is invalid for finished job"));
    }
    let never_starts = job.spec.suspend == Some(true) && job.spec.completions == Some(0);
    let touched = just_finished || new.start_time != stored.start_time;
    if new.start_time.is_none() && touched && !never_starts {
        errors.push(path.child("startTime").required("startTime is required for finished job"));
    }
    let touched = just_finished || new.uncounted_terminated_pods != stored.uncounted_terminated_pods;
    if let Some(uncounted) = new.uncounted_terminated_pods.as_ref().filter(|_| touched)
        && !(uncounted.succeeded.is_empty() && uncounted.failed.is_empty())
    {
        let value = internal_json::bad_value(uncounted);
        errors.push(path.child("uncountedTerminatedPods").invalid(value, "must be empty for finished job"));
    }
}

/// The last of what a status must be by itself.
fn validate_settled(path: &Path, job: &Job, old: &Job, errors: &mut ErrorList) {
    let (new, stored) = (&job.status, &old.status);
    let touched = !is_finished(stored) || new.terminating != stored.terminating;
    if let Some(terminating) = new.terminating.filter(|count| is_finished(new) && touched && *count > 0) {
        errors.push(path.child("terminating").invalid(terminating, "terminating>0 is invalid for finished job"));
    }
    let touched = new.ready != stored.ready || new.active != stored.active;
    if let Some(ready) = new.ready.filter(|ready| touched && *ready > new.active) {
        errors.push(path.child("ready").invalid(ready, "cannot set more ready pods than active"));
    }
}

fn validate_indexes(path: &Path, job: &Job, old: &Job, errors: &mut ErrorList) {
    let (new, stored) = (&job.status, &old.status);
    let done_changed = new.completed_indexes != stored.completed_indexes;
    let failed_changed = new.failed_indexes != stored.failed_indexes;
    let limit = job.spec.completions;
    let has_limit_per_index = job.spec.backoff_limit_per_index.is_some();
    let (done_at, failed_at) = (path.child("completedIndexes"), path.child("failedIndexes"));
    let done = limit.map(|limit| index_list::parse(&new.completed_indexes, limit));
    let failed = limit.filter(|_| has_limit_per_index).zip(new.failed_indexes.as_deref());
    let failed = failed.map(|(limit, text)| index_list::parse(text, limit));
    if let (Some(Err(reason)), true) = (&done, done_changed) {
        errors.push(done_at.invalid(&new.completed_indexes, format!("error parsing completedIndexes: {reason}")));
    }
    if let (Some(Err(reason)), true) = (&failed, failed_changed) {
        let value = new.failed_indexes.as_deref().unwrap_or_default();
        errors.push(failed_at.invalid(value, format!("error parsing failedIndexes: {reason}")));
    }
    if done_changed && !new.completed_indexes.is_empty() && !is_indexed(&job.spec) {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.push(done_at.invalid(&new.completed_indexes, detail));
    }
    if let Some(text) = new.failed_indexes.as_ref().filter(|_| failed_changed && !has_limit_per_index) {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.push(failed_at.invalid(text, detail));
    }
    if let (Some(Ok(done)), Some(Ok(failed)), true) = (done, failed, done_changed || failed_changed)
        && let Some(first) = first_shared(&done, &failed)
    {
        let value = new.failed_indexes.as_deref().unwrap_or_default();
        errors.push(failed_at.invalid(value, format!("failedIndexes and completedIndexes overlap at index: {first}")));
    }
}

/// The first index in both lists, which are in order.
fn first_shared(one: &[(i32, i32)], other: &[(i32, i32)]) -> Option<i32> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    while let (Some((a, a_end)), Some((b, b_end))) = (one.peek(), other.peek()) {
        if a_end < b {
            one.next();
        } else if b_end < a {
            other.next();
        } else {
            return Some(*a.max(b));
        }
    }
    None
}
