//! Empties namespaces that are being deleted, tells in conditions what is in the way, and lets go of them.

mod conditions;
mod content;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::Namespace;
use client::{Change, ClientError, Informer, ObjectKey, RateLimit};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use crate::Settings;
use content::Report;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "namespace-controller",
    aliases: &["namespace"],
    gates: &[],
    identity: "namespace-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

/// Gives those who still create objects, not knowing of the deletion, time to notice.
const GRACE: Duration = Duration::from_secs(5);
const FINALIZER: &str = "kubernetes";
const TERMINATING: &str = "Terminating";
/// Conflicts in a row after which the queue takes over.
const CONFLICTS: usize = 10;

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?;
    let (workers, period) = (settings.namespace_syncs, settings.namespace_sync_period);
    let limit = RateLimit { longest: Duration::from_secs(60), ..RateLimit::default() };
    let queue = build.queue_with("namespace", limit);
    let going = |change: &Change<Namespace>| {
        let going = !change.is_deleted() && change.object().metadata.deletion_timestamp.is_some();
        going.then(|| (change.key(), GRACE))
    };
    let namespaces = build.watch::<Namespace>().resync(period).enqueue_after(&queue, going).informer();
    build.run(&queue, workers, Arc::new(Emptying { namespaces }));
    Ok(())
}

struct Emptying {
    namespaces: Informer<Namespace>,
}

#[async_trait::async_trait]
impl Controller for Emptying {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        if self.namespaces.get(key).is_none() {
            return Ok(Next::Done);
        }
        let Some(live) = cx.client.all::<Namespace>().get_opt(&key.name).await? else { return Ok(Next::Done) };
        if live.metadata.deletion_timestamp.is_none() {
            return Ok(Next::Done);
        }
        let namespace = mark_terminating(cx, live).await?;
        if namespace.spec.finalizers.is_empty() {
            return Ok(Next::Done);
        }
        let report = content::delete(cx, &namespace).await;
        write_conditions(cx, &namespace, &report).await;
        let estimate = report.estimate;
        report.into_result()?;
        if estimate > 0 {
            return Ok(Next::After(Duration::from_secs(estimate / 2 + 1)));
        }
        finalize(cx, namespace).await?;
        Ok(Next::Done)
    }
}

/// Writes until nobody else was faster; the namespace must stay the same one.
async fn write_patiently<F, A>(cx: &Cx, mut namespace: Namespace, write: F) -> Result<Namespace, ReconcileError>
where
    F: Fn(Namespace) -> A,
    A: Future<Output = Result<Namespace, ClientError>>,
{
    let uid = namespace.metadata.uid.clone();
    for _ in 0..CONFLICTS {
        let name = namespace.metadata.name.clone();
        match write(namespace).await {
            Err(error) if error.is_conflict() => {}
            outcome => return Ok(outcome?),
        }
        namespace = cx.client.all::<Namespace>().get(&name).await?;
        if namespace.metadata.uid != uid {
            return Err(ReconcileError::failed("namespace uid has changed across retries"));
        }
    }
    Err(ReconcileError::failed("the namespace is being changed all the time"))
}

/// The API server does this with the deletion already; it is made sure of before anything is deleted.
async fn mark_terminating(cx: &Cx, namespace: Namespace) -> Result<Namespace, ReconcileError> {
    if namespace.status.phase == TERMINATING {
        return Ok(namespace);
    }
    write_patiently(cx, namespace, |mut namespace| async move {
        TERMINATING.clone_into(&mut namespace.status.phase);
        cx.client.all::<Namespace>().update_status(&namespace).await
    })
    .await
}

/// Conditions only inform: a failure to write them is no reason to stop.
async fn write_conditions(cx: &Cx, namespace: &Namespace, report: &Report) {
    let mut changed = namespace.clone();
    if !conditions::set(&mut changed.status.conditions, report, Time::from(cx.clock.wall())) {
        return;
    }
    if let Err(error) = cx.client.all::<Namespace>().update_status(&changed).await {
        tracing::debug!(%error, namespace = namespace.metadata.name, "Writing the conditions of a namespace failed");
    }
}

async fn finalize(cx: &Cx, namespace: Namespace) -> Result<(), ReconcileError> {
    let written = write_patiently(cx, namespace, |mut namespace| async move {
        namespace.spec.finalizers.retain(|finalizer| finalizer != FINALIZER);
        namespace.spec.finalizers.sort();
        cx.client.all::<Namespace>().update_part(&namespace, "finalize").await
    });
    match written.await {
        Err(ReconcileError::Client(error)) if error.is_not_found() => Ok(()),
        outcome => outcome.map(drop),
    }
}
