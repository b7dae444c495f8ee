//! Revisions of a template as data, in upstream's form: names and bytes must be what another implementation wrote.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_machinery::json::encode_value;
use api_machinery::leaf::RawJson;
use api_machinery::time::Time;
use api_machinery::value::{Value, to_value};
use api_types::apps_v1::{ControllerRevision, StatefulSet};
use api_types::core_v1::{Pod, PodTemplateSpec};
use controller::{ReconcileError, controller_ref};
use serde_json::json;

use super::super::revision_data::template_of;
use super::super::template_hash::fnv1_name;
use super::identity::revision_of;

const HASH_LABEL: &str = "controller.kubernetes.io/hash";
/// Longest part of a set's name in the name of a revision.
const NAME_LIMIT: usize = 223;

/// The patch that brings the template back.
pub(super) fn data(set: &StatefulSet) -> Value {
    let mut template = to_value(&set.spec.template);
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

/// The template that a revision stands for.
///
/// # Errors
/// When the data is no template.
pub(super) fn template(revision: &ControllerRevision) -> Result<PodTemplateSpec, ReconcileError> {
    template_of(revision).map_err(|error| {
        ReconcileError::failed(format!("could not read ControllerRevision {}: {error}", revision.metadata.name))
    })
}

/// Whether a revision stands for the set's template, whatever its bytes: with the defaults of today it is the same.
pub(super) fn means(revision: &ControllerRevision, set: &StatefulSet) -> bool {
    let Ok(template) = template_of(revision) else { return false };
    let mut then = set.clone();
    then.spec.template = template;
    kinds::set_defaults(&mut then);
    data(&then) == data(set)
}

/// A new revision of the set's template.
pub(super) fn revision(set: &StatefulSet, number: i64, collisions: i32) -> ControllerRevision {
    let data = data(set);
    let hash = fnv1_name(&[encode_value(&data).as_bytes(), collisions.to_string().as_bytes()]);
    let mut revision = ControllerRevision { revision: number, ..ControllerRevision::default() };
    let name: String = set.metadata.name.chars().take(NAME_LIMIT).collect();
    revision.metadata.name = format!("{name}-{hash}");
    revision.metadata.namespace.clone_from(&set.metadata.namespace);
    revision.metadata.labels.clone_from(&set.spec.template.metadata.labels);
    revision.metadata.labels.insert(HASH_LABEL.to_owned(), hash);
    revision.metadata.annotations.clone_from(&set.metadata.annotations);
    revision.metadata.owner_references = vec![controller_ref::<StatefulSet>(&set.metadata)];
    revision.data = RawJson::from_value(&data);
    revision
}

/// The order of revisions, oldest first.
pub(super) fn rank(revision: &ControllerRevision) -> (i64, Time, &str) {
    (revision.revision, revision.metadata.creation_timestamp, &revision.metadata.name)
}

/// The revisions beyond the limit that neither the set nor a pod uses, oldest first.
pub(super) fn surplus<'a>(
    all: &'a [Arc<ControllerRevision>],
    used: [&str; 2],
    limit: Option<i32>,
    pods: &[Arc<Pod>],
) -> Vec<&'a Arc<ControllerRevision>> {
    let live: BTreeSet<_> = pods.iter().map(|pod| revision_of(pod)).chain(used).collect();
    let unused: Vec<_> = all.iter().filter(|it| !live.contains(it.metadata.name.as_str())).collect();
    let Ok(limit) = usize::try_from(limit.unwrap_or(10)) else { return Vec::new() };
    let excess = unused.len().saturating_sub(limit);
    unused.into_iter().take(excess).collect()
}
