//! Keeps the revisions of a daemon set: finds or makes the current one and drops those that are no longer needed.

use std::sync::Arc;

use api_machinery::meta::DeleteOptions;
use api_types::apps_v1::constants::CONTROLLER_REVISION_HASH_LABEL_KEY as HASH_LABEL;
use api_types::apps_v1::{ControllerRevision, DaemonSet};
use api_types::core_v1::Pod;
use client::{Api, ClientError, Patch};
use component_helpers::selectors::selector_of;
use controller::{CONTROLLER_UID, Cx, ReconcileError, owned_and_orphans};
use serde_json::json;

use super::super::adoption::Claims;
use super::{DaemonSetController, revisions};

/// The revisions of a set.
pub(super) struct History {
    current: Arc<ControllerRevision>,
    old: Vec<Arc<ControllerRevision>>,
}

impl History {
    /// The hash that pods of the current template carry.
    pub(super) fn hash(&self) -> String {
        revisions::hash_of(&self.current).to_owned()
    }
}

fn api(cx: &Cx, set: &DaemonSet) -> Api<ControllerRevision> {
    cx.client.namespaced(&set.metadata.namespace)
}

impl DaemonSetController {
    /// The set's revisions, with exactly one current one, which has the highest number.
    pub(super) async fn construct_history(&self, cx: &Cx, set: &DaemonSet) -> Result<History, ReconcileError> {
        let selector =
            selector_of(set.spec.selector.as_ref()).map_err(|error| ReconcileError::permanent(error.to_string()))?;
        let candidates = owned_and_orphans(&self.revisions, &set.metadata);
        let claimed = Claims::new(&cx.client, set, &selector, &[]).run(candidates).await?;
        let mut labelled = Vec::with_capacity(claimed.len());
        for revision in claimed {
            labelled.push(with_label(cx, set, revision).await?);
        }
        let (mut current, old) = revisions::sort(set, labelled);
        let number = revisions::next_number(&old);
        let Some(kept) = current.pop() else {
            let made = self.make_revision(cx, set, number).await?;
            return Ok(History { current: Arc::new(made), old });
        };
        self.merge_into(cx, set, &kept, &current).await?;
        if kept.revision >= number {
            return Ok(History { current: kept, old });
        }
        // Back to an older template: its revision becomes the newest.
        let mut raised = ControllerRevision::clone(&kept);
        raised.revision = number;
        Ok(History { current: Arc::new(api(cx, set).update(&raised).await?), old })
    }

    async fn make_revision(&self, cx: &Cx, set: &DaemonSet, number: i64) -> Result<ControllerRevision, ReconcileError> {
        let wanted = revisions::revision(set, number);
        let taken = match api(cx, set).create(&wanted).await {
            Err(error) if error.is_already_exists() => error,
            outcome => return Ok(outcome?),
        };
        let there = api(cx, set).get(&wanted.metadata.name).await?;
        if there.data.value() == wanted.data.value() {
            return Ok(there);
        }
        // Another template has this hash. The count makes the next hash another one.
        let sets = cx.client.namespaced::<DaemonSet>(&set.metadata.namespace);
        let mut live = sets.get(&set.metadata.name).await?;
        let (cached, current) = (set.status.collision_count, live.status.collision_count);
        if cached != current {
            let number = |count: Option<i32>| count.unwrap_or(0);
            let (cached, current) = (number(cached), number(current));
            return Err(ReconcileError::failed(format!(
                "found a stale collision count ({cached}, expected {current}) of DaemonSet \"{}\" while processing; \
                 will retry until it is updated",
                set.metadata.name
            )));
        }
        live.status.collision_count = Some(current.unwrap_or(0).saturating_add(1));
        sets.update_status(&live).await?;
        Err(taken.into())
    }

    /// Moves the pods of equal revisions to the one that is kept and deletes the others.
    async fn merge_into(
        &self,
        cx: &Cx,
        set: &DaemonSet,
        kept: &ControllerRevision,
        doubles: &[Arc<ControllerRevision>],
    ) -> Result<(), ClientError> {
        if doubles.is_empty() {
            return Ok(());
        }
        let hash = revisions::hash_of(kept);
        let pods = self.pods.by_index(CONTROLLER_UID, &set.metadata.uid);
        for pod in pods.iter().filter(|pod| revisions::hash_of_pod(pod) != hash) {
            if !doubles.iter().any(|double| revisions::hash_of(double) == revisions::hash_of_pod(pod)) {
                continue;
            }
            let patch = Patch::Merge(json!({"metadata": {"labels": {HASH_LABEL: hash}}}));
            cx.client.namespaced::<Pod>(&pod.metadata.namespace).patch(&pod.metadata.name, &patch).await?;
        }
        for double in doubles {
            delete(cx, set, double).await?;
        }
        Ok(())
    }

    /// Deletes the oldest revisions beyond the limit that no pod is of.
    pub(super) async fn clean_up_history(
        &self,
        cx: &Cx,
        set: &DaemonSet,
        history: &History,
    ) -> Result<(), ReconcileError> {
        let pods = self.pods.by_index(CONTROLLER_UID, &set.metadata.uid);
        for revision in revisions::surplus(&history.old, set.spec.revision_history_limit, &pods) {
            delete(cx, set, revision).await.map_err(|error| {
                ReconcileError::failed(format!("failed to clean up revisions of DaemonSet: {error}"))
            })?;
        }
        Ok(())
    }
}

/// The revision with its hash as a label; old releases did not set one.
async fn with_label(
    cx: &Cx,
    set: &DaemonSet,
    revision: Arc<ControllerRevision>,
) -> Result<Arc<ControllerRevision>, ClientError> {
    if revision.metadata.labels.contains_key(HASH_LABEL) {
        return Ok(revision);
    }
    let mut labelled = ControllerRevision::clone(&revision);
    labelled.metadata.labels.insert(HASH_LABEL.to_owned(), revision.metadata.name.clone());
    api(cx, set).update(&labelled).await.map(Arc::new)
}

async fn delete(cx: &Cx, set: &DaemonSet, revision: &ControllerRevision) -> Result<(), ClientError> {
    api(cx, set).delete_this(&revision.metadata, DeleteOptions::default()).await.map(drop)
}
