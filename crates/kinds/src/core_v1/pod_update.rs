//! What may change of a pod once it is there: images, a few times and tolerations; more while it is gated; ephemeral
//! containers and resources through endpoints of their own.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect::equal_structs;
use api_types::core_v1::{Affinity, Container, NodeSelector, NodeSelectorTerm, Pod, PodSpec, Toleration};
use feature_gates::Gates;

use crate::gates::POD_LEVEL_RESIZE;
use crate::internal_json;
use crate::pod_spec::validation as pod_spec;

const IMMUTABLE_SPEC: &str = "pod updates may not change fields other than \
     `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
     additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
     previously negative)";

/// Checks a pod that is to replace `old` at the main endpoint.
pub(super) fn validate(pod: &Pod, old: &Pod, gates: &Gates) -> ErrorList {
    let mut errors = pod_spec::validate_pod(pod, Some(old), gates);
    validate_annotations(pod, old, &mut errors);
    let path = Path::new("spec");
    let lists = [
        (path.child("containers"), &pod.spec.containers, &old.spec.containers),
        (path.child("initContainers"), &pod.spec.init_containers, &old.spec.init_containers),
    ];
    for (path, new, stored) in lists {
        if new.len() != stored.len() {
            errors.push(path.forbidden("pod updates may not add or remove containers"));
            return errors;
        }
        validate_images(&path, new, &mut errors);
    }
    validate_spec(&path, pod, old, gates, &mut errors);
    errors
}

fn validate_images(path: &Path, containers: &[Container], errors: &mut ErrorList) {
    for (index, container) in containers.iter().enumerate() {
        let at = path.index(index).child("image");
        crate::field_rules::required(&at, &container.image, errors);
        pod_spec::validate_image_space(&at, &container.image, errors);
    }
}

/// The annotations that may not change, at every endpoint but those that restore them anyway.
pub(super) fn validate_annotations(pod: &Pod, old: &Pod, errors: &mut ErrorList) {
    let path = Path::new("metadata").child("annotations");
    let (new, old) = (&pod.metadata.annotations, &old.metadata.annotations);
    pod_spec::validate_mirror_update(&path, new, old, errors);
    pod_spec::validate_apparmor_update(&path, new, old, errors);
}

fn validate_spec(path: &Path, pod: &Pod, old: &Pod, gates: &Gates, errors: &mut ErrorList) {
    if !validate_deadline(&path.child("activeDeadlineSeconds"), &pod.spec, &old.spec, errors) {
        return;
    }
    validate_toleration_update(&path.child("tolerations"), &pod.spec, &old.spec, gates, errors);
    let stored: BTreeSet<&str> = old.spec.scheduling_gates.iter().map(|gate| gate.name.as_str()).collect();
    for (index, gate) in pod.spec.scheduling_gates.iter().enumerate() {
        if !stored.contains(gate.name.as_str()) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", gate.name);
            errors.push(path.child("schedulingGates").index(index).child("name").forbidden(detail));
        }
    }
    let mut allowed = put_back(&pod.spec, &old.spec);
    if !old.spec.scheduling_gates.is_empty() {
        validate_gated(path, pod, old, &mut allowed, errors);
    }
    if !equal_structs(&allowed, &old.spec) {
        let difference = internal_json::difference(&old.spec, &allowed);
        errors.push(path.forbidden(format!("{IMMUTABLE_SPEC}\n{difference}")));
    }
}

/// Whether the rest is to be looked at.
fn validate_deadline(path: &Path, spec: &PodSpec, old: &PodSpec, errors: &mut ErrorList) -> bool {
    match (spec.active_deadline_seconds, old.active_deadline_seconds) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            errors.push(path.invalid(new, names::range_detail(0, i32::MAX)));
            false
        }
        (Some(new), Some(old)) if new > old => {
            errors.push(path.invalid(new, "must be less than or equal to previous value"));
            false
        }
        (None, Some(_)) => {
            errors.push(path.invalid(BadValue::null(), "must not update from a positive integer to nil value"));
            true
        }
        _ => true,
    }
}

fn validate_toleration_update(path: &Path, spec: &PodSpec, old: &PodSpec, gates: &Gates, errors: &mut ErrorList) {
    let comparing = pod_spec::comparing(gates, Some(old));
    let (new, old) = (&spec.tolerations, &old.tolerations);
    let kept: BTreeSet<[&str; 4]> = new.iter().map(lasting_part).collect();
    if old.iter().any(|stored| !kept.contains(&lasting_part(stored))) {
        errors.push(path.forbidden("existing toleration can not be modified except its tolerationSeconds"));
        return;
    }
    pod_spec::validate_tolerations(path, new, comparing, errors);
}

/// All of a toleration but its time, which may change.
fn lasting_part(own: &Toleration) -> [&str; 4] {
    [&own.key, &own.operator, &own.value, &own.effect]
}

/// The new spec with everything that may change as it was.
fn put_back(spec: &PodSpec, old: &PodSpec) -> PodSpec {
    let mut spec = spec.clone();
    let pairs = spec.containers.iter_mut().zip(&old.containers);
    for (new, old) in pairs.chain(spec.init_containers.iter_mut().zip(&old.init_containers)) {
        new.image.clone_from(&old.image);
    }
    spec.active_deadline_seconds = old.active_deadline_seconds;
    spec.tolerations.clone_from(&old.tolerations);
    spec.scheduling_gates.clone_from(&old.scheduling_gates);
    let negative = old.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0);
    if negative && spec.termination_grace_period_seconds == Some(1) {
        spec.termination_grace_period_seconds = old.termination_grace_period_seconds;
    }
    spec
}

/// While the scheduler may not look at a pod, where it may go can be narrowed.
fn validate_gated(path: &Path, pod: &Pod, old: &Pod, allowed: &mut PodSpec, errors: &mut ErrorList) {
    let (new, stored) = (&pod.spec.node_selector, &old.spec.node_selector);
    if stored.iter().any(|(key, value)| new.get(key) != Some(value)) {
        let value = BadValue::json(serde_json::json!(new).to_string());
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(path.child("nodeSelector").invalid(value, detail));
    }
    allowed.node_selector.clone_from(stored);

    let required = |spec: &PodSpec| -> Option<NodeSelector> {
        let nodes = spec.affinity.as_ref()?.node_affinity.as_ref()?;
        nodes.required_during_scheduling_ignored_during_execution.clone()
    };
    let at = path.child("affinity").child("nodeAffinity").child("requiredDuringSchedulingIgnoredDuringExecution");
    if let Some(stored) = required(&old.spec) {
        let new = required(&pod.spec).unwrap_or_default();
        let (new, stored) = (&new.node_selector_terms, &stored.node_selector_terms);
        validate_terms(&at.child("nodeSelectorTerms"), new, stored, errors);
    }
    // Upstream puts the whole of the node's part back, so that only other affinity counts as changed.
    let nodes = old.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.clone());
    match (&mut allowed.affinity, nodes) {
        (Some(affinity), nodes) => affinity.node_affinity = nodes,
        (none, Some(nodes)) => *none = Some(Affinity { node_affinity: Some(nodes), ..Affinity::default() }),
        (None, None) => {}
    }
    if old.spec.affinity.is_none() && allowed.affinity == Some(Affinity::default()) {
        allowed.affinity = None;
    }
}

fn validate_terms(path: &Path, new: &[NodeSelectorTerm], old: &[NodeSelectorTerm], errors: &mut ErrorList) {
    if !old.is_empty() && new.len() != old.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(path.invalid(terms_value(new), detail));
        return;
    }
    for (index, (new, old)) in new.iter().zip(old).enumerate() {
        let grows = new.match_expressions.starts_with(&old.match_expressions)
            && new.match_fields.starts_with(&old.match_fields);
        // A term without anything matches no node, and one with something would match more.
        let was_empty = old.match_expressions.is_empty() && old.match_fields.is_empty();
        let is_empty = new.match_expressions.is_empty() && new.match_fields.is_empty();
        if !grows || (was_empty && !is_empty) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.push(path.index(index).invalid(internal_json::bad_value(new), detail));
        }
    }
}

fn terms_value(terms: &[NodeSelectorTerm]) -> BadValue {
    let texts: Vec<String> = terms.iter().map(|term| internal_json::compact(term)).collect();
    BadValue::json(format!("[{}]", texts.join(",")))
}

/// Takes only the ephemeral containers of the request.
pub(super) fn prepare_ephemeral(pod: &mut Pod, old: &Pod) {
    let containers = std::mem::take(&mut pod.spec.ephemeral_containers);
    restore(pod, old);
    pod.spec.clone_from(&old.spec);
    pod.spec.ephemeral_containers = containers;
}

/// Everything but the spec as it is stored.
fn restore(pod: &mut Pod, old: &Pod) {
    pod.status.clone_from(&old.status);
    let (meta, stored) = (&mut pod.metadata, &old.metadata);
    meta.deletion_timestamp = stored.deletion_timestamp;
    meta.generation = stored.generation;
    meta.self_link.clone_from(&stored.self_link);
    meta.labels.clone_from(&stored.labels);
    meta.annotations.clone_from(&stored.annotations);
    meta.finalizers.clone_from(&stored.finalizers);
    meta.owner_references.clone_from(&stored.owner_references);
}

/// Ephemeral containers may be added, never changed or taken away.
pub(super) fn validate_ephemeral(pod: &Pod, old: &Pod, gates: &Gates) -> ErrorList {
    if pod.metadata.annotations.contains_key(pod_spec::MIRROR) {
        return Path::new("").forbidden("static pods do not support ephemeral containers").into();
    }
    let mut errors = pod_spec::validate_pod(pod, Some(old), gates);
    let path = Path::new("spec").child("ephemeralContainers");
    for stored in &old.spec.ephemeral_containers {
        let name = &stored.ephemeral_container_common.name;
        let new = pod.spec.ephemeral_containers.iter().find(|new| new.ephemeral_container_common.name == *name);
        match new {
            None => {
                errors.push(path.forbidden(format!("existing ephemeral containers \"{name}\" may not be removed\n")));
            }
            Some(new) if !equal_structs(new, stored) => {
                let difference = internal_json::difference(stored, new);
                let text = format!("existing ephemeral containers \"{name}\" may not be changed\n{difference}");
                errors.push(path.forbidden(text));
            }
            Some(_) => {}
        }
    }
    errors
}

/// Takes only resources and resize policies of the request, where its containers are those that are stored.
pub(super) fn prepare_resize(pod: &mut Pod, old: &Pod, gates: &Gates) {
    restore(pod, old);
    let names = |containers: &[Container]| containers.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    let same = |new: &[Container], old: &[Container]| names(new) == names(old);
    if !same(&pod.spec.containers, &old.spec.containers) || !same(&pod.spec.init_containers, &old.spec.init_containers)
    {
        return;
    }
    let mut spec = old.spec.clone();
    let pairs = spec.containers.iter_mut().zip(&pod.spec.containers);
    for (stored, new) in pairs.chain(spec.init_containers.iter_mut().zip(&pod.spec.init_containers)) {
        stored.resources.clone_from(&new.resources);
        stored.resize_policy.clone_from(&new.resize_policy);
    }
    if gates.enabled(POD_LEVEL_RESIZE) {
        spec.resources.clone_from(&pod.spec.resources);
    }
    pod.spec = spec;
}

#[cfg(test)]
#[path = "pod_update_test.rs"]
mod tests;
