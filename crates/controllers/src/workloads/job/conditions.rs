//! The conditions of jobs.

use api_machinery::time::Time;
use api_types::batch_v1::constants::job_condition_type::{COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET};
use api_types::batch_v1::{Job, JobCondition};
use component_helpers::conditions::is_true;

/// A condition that holds from now on.
pub(super) fn condition(type_: &str, reason: &str, message: impl Into<String>, now: Time) -> JobCondition {
    JobCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        last_probe_time: now,
        last_transition_time: now,
        reason: reason.to_owned(),
        message: message.into(),
    }
}

/// Whether the job has come to its end.
pub(super) fn is_finished(job: &Job) -> bool {
    is_true(&job.status.conditions, COMPLETE) || is_true(&job.status.conditions, FAILED)
}

/// The last condition of a job whose fate this one decides: complete, or failed.
pub(super) fn terminal(fate: &JobCondition, now: Time) -> JobCondition {
    let type_ = if is_success(fate) { COMPLETE } else { FAILED };
    condition(type_, &fate.reason, fate.message.clone(), now)
}

/// Whether the fate is a good one.
pub(super) fn is_success(fate: &JobCondition) -> bool {
    fate.type_ == SUCCESS_CRITERIA_MET
}

/// The fate that is decided already.
pub(super) fn decided(job: &Job) -> Option<JobCondition> {
    let find = |type_| job.status.conditions.iter().find(|it| it.type_ == type_ && it.status == "True");
    find(SUCCESS_CRITERIA_MET).or_else(|| find(FAILURE_TARGET)).cloned()
}

/// Sets a condition; says whether its status or reason is new. One that would be new and not hold is left out.
pub(super) fn set(conditions: &mut Vec<JobCondition>, new: JobCondition) -> bool {
    match conditions.iter_mut().find(|old| old.type_ == new.type_) {
        Some(old) if (&old.status, &old.reason, &old.message) == (&new.status, &new.reason, &new.message) => false,
        Some(old) => {
            *old = new;
            true
        }
        None if new.status == "False" => false,
        None => {
            conditions.push(new);
            true
        }
    }
}
