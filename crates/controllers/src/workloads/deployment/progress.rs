//! The `Progressing` condition: made progress, complete, timed out, paused.

use std::time::Duration;

use api_machinery::time::Time;
use api_types::apps_v1::constants::deployment_condition_type::PROGRESSING;
use api_types::apps_v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use component_helpers::conditions;
use controller::Next;

use super::arithmetic::progress_deadline;
use super::status::is_complete;

const COMPLETE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// A condition that was reached now.
pub(super) fn condition(type_: &str, status: &str, reason: &str, message: String, now: Time) -> DeploymentCondition {
    DeploymentCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        last_update_time: now,
        last_transition_time: now,
        reason: reason.to_owned(),
        message,
    }
}

/// The condition of this controller's own.
pub(super) fn progressing(status: &str, reason: &str, message: String, now: Time) -> DeploymentCondition {
    condition(PROGRESSING, status, reason, message, now)
}

/// The deployment's condition.
pub(super) fn find(deployment: &Deployment) -> Option<&DeploymentCondition> {
    conditions::find(&deployment.status.conditions, PROGRESSING)
}

/// Sets a condition. One of the same status and reason stays untouched; another moves to the end.
pub(super) fn set(conditions: &mut Vec<DeploymentCondition>, mut new: DeploymentCondition) {
    if let Some(old) = conditions::find(conditions, &new.type_) {
        if old.status == new.status && old.reason == new.reason {
            return;
        }
        if old.status == new.status {
            new.last_transition_time = old.last_transition_time;
        }
    }
    conditions::remove(conditions, &new.type_);
    conditions.push(new);
}

/// Notes that the deployment was paused or goes on, which restarts the clock.
pub(super) fn note_pause(deployment: &mut Deployment, now: Time) {
    if progress_deadline(deployment).is_none() {
        return;
    }
    let reason = find(deployment).map(|condition| condition.reason.clone()).unwrap_or_default();
    if reason == TIMED_OUT {
        return;
    }
    let condition = match (deployment.spec.paused, reason == PAUSED) {
        (true, false) => progressing("Unknown", PAUSED, "Deployment is paused".to_owned(), now),
        (false, true) => progressing("Unknown", "DeploymentResumed", "Deployment is resumed".to_owned(), now),
        _ => return,
    };
    set(&mut deployment.status.conditions, condition);
}

/// Sets the condition in the new status of a rollout's step.
pub(super) fn judge(deployment: &Deployment, status: &mut DeploymentStatus, new: Option<&ReplicaSet>, now: Time) {
    if progress_deadline(deployment).is_none() {
        conditions::remove(&mut status.conditions, PROGRESSING);
        return;
    }
    let current = find(deployment);
    let was_complete = current.is_some_and(|condition| condition.reason == COMPLETE);
    if was_complete && status.replicas == status.updated_replicas {
        return;
    }
    let about = new.map_or_else(
        || format!("Deployment \"{}\"", deployment.metadata.name),
        |set| format!("ReplicaSet \"{}\"", set.metadata.name),
    );
    if is_complete(deployment, status) {
        let message = format!("{about} has successfully progressed.");
        set(&mut status.conditions, progressing("True", COMPLETE, message, now));
    } else if made_progress(&deployment.status, status) {
        let mut condition = progressing("True", "ReplicaSetUpdated", format!("{about} is progressing."), now);
        if let Some(current) = current.filter(|current| current.status == "True") {
            condition.last_transition_time = current.last_transition_time;
        }
        // Replaced even if nothing but the time is new: the deadline counts from here.
        conditions::remove(&mut status.conditions, PROGRESSING);
        status.conditions.push(condition);
    } else if timed_out(deployment, now) {
        let message = format!("{about} has timed out progressing.");
        set(&mut status.conditions, progressing("False", TIMED_OUT, message, now));
    }
}

fn made_progress(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    new.updated_replicas > old.updated_replicas
        || new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        || new.ready_replicas > old.ready_replicas
        || new.available_replicas > old.available_replicas
}

/// When the deadline passes, counted from the last progress.
fn deadline(deployment: &Deployment) -> Option<Time> {
    let seconds = u64::try_from(progress_deadline(deployment)?).ok()?;
    find(deployment).map(|condition| condition.last_update_time + Duration::from_secs(seconds))
}

fn timed_out(deployment: &Deployment, now: Time) -> bool {
    let Some(condition) = find(deployment) else { return false };
    let late = || deadline(deployment).is_some_and(|deadline| deadline < now);
    condition.reason != COMPLETE && (condition.reason == TIMED_OUT || late())
}

/// When to look again so that a rollout that stands still is found out.
pub(super) fn look_again(deployment: &Deployment, status: &DeploymentStatus, now: Time) -> Option<Next> {
    let deadline = deadline(deployment)?;
    if is_complete(deployment, status) || find(deployment).is_none_or(|condition| condition.reason == TIMED_OUT) {
        return None;
    }
    let left = deadline.seconds_since(now);
    let Ok(left @ 1..) = u64::try_from(left) else { return Some(Next::Again) };
    Some(Next::After(Duration::from_secs(left + 1)))
}
