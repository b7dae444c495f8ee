//! The kinds of autoscaling/v1.

mod annotations;
mod horizontal_pod_autoscaler;
#[cfg(test)]
mod hostile_tests;
mod metrics;
mod statuses;

pub(crate) use annotations::strip;

use crate::other_form::Converted;
use crate::rules::Rules;

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Converted::<horizontal_pod_autoscaler::FirstForm>::new()];
