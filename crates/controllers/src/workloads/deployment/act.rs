//! Carries a plan out, one write after the other; the first failure ends it and the next reconciliation plans anew.

use api_machinery::meta::{DeleteOptions, Preconditions};
use api_types::apps_v1::{Deployment, ReplicaSet};
use client::{ClientError, EventType};
use controller::{Cx, Next, ReconcileError};

use super::arithmetic::progress_deadline;
use super::plan::{Actions, Observed, SetUpdate};
use super::{progress, rollback};

/// Carries the actions out.
pub(super) async fn act(cx: &Cx, observed: &Observed, actions: Actions) -> Result<Next, ReconcileError> {
    let namespace = &observed.stored.metadata.namespace;
    let written = write_sets(cx, observed, &actions.updates).await;
    if written.is_err() && actions.reports_anyway {
        write_status(cx, observed, &actions.deployment).await?;
    }
    written?;
    let sets = cx.client.namespaced::<ReplicaSet>(namespace);
    for set in &actions.deletes {
        // At the version that was looked at: if it was scaled up meanwhile, by a rollback, its pods must stay.
        let seen = Preconditions { uid: Some(set.uid.clone()), resource_version: Some(set.resource_version.clone()) };
        match sets.delete(&set.name, &DeleteOptions { preconditions: Some(seen), ..DeleteOptions::default() }).await {
            Err(error) if error.is_not_found() => {}
            outcome => drop(outcome?),
        }
    }
    if let Some(outcome) = actions.rollback {
        roll_back(cx, &outcome).await?;
        return Ok(Next::Done);
    }
    write_status(cx, observed, &actions.deployment).await?;
    Ok(actions.next.unwrap_or(Next::Done))
}

async fn write_sets(cx: &Cx, observed: &Observed, updates: &[SetUpdate]) -> Result<(), ClientError> {
    for update in updates {
        write_set(cx, observed, update).await?;
    }
    Ok(())
}

async fn write_set(cx: &Cx, observed: &Observed, update: &SetUpdate) -> Result<(), ClientError> {
    let set = &update.set;
    cx.client.namespaced::<ReplicaSet>(&set.metadata.namespace).update(set).await?;
    if let Some((from, to)) = update.scaled {
        let way = if to > from { "up" } else { "down" };
        let message = format!("Scaled {way} replica set {} from {from} to {to}", set.metadata.name);
        cx.events.event(&*observed.stored, EventType::Normal, "ScalingReplicaSet", message);
    }
    Ok(())
}

/// The status strategy of deployments keeps annotations, so that the revision is written along with the status.
async fn write_status(cx: &Cx, observed: &Observed, deployment: &Deployment) -> Result<(), ClientError> {
    if *deployment == *observed.stored {
        return Ok(());
    }
    let deployments = cx.client.namespaced::<Deployment>(&deployment.metadata.namespace);
    deployments.update_status(deployment).await.map(drop)
}

async fn roll_back(cx: &Cx, outcome: &rollback::Rollback) -> Result<(), ClientError> {
    let deployment = &outcome.deployment;
    let deployments = cx.client.namespaced::<Deployment>(&deployment.metadata.namespace);
    let (reason, message) = &outcome.event;
    if !outcome.done {
        cx.events.event(deployment, EventType::Warning, reason, message.clone());
    }
    deployments.update(deployment).await?;
    if outcome.done {
        cx.events.event(deployment, EventType::Normal, reason, message.clone());
    }
    Ok(())
}

/// Counts that another template has the same hash, so that the next one differs.
pub(super) async fn count_collision(cx: &Cx, observed: &Observed) -> Result<(), ClientError> {
    let mut deployment = observed.deployment.clone();
    let count = deployment.status.collision_count.unwrap_or(0);
    deployment.status.collision_count = Some(count.saturating_add(1));
    write_status(cx, observed, &deployment).await
}

/// Tells that the new replica set could not be created.
pub(super) async fn report_creation_failure(cx: &Cx, observed: &Observed, name: &str, error: &ClientError) {
    let message = format!("Failed to create new replica set \"{name}\": {error}");
    let mut deployment = observed.deployment.clone();
    if progress_deadline(&deployment).is_some() {
        let condition = progress::progressing("False", "ReplicaSetCreateError", message.clone(), observed.now);
        progress::set(&mut deployment.status.conditions, condition);
        if let Err(error) = write_status(cx, observed, &deployment).await {
            tracing::debug!(%error, "Failure not written to the status");
        }
    }
    cx.events.event(&*observed.stored, EventType::Warning, "ReplicaSetCreateError", message);
}
