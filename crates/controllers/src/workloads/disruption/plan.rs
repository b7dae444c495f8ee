//! The status of a budget, by its pods and what is expected of them.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::intstr::{IntOrString, Rounding};
use api_machinery::meta::Condition;
use api_machinery::time::Time;
use api_types::core_v1::Pod;
use api_types::policy_v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use component_helpers::{conditions, pod_state};
use controller::ReconcileError;

/// How long an eviction that was allowed may take to show.
const EVICTION_LIMIT: Duration = Duration::from_secs(2 * 60);
const ALLOWED: &str = "DisruptionAllowed";

/// What is expected of the pods of a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) expected: i32,
    pub(super) desired: i32,
    /// There are pods without a controller, of which nobody knows how many there should be.
    pub(super) unmanaged: bool,
}

/// The new status, and what else follows.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) status: PodDisruptionBudgetStatus,
    /// Pods whose eviction was allowed, and that are still there.
    pub(super) overdue: Vec<Arc<Pod>>,
    /// When the next of them will be overdue.
    pub(super) again: Option<Duration>,
}

/// A number, or so many per cent of `total`, rounded up.
pub(super) fn share(value: &IntOrString, total: i32) -> Result<i32, ReconcileError> {
    value.scaled(total, Rounding::Up).map_err(|error| ReconcileError::failed(error.to_string()))
}

/// Decides.
pub(super) fn plan(budget: &PodDisruptionBudget, pods: &[Arc<Pod>], counted: Counted, now: Time) -> Plan {
    let mut status = budget.status.clone();
    let mut overdue = Vec::new();
    let mut again: Option<Duration> = None;
    status.disrupted_pods.retain(|name, since| {
        let Some(pod) = pods.iter().find(|pod| pod.metadata.name == *name) else { return false };
        if pod.metadata.deletion_timestamp.is_some() {
            return false;
        }
        let limit = *since + EVICTION_LIMIT;
        if limit < now {
            overdue.push(Arc::clone(pod));
            return false;
        }
        let left = limit.since(now).max(Duration::from_millis(1));
        again = Some(again.map_or(left, |other| other.min(left)));
        true
    });
    let healthy = pods.iter().filter(|pod| {
        let announced = status.disrupted_pods.contains_key(&pod.metadata.name);
        pod.metadata.deletion_timestamp.is_none() && !announced && pod_state::is_ready(pod)
    });
    let healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
    let room = if counted.expected <= 0 { 0 } else { healthy.saturating_sub(counted.desired).max(0) };
    status.current_healthy = healthy;
    status.desired_healthy = counted.desired;
    status.expected_pods = counted.expected;
    status.disruptions_allowed = room;
    status.observed_generation = budget.metadata.generation;
    let generation = status.observed_generation;
    let (value, reason) = if room > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    set_condition(&mut status, generation, value, reason, "", now);
    Plan { status, overdue, again }
}

/// The status where it could not be found out: nothing is allowed.
pub(super) fn failed(budget: &PodDisruptionBudget, error: &str, now: Time) -> PodDisruptionBudgetStatus {
    let mut status = budget.status.clone();
    status.disruptions_allowed = 0;
    let generation = status.observed_generation;
    set_condition(&mut status, generation, "False", "SyncFailed", error, now);
    status
}

fn set_condition(
    status: &mut PodDisruptionBudgetStatus,
    observed_generation: i64,
    value: &str,
    reason: &str,
    message: &str,
    now: Time,
) {
    let condition = Condition {
        type_: ALLOWED.to_owned(),
        status: value.to_owned(),
        observed_generation,
        last_transition_time: now,
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    conditions::set(&mut status.conditions, condition, now);
}

/// The warning of pods that nobody counts.
pub(super) fn unmanaged(selector: &str) -> String {
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, the \
         status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for \
         these pods please set \".spec.minAvailable\" field of the PDB to an integer value."
    )
}
