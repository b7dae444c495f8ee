//! Whether a job has succeeded or failed as a whole.

use std::time::Duration;

use api_types::batch_v1::constants::job_condition_type::{FAILURE_TARGET, SUCCESS_CRITERIA_MET};
use api_types::batch_v1::constants::{
    JOB_REASON_BACKOFF_LIMIT_EXCEEDED, JOB_REASON_COMPLETIONS_REACHED, JOB_REASON_DEADLINE_EXCEEDED,
    JOB_REASON_FAILED_INDEXES, JOB_REASON_MAX_FAILED_INDEXES_EXCEEDED, JOB_REASON_POD_FAILURE_POLICY,
    JOB_REASON_SUCCESS_POLICY,
};
use api_types::batch_v1::{Job, JobCondition, SuccessPolicyRule};
use api_types::core_v1::Pod;

use super::conditions::{condition, decided};
use super::indexes::Indexes;
use super::policy::{Meaning, meaning};
use super::view::{View, completions, has_failed, is_indexed};

/// Whether no pods are to run for now.
pub(super) fn is_suspended(job: &Job) -> bool {
    job.spec.suspend == Some(true)
}

impl View {
    /// The job's fate, if it is decided; the first rule that says so counts.
    pub(super) fn fate(&self) -> Option<JobCondition> {
        decided(&self.job)
            .or_else(|| self.failure())
            .or_else(|| self.failure_of_indexes())
            .or_else(|| self.success_by_policy())
    }

    fn fails(&self, reason: &str, message: impl Into<String>) -> JobCondition {
        condition(FAILURE_TARGET, reason, message, self.now)
    }

    fn failure(&self) -> Option<JobCondition> {
        let failed = self.pods.iter().filter(|pod| has_failed(&self.job, pod));
        let by_policy = failed.filter_map(|pod| match meaning(&self.job, pod) {
            Meaning::FailsJob(message) => Some(message),
            _ => None,
        });
        if let Some(message) = by_policy.into_iter().next() {
            return Some(self.fails(JOB_REASON_POD_FAILURE_POLICY, message));
        }
        let limit = self.job.spec.backoff_limit.unwrap_or(6);
        if self.failure_count() > limit || restarts_too_often(&self.job, &self.pods, limit) {
            let message = "Job has reached the specified backoff limit";
            return Some(self.fails(JOB_REASON_BACKOFF_LIMIT_EXCEEDED, message));
        }
        let late = self.until_deadline().is_some_and(|left| left.is_zero());
        late.then(|| self.fails(JOB_REASON_DEADLINE_EXCEEDED, "Job was active longer than specified deadline"))
    }

    /// The time until the job's deadline; zero when it has passed.
    pub(super) fn until_deadline(&self) -> Option<Duration> {
        let deadline = u64::try_from(self.job.spec.active_deadline_seconds?).ok()?;
        let start = self.job.status.start_time.filter(|_| !is_suspended(&self.job))?;
        Some((start + Duration::from_secs(deadline)).since(self.now))
    }

    fn failure_of_indexes(&self) -> Option<JobCondition> {
        let given_up = self.given_up.as_ref()?.len();
        if self.job.spec.max_failed_indexes.is_some_and(|most| given_up > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(self.fails(JOB_REASON_MAX_FAILED_INDEXES_EXCEEDED, message));
        }
        let all_ended = given_up.saturating_add(self.done.len()) >= completions(&self.job);
        (given_up > 0 && all_ended).then(|| self.fails(JOB_REASON_FAILED_INDEXES, "Job has failed indexes"))
    }

    fn success_by_policy(&self) -> Option<JobCondition> {
        let policy = self.job.spec.success_policy.as_ref().filter(|_| is_indexed(&self.job))?;
        if self.done.len() == 0 {
            return None;
        }
        let met = |rule: &SuccessPolicyRule| is_met(rule, &self.done, completions(&self.job));
        let place = policy.rules.iter().position(met)?;
        let message = format!("Matched rules at index {place}");
        Some(condition(SUCCESS_CRITERIA_MET, JOB_REASON_SUCCESS_POLICY, message, self.now))
    }

    /// Success by having done all there is to do, when so many pods are active.
    pub(super) fn completion(&self, active: i32) -> Option<JobCondition> {
        let succeeded = self.success_count();
        let enough = match self.job.spec.completions {
            Some(completions) => succeeded >= completions,
            None => succeeded > 0,
        };
        (enough && active == 0).then(|| {
            let message = "Reached expected number of succeeded pods";
            condition(SUCCESS_CRITERIA_MET, JOB_REASON_COMPLETIONS_REACHED, message, self.now)
        })
    }
}

fn is_met(rule: &SuccessPolicyRule, done: &Indexes, completions: i32) -> bool {
    let Some(text) = &rule.succeeded_indexes else {
        return rule.succeeded_count.is_some_and(|count| done.len() >= count);
    };
    let listed = Indexes::parse(text, completions);
    done.shared_with(&listed) >= rule.succeeded_count.unwrap_or(listed.len())
}

/// Whether containers that are restarted in place have been so too often.
fn restarts_too_often(job: &Job, pods: &[std::sync::Arc<Pod>], limit: i32) -> bool {
    if job.spec.template.spec.restart_policy != "OnFailure" {
        return false;
    }
    let running = pods.iter().filter(|pod| matches!(pod.status.phase.as_str(), "Running" | "Pending"));
    let restarts = |pod: &std::sync::Arc<Pod>| {
        let statuses = pod.status.init_container_statuses.iter().chain(&pod.status.container_statuses);
        statuses.map(|status| status.restart_count).fold(0, i32::saturating_add)
    };
    let total = running.map(restarts).fold(0, i32::saturating_add);
    if limit == 0 { total > 0 } else { total >= limit }
}
