//! The kinds of apps/v1.

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;
mod stateful_set_validation;
#[cfg(test)]
mod tests;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<controller_revision::ControllerRevisionRules>::new(),
    &Typed::<daemon_set::DaemonSetRules>::new(),
    &Typed::<deployment::DeploymentRules>::new(),
    &Typed::<replica_set::ReplicaSetRules>::new(),
    &Typed::<stateful_set::StatefulSetRules>::new(),
];
