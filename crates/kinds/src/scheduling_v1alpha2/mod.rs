//! The kinds of scheduling.k8s.io/v1alpha2.

mod group_validation;
mod pod_group;
#[cfg(test)]
mod tests;
mod workload;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] =
    &[&Typed::<pod_group::PodGroupRules>::new(), &Typed::<workload::WorkloadRules>::new()];
