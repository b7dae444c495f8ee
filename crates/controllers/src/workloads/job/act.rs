//! Creates and removes the pods of a job.

use std::sync::Arc;

use api_machinery::meta::ObjectMeta;
use api_types::batch_v1::Job;
use api_types::batch_v1::constants::JOB_TRACKING_FINALIZER;
use api_types::core_v1::Pod;
use client::{Client, ClientError, ObjectKey, Patch};
use component_helpers::pod_state;
use controller::{Cx, ReconcileError, in_batches};
use futures_util::future::join_all;
use serde_json::json;

use super::super::owners::key;
use super::super::pod_control::PodControl;
use super::manage::Plan;
use super::pod_content::{pod_for_index, pod_of};
use super::view::View;
use super::{JobController, Managed, PODS, gang};

/// Takes the finalizer off a pod. Finalizers of others stay as they are.
pub(super) async fn release(client: &Client, pod: &Pod) -> Result<(), ClientError> {
    release_as(client, pod, json!({"uid": pod.metadata.uid})).await
}

/// The same, unless the pod is another than was seen: it may have ended meanwhile, and has to be counted then.
async fn release_unchanged(client: &Client, pod: &Pod) -> Result<(), ClientError> {
    let ObjectMeta { uid, resource_version, .. } = &pod.metadata;
    release_as(client, pod, json!({"uid": uid, "resourceVersion": resource_version})).await
}

/// The same of a pod with this metadata.
async fn release_as(client: &Client, pod: &Pod, mut metadata: serde_json::Value) -> Result<(), ClientError> {
    metadata["$deleteFromPrimitiveList/finalizers"] = json!([JOB_TRACKING_FINALIZER]);
    let patch = Patch::Strategic(json!({"metadata": metadata}));
    let pods = client.namespaced::<Pod>(&pod.metadata.namespace);
    match pods.patch(&pod.metadata.name, &patch).await {
        Err(error) if error.is_not_found() => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// Counts a pod that was deleted as on its way out, no longer as active: whether it is gone, the watch will tell.
fn leave_out(managed: &mut Managed, pod: &Pod) {
    managed.active -= 1;
    managed.terminating += 1;
    managed.ready -= i32::from(pod_state::is_ready(pod));
}

/// A pod as the job wants it; of jobs with indexes, for this one.
fn new_pod(view: &View, index: Option<&i32>) -> Pod {
    let mut pod = match index {
        Some(index) => pod_for_index(&view.job, *index, view.kept.get(index).map(|kept| &**kept)),
        None => pod_of(&view.job),
    };
    if let Some(group) = &view.group {
        gang::join(&mut pod, group);
    }
    pod
}

impl JobController {
    /// Deletes all active pods of a job whose fate is decided; says whether all are gone or going. Their finalizers
    /// stay, so that they are counted.
    pub(super) async fn delete_active(&self, cx: &Cx, view: &View, managed: &mut Managed) -> bool {
        let control = PodControl::new(cx, &view.job);
        let outcomes = join_all(view.active.iter().map(|pod| control.delete(pod))).await;
        let mut all = true;
        for (pod, outcome) in view.active.iter().zip(outcomes) {
            match outcome {
                Ok(_) => leave_out(managed, pod),
                Err(error) => {
                    all = false;
                    managed.error.get_or_insert(error.into());
                }
            }
        }
        all
    }

    /// Removes or creates pods so that as many are active as wanted.
    pub(super) async fn manage(&self, cx: &Cx, owner: &ObjectKey, view: &View) -> Managed {
        let plan = view.manage();
        let (look_again, action) = (plan.look_again, plan.action);
        let mut managed = Managed { look_again, action, ..Managed::before(view) };
        if !plan.remove.is_empty() {
            self.remove(cx, owner, view, &plan.remove, &mut managed).await;
        } else if plan.create > 0 {
            self.create(cx, owner, view, &plan, &mut managed).await;
        }
        managed
    }

    /// Removes pods without a trace: the finalizer goes first, so that they are not counted as failures.
    async fn remove(&self, cx: &Cx, owner: &ObjectKey, view: &View, pods: &[Arc<Pod>], managed: &mut Managed) {
        let expectations = &self.records.expectations;
        expectations.expect_deletions(owner, pods.iter().map(|pod| key(&**pod)));
        let control = &PodControl::new(cx, &view.job);
        let remove = |pod: &Arc<Pod>| {
            let pod = Arc::clone(pod);
            async move {
                release_unchanged(&cx.client, &pod)
                    .await
                    .map_err(|error| ReconcileError::failed(format!("removing completion finalizer: {error}")))?;
                Ok::<_, ReconcileError>(control.delete(&pod).await?)
            }
        };
        let outcomes = join_all(pods.iter().map(remove)).await;
        for (pod, outcome) in pods.iter().zip(outcomes) {
            if !matches!(outcome, Ok(true)) {
                expectations.deletion_observed(owner, &key(&**pod));
            }
            match outcome {
                Ok(_) => leave_out(managed, pod),
                Err(error) => {
                    managed.error.get_or_insert(error);
                }
            }
        }
    }

    async fn create(&self, cx: &Cx, owner: &ObjectKey, view: &View, plan: &Plan, managed: &mut Managed) {
        let expectations = &self.records.expectations;
        expectations.expect_creations(owner, plan.create);
        let control = &PodControl::new(cx, &view.job);
        let written = &self.records.written;
        let outcome = in_batches(plan.create, |number| async move {
            match control.create(&new_pod(view, plan.indexes.get(number))).await {
                Ok(made) => {
                    written.note(&view.job.metadata, PODS, &made.metadata.resource_version);
                    expectations.creation_answered(owner, &made.metadata.resource_version);
                }
                Err(error) if error.is_namespace_terminating() => {}
                Err(error) => {
                    expectations.creation_failed(owner);
                    return Err(error);
                }
            }
            Ok(())
        })
        .await;
        for _ in 0..outcome.skipped {
            expectations.creation_failed(owner);
        }
        self.records.metrics.created(view, outcome.done, outcome.errors.len());
        managed.active += i32::try_from(outcome.done).unwrap_or(i32::MAX);
        managed.error = outcome.errors.into_iter().next().map(ReconcileError::from);
    }

    /// Stores the status; the job takes on what the server answers.
    pub(super) async fn store(&self, cx: &Cx, job: &mut Job) -> Result<(), ClientError> {
        let jobs = cx.client.namespaced::<Job>(&job.metadata.namespace);
        let stored = jobs.update_status(job).await?;
        self.records.written.note(&job.metadata, super::JOBS, &stored.metadata.resource_version);
        job.metadata = stored.metadata;
        Ok(())
    }
}
