//! Creates and deletes pods of a daemon set.

use std::sync::Arc;

use api_types::apps_v1::DaemonSet;
use api_types::core_v1::Pod;
use controller::{Cx, ReconcileError, in_batches};
use futures_util::future::join_all;

use super::super::owners::key;
use super::super::pod_control::PodControl;
use super::pod_content::pod_for;
use super::{DaemonSetController, PODS};

/// Most pods that are created, and that are deleted, at a time.
const BURST: usize = 250;

impl DaemonSetController {
    /// Creates a pod for each node and deletes the pods, with all errors in the answer.
    pub(super) async fn sync_pods(
        &self,
        cx: &Cx,
        set: &DaemonSet,
        hash: &str,
        create: &[String],
        delete: &[Arc<Pod>],
    ) -> Result<(), ReconcileError> {
        let create = create.get(..BURST).unwrap_or(create);
        let delete = delete.get(..BURST).unwrap_or(delete);
        if create.is_empty() && delete.is_empty() {
            return Ok(());
        }
        self.expectations.expect(&key(set), create.len(), delete.iter().map(|pod| key(&**pod)));
        let mut errors = self.create(cx, set, hash, create).await;
        errors.extend(self.delete(cx, set, delete).await);
        ReconcileError::join(errors)
    }

    async fn create(&self, cx: &Cx, set: &DaemonSet, hash: &str, nodes: &[String]) -> Vec<ReconcileError> {
        let control = &PodControl::new(cx, set);
        let owner = &key(set);
        let outcome = in_batches(nodes.len(), |index| async move {
            let Some(node) = nodes.get(index) else { return Ok(()) };
            match control.create(&pod_for(set, node, hash)).await {
                Ok(made) => {
                    self.written.note(&set.metadata, PODS, &made.metadata.resource_version);
                    self.expectations.creation_answered(owner, &made.metadata.resource_version);
                }
                Err(error) if error.is_namespace_terminating() => {}
                Err(error) => {
                    self.expectations.creation_failed(owner);
                    return Err(error);
                }
            }
            Ok(())
        })
        .await;
        for _ in 0..outcome.skipped {
            self.expectations.creation_failed(owner);
        }
        outcome.errors.into_iter().map(ReconcileError::from).collect()
    }

    async fn delete(&self, cx: &Cx, set: &DaemonSet, pods: &[Arc<Pod>]) -> Vec<ReconcileError> {
        let control = PodControl::new(cx, set);
        let owner = key(set);
        let outcomes = join_all(pods.iter().map(|pod| control.delete(pod))).await;
        let mut errors = Vec::new();
        for (pod, outcome) in pods.iter().zip(outcomes) {
            if !matches!(outcome, Ok(true)) {
                self.expectations.deletion_observed(&owner, &key(&**pod));
            }
            errors.extend(outcome.err().map(ReconcileError::from));
        }
        errors
    }
}
