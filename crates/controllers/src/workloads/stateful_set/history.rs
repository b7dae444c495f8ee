//! Keeps the revisions of a stateful set.

use std::sync::Arc;

use api_machinery::meta::DeleteOptions;
use api_types::apps_v1::{ControllerRevision, StatefulSet};
use api_types::core_v1::Pod;
use client::Api;
use component_helpers::selectors::selector_of;
use controller::{Cx, ReconcileError, owned_and_orphans};

use super::super::adoption::Claims;
use super::{StatefulSetController, revisions};

/// Most collisions of one name in a row before it is tried again later.
const MAX_COLLISIONS: i32 = 16;

/// The revisions of a set.
pub(super) struct History {
    /// What the set is updated from.
    pub current: Arc<ControllerRevision>,
    /// What it is updated to.
    pub update: Arc<ControllerRevision>,
    /// How often a name was taken.
    pub collisions: i32,
    /// All, oldest first.
    all: Vec<Arc<ControllerRevision>>,
}

fn api(cx: &Cx, set: &StatefulSet) -> Api<ControllerRevision> {
    cx.client.namespaced(&set.metadata.namespace)
}

impl StatefulSetController {
    /// Finds the revisions of the set; makes one of its template if there is none.
    pub(super) async fn construct_history(&self, cx: &Cx, set: &StatefulSet) -> Result<History, ReconcileError> {
        let selector =
            selector_of(set.spec.selector.as_ref()).map_err(|error| ReconcileError::permanent(error.to_string()))?;
        let candidates = owned_and_orphans(&self.revisions, &set.metadata);
        let mut all = Claims::new(&cx.client, set, &selector, &[]).run(candidates).await?;
        all.sort_by(|one, two| revisions::rank(one).cmp(&revisions::rank(two)));
        let wanted = revisions::data(set);
        let next = all.last().map_or(0, |last| last.revision).saturating_add(1);
        let mut collisions = set.status.collision_count.unwrap_or(0);
        let equal = all.iter().rev().find(|revision| revision.data.value() == wanted).cloned();
        let is_newest = |revision: &ControllerRevision| all.last().is_some_and(|it| it.revision == revision.revision);
        // Else one that an older release wrote, with fewer defaults, would be rolled out again.
        let newest = || all.last().filter(|newest| self.semantic_revisions && revisions::means(newest, set));
        let equal = equal.or_else(|| newest().cloned());
        let update = match equal {
            Some(newest) if is_newest(&newest) => newest,
            Some(older) => {
                let mut raised = ControllerRevision::clone(&older);
                raised.revision = next;
                Arc::new(api(cx, set).update(&raised).await?)
            }
            None => Arc::new(self.make_revision(cx, set, next, &mut collisions).await?),
        };
        let named = |revision: &&Arc<ControllerRevision>| revision.metadata.name == set.status.current_revision;
        let current = all.iter().find(named).cloned().unwrap_or_else(|| Arc::clone(&update));
        Ok(History { current, update, collisions, all })
    }

    async fn make_revision(
        &self,
        cx: &Cx,
        set: &StatefulSet,
        number: i64,
        collisions: &mut i32,
    ) -> Result<ControllerRevision, ReconcileError> {
        for _ in 0..MAX_COLLISIONS {
            let wanted = revisions::revision(set, number, *collisions);
            match api(cx, set).create(&wanted).await {
                Err(error) if error.is_already_exists() => {}
                outcome => return Ok(outcome?),
            }
            let there = api(cx, set).get(&wanted.metadata.name).await?;
            if there.data.value() == wanted.data.value() {
                return Ok(there);
            }
            *collisions = collisions.saturating_add(1);
        }
        Err(ReconcileError::failed("too many ControllerRevisions of other templates have the same name"))
    }

    /// Deletes revisions that nothing uses, beyond the limit.
    pub(super) async fn truncate_history(
        &self,
        cx: &Cx,
        set: &StatefulSet,
        history: &History,
        pods: &[Arc<Pod>],
    ) -> Result<(), ReconcileError> {
        let used = [history.current.metadata.name.as_str(), history.update.metadata.name.as_str()];
        for revision in revisions::surplus(&history.all, used, set.spec.revision_history_limit, pods) {
            api(cx, set).delete_this(&revision.metadata, DeleteOptions::default()).await?;
        }
        Ok(())
    }
}
