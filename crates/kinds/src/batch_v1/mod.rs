//! The kinds of batch/v1.

mod cron_job;
mod job;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<cron_job::CronJobRules>::new(), &Typed::<job::JobRules>::new()];
