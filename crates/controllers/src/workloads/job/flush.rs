//! Writes down what has finished, lets the pods go, and ends the job; each step is stored before the next.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_types::batch_v1::constants::job_condition_type::COMPLETE;
use api_types::batch_v1::{JobCondition, JobStatus};
use api_types::core_v1::Pod;
use client::{EventType, ObjectKey};
use controller::{Cx, ReconcileError};
use futures_util::future::join_all;

use super::conditions::terminal;
use super::tracking::{Tracking, fold};
use super::view::View;
use super::{JobController, act};

impl JobController {
    /// Stores the status, removes finalizers of what is counted, and folds them into the counters.
    pub(super) async fn flush(
        &self,
        cx: &Cx,
        key: &ObjectKey,
        view: &mut View,
        stored: &JobStatus,
        fate: Option<JobCondition>,
    ) -> Result<(), ReconcileError> {
        let mut tracking = view.track(fate.as_ref());
        let mut last = stored.clone();
        // Nothing is as good as an empty list.
        last.uncounted_terminated_pods.get_or_insert_default();
        if view.job.status != last {
            self.store(cx, &mut view.job).await.map_err(|error| during("adding uncounted pods to status", &error))?;
            self.records.back_off.set(key, view.failures);
            self.records.metrics.counted(&view.job, &last);
            self.records.metrics.judged(&tracking.actions);
            last = view.job.status.clone();
        }
        let failed = self.release_all(cx, key, &mut tracking).await;
        fold(&mut view.job.status, &tracking.tracked);
        let finished = failed.is_none() && view.finish(fate.as_ref(), &tracking);
        if view.job.status != last {
            self.store(cx, &mut view.job)
                .await
                .map_err(|error| during("removing uncounted pods from status", &error))?;
            self.records.metrics.counted(&view.job, &last);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some(fate) = fate.filter(|_| finished) {
            self.records.finished.lock().insert(key.clone(), view.job.metadata.uid.clone());
            self.records.metrics.finished(&view.job, &fate);
            announce(cx, view, &fate);
        }
        Ok(())
    }

    /// Removes finalizers, in parallel; answers with the first failure.
    async fn release_all(&self, cx: &Cx, key: &ObjectKey, tracking: &mut Tracking) -> Option<ReconcileError> {
        let uids: BTreeSet<_> = tracking.release.iter().map(|pod| pod.metadata.uid.clone()).collect();
        self.records.removals.expect(key, uids);
        let release = |pod: &Arc<Pod>| {
            let pod = Arc::clone(pod);
            async move { act::release(&cx.client, &pod).await }
        };
        let outcomes = join_all(tracking.release.iter().map(release)).await;
        let mut first = None;
        for (pod, outcome) in tracking.release.iter().zip(outcomes) {
            let uid = &pod.metadata.uid;
            match outcome {
                Ok(()) => drop(tracking.tracked.remove(uid)),
                Err(error) => {
                    self.records.removals.observed(key, uid);
                    first.get_or_insert(ReconcileError::from(error));
                }
            }
        }
        first
    }
}

fn during(step: &str, error: &client::ClientError) -> ReconcileError {
    ReconcileError::failed(format!("tracking status: {step}: {error}"))
}

fn announce(cx: &Cx, view: &View, fate: &JobCondition) {
    let last = terminal(fate, view.now);
    if last.type_ == COMPLETE {
        cx.events.event(&view.job, EventType::Normal, "Completed", "Job completed");
    } else {
        cx.events.event(&view.job, EventType::Warning, &last.reason, last.message);
    }
}
