//! Lets pods go whose job is gone or finished: nobody will count them, and the finalizer would hold them for ever.

use api_types::batch_v1::Job;
use api_types::core_v1::Pod;
use client::{Informer, ObjectKey};
use controller::{Controller, Cx, Next, ReconcileError, controller_of};

use super::super::owners::resolve;
use super::conditions::is_finished;
use super::view::is_tracked;
use super::{act, is_managed_elsewhere};

/// Works on pods.
pub(super) struct Orphans {
    pub(super) jobs: Informer<Job>,
    pub(super) pods: Informer<Pod>,
}

#[async_trait::async_trait]
impl Controller for Orphans {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(pod) = self.pods.get(key).filter(|pod| is_tracked(pod)) else { return Ok(Next::Done) };
        if must_wait(&pod, resolve(&self.jobs, &pod.metadata).as_deref()) {
            return Ok(Next::Done);
        }
        act::release(&cx.client, &pod).await?;
        Ok(Next::Done)
    }
}

/// Whether the pod's controller, or `job` where that is one, still has a use for the finalizer.
fn must_wait(pod: &Pod, job: Option<&Job>) -> bool {
    let by_other =
        controller_of(&pod.metadata).is_some_and(|owner| owner.kind != "Job" || owner.api_version != "batch/v1");
    by_other || job.is_some_and(|job| is_managed_elsewhere(job) || !is_finished(job))
}
