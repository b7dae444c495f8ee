//! What a pod of an ordinal is called, and the labels, host name and volumes that make it so.

use std::collections::BTreeSet;

use api_types::apps_v1::StatefulSet;
use api_types::apps_v1::constants::{CONTROLLER_REVISION_HASH_LABEL_KEY, POD_INDEX_LABEL, STATEFUL_SET_POD_NAME_LABEL};
use api_types::core_v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume};
use controller::controller_ref;

use super::super::pod_control::pod_from_template;

/// The name of the set and the ordinal, by a pod's name.
fn parts(pod: &str) -> Option<(&str, i32)> {
    let (parent, digits) = pod.rsplit_once('-')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten().map(|ordinal| (parent, ordinal))
}

/// The name of the set that a pod of this name is of.
pub(super) fn set_of(pod: &str) -> Option<&str> {
    parts(pod).map(|(set, _)| set)
}

/// Whether the pod's name is the set's with a number.
pub(super) fn is_named_after(set: &StatefulSet, pod: &Pod) -> bool {
    parts(&pod.metadata.name).is_some_and(|(parent, _)| parent == set.metadata.name)
}

/// The ordinal of a pod.
pub(super) fn ordinal_of(pod: &Pod) -> Option<i32> {
    parts(&pod.metadata.name).map(|(_, ordinal)| ordinal)
}

/// The lowest ordinal.
pub(super) fn start(set: &StatefulSet) -> i32 {
    set.spec.ordinals.as_ref().map_or(0, |ordinals| ordinals.start)
}

/// How many pods there should be.
pub(super) fn wanted(set: &StatefulSet) -> i32 {
    set.spec.replicas.unwrap_or(1).max(0)
}

/// Whether a pod of this ordinal should be there.
pub(super) fn is_in_range(set: &StatefulSet, ordinal: i32) -> bool {
    ordinal >= start(set) && ordinal < start(set).saturating_add(wanted(set))
}

/// The name of a pod.
pub(super) fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!("{}-{ordinal}", set.metadata.name)
}

/// The revision that a pod was made from.
pub(super) fn revision_of(pod: &Pod) -> &str {
    pod.metadata.labels.get(CONTROLLER_REVISION_HASH_LABEL_KEY).map_or("", String::as_str)
}

fn claim_name(set: &StatefulSet, template: &str, ordinal: i32) -> String {
    format!("{template}-{}-{ordinal}", set.metadata.name)
}

/// The claims of an ordinal.
pub(super) fn claims(set: &StatefulSet, ordinal: i32) -> Vec<PersistentVolumeClaim> {
    let labels = set.spec.selector.as_ref().map(|selector| selector.match_labels.clone()).unwrap_or_default();
    let claim = |template: &PersistentVolumeClaim| {
        let mut claim = PersistentVolumeClaim { spec: template.spec.clone(), ..PersistentVolumeClaim::default() };
        claim.metadata.name = claim_name(set, &template.metadata.name, ordinal);
        claim.metadata.namespace.clone_from(&set.metadata.namespace);
        claim.metadata.labels.clone_from(&template.metadata.labels);
        claim.metadata.labels.extend(labels.clone());
        claim.metadata.annotations.clone_from(&template.metadata.annotations);
        claim
    };
    set.spec.volume_claim_templates.iter().map(claim).collect()
}

/// The pod of an ordinal, from the template of a revision.
pub(super) fn pod_for(set: &StatefulSet, template: &PodTemplateSpec, revision: &str, ordinal: i32) -> Pod {
    let mut pod = pod_from_template(template, &set.metadata, controller_ref::<StatefulSet>(&set.metadata));
    pod.metadata.name = pod_name(set, ordinal);
    pod.metadata.labels.insert(CONTROLLER_REVISION_HASH_LABEL_KEY.to_owned(), revision.to_owned());
    pod.spec.hostname.clone_from(&pod.metadata.name);
    pod.spec.subdomain.clone_from(&set.spec.service_name);
    update_identity(set, &mut pod, ordinal);
    pod
}

/// Gives a pod the labels and volumes of its ordinal.
pub(super) fn update_identity(set: &StatefulSet, pod: &mut Pod, ordinal: i32) {
    let name = pod.metadata.name.clone();
    pod.metadata.labels.insert(STATEFUL_SET_POD_NAME_LABEL.to_owned(), name);
    pod.metadata.labels.insert(POD_INDEX_LABEL.to_owned(), ordinal.to_string());
    let own: Vec<_> =
        set.spec.volume_claim_templates.iter().map(|it| volume(set, &it.metadata.name, ordinal)).collect();
    let names: BTreeSet<_> = own.iter().map(|volume| volume.name.clone()).collect();
    let others = std::mem::take(&mut pod.spec.volumes).into_iter().filter(|volume| !names.contains(&volume.name));
    pod.spec.volumes = own.into_iter().chain(others).collect();
}

fn volume(set: &StatefulSet, template: &str, ordinal: i32) -> Volume {
    let mut volume = Volume { name: template.to_owned(), ..Volume::default() };
    volume.volume_source.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource {
        claim_name: claim_name(set, template, ordinal),
        ..PersistentVolumeClaimVolumeSource::default()
    });
    volume
}

/// Whether a pod has the label of its name and the volumes of its ordinal.
pub(super) fn identity_matches(set: &StatefulSet, pod: &Pod) -> bool {
    let Some(ordinal) = ordinal_of(pod) else { return false };
    let named = pod.metadata.labels.get(STATEFUL_SET_POD_NAME_LABEL) == Some(&pod.metadata.name);
    let has = |template: &PersistentVolumeClaim| {
        let wanted = claim_name(set, &template.metadata.name, ordinal);
        let mut volumes = pod.spec.volumes.iter().filter(|volume| volume.name == template.metadata.name);
        volumes.any(|it| it.volume_source.persistent_volume_claim.as_ref().is_some_and(|it| it.claim_name == wanted))
    };
    named && set.spec.volume_claim_templates.iter().all(has)
}
