//! Revisions of a template as data: what is stored, which one is current, which may go.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_machinery::leaf::RawJson;
use api_machinery::time::Time;
use api_machinery::value::{Value, to_value};
use api_types::apps_v1::constants::CONTROLLER_REVISION_HASH_LABEL_KEY as HASH_LABEL;
use api_types::apps_v1::{ControllerRevision, DaemonSet};
use api_types::core_v1::Pod;
use controller::controller_ref;
use serde_json::json;

use super::super::revision_data::template_of;
use super::super::template_hash::{hashed_name, template_hash};

/// The patch that brings the template back.
pub(super) fn data(set: &DaemonSet) -> Value {
    let mut template = to_value(&set.spec.template);
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

/// A new revision of the set's template.
pub(super) fn revision(set: &DaemonSet, number: i64) -> ControllerRevision {
    let hash = template_hash(&set.spec.template, set.status.collision_count);
    let mut revision = ControllerRevision { revision: number, ..ControllerRevision::default() };
    revision.metadata.name = hashed_name(&set.metadata.name, &hash);
    revision.metadata.namespace.clone_from(&set.metadata.namespace);
    revision.metadata.labels.clone_from(&set.spec.template.metadata.labels);
    revision.metadata.labels.insert(HASH_LABEL.to_owned(), hash);
    revision.metadata.annotations.clone_from(&set.metadata.annotations);
    revision.metadata.owner_references = vec![controller_ref::<DaemonSet>(&set.metadata)];
    revision.data = RawJson::from_value(&data(set));
    revision
}

/// The hash of a revision.
pub(super) fn hash_of(revision: &ControllerRevision) -> &str {
    revision.metadata.labels.get(HASH_LABEL).map_or("", String::as_str)
}

/// The hash of the revision that a pod is of.
pub(super) fn hash_of_pod(pod: &Pod) -> &str {
    pod.metadata.labels.get(HASH_LABEL).map_or("", String::as_str)
}

/// Revisions of the set's template and all others, both in ascending order.
pub(super) fn sort(
    set: &DaemonSet,
    revisions: Vec<Arc<ControllerRevision>>,
) -> (Vec<Arc<ControllerRevision>>, Vec<Arc<ControllerRevision>>) {
    let wanted = data(set);
    let mut revisions = revisions;
    revisions.sort_by(|one, two| rank(one).cmp(&rank(two)));
    let (mut current, mut old): (Vec<_>, Vec<_>) =
        revisions.into_iter().partition(|revision| revision.data.value() == wanted);
    // Else the newest one, if an older release wrote it with fewer defaults: nothing is to be rolled out for that.
    if current.is_empty() && old.last().is_some_and(|newest| means(newest, set)) {
        current.extend(old.pop());
    }
    (current, old)
}

/// Whether a revision stands for the set's template, whatever its bytes: with the defaults of today it is the same.
pub(super) fn means(revision: &ControllerRevision, set: &DaemonSet) -> bool {
    let Ok(template) = template_of(revision) else { return false };
    let mut then = set.clone();
    then.spec.template = template;
    kinds::set_defaults(&mut then);
    data(&then) == data(set)
}

fn rank(revision: &ControllerRevision) -> (i64, Time, &str) {
    (revision.revision, revision.metadata.creation_timestamp, &revision.metadata.name)
}

/// The number that the current revision must at least have.
pub(super) fn next_number(old: &[Arc<ControllerRevision>]) -> i64 {
    old.iter().map(|revision| revision.revision).max().unwrap_or(0).saturating_add(1)
}

/// The old revisions beyond the limit that no pod is of.
pub(super) fn surplus<'a>(
    old: &'a [Arc<ControllerRevision>],
    limit: Option<i32>,
    pods: &[Arc<Pod>],
) -> Vec<&'a Arc<ControllerRevision>> {
    let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or(0);
    let live: BTreeSet<_> = pods.iter().map(|pod| hash_of_pod(pod)).collect();
    let unused = old.iter().filter(|revision| !live.contains(hash_of(revision)));
    unused.take(old.len().saturating_sub(limit)).collect()
}
