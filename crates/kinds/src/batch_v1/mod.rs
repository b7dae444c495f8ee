//! The kinds of batch/v1.

mod cron_job;
mod index_list;
mod job;
mod job_policies;
mod job_status;
mod job_validation;
#[cfg(test)]
mod tests;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<cron_job::CronJobRules>::new(), &Typed::<job::JobRules>::new()];
