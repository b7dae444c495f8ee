//! The kinds of policy/v1.

mod pod_disruption_budget;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<pod_disruption_budget::PodDisruptionBudgetRules>::new()];
