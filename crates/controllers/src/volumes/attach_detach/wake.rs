//! Which nodes are looked at after a change.

use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use client::{Change, Informer, ObjectKey};
use component_helpers::pod_state;
use component_helpers::volumes::of_pods;

use super::plan::Condition;
use crate::volumes::PODS_BY_CLAIM;

/// The nodes of a pod with claims that came, went, was placed or ended.
pub(super) fn nodes_of_pod(change: &Change<Pod>) -> Vec<ObjectKey> {
    let (now, before) = (change.object(), change.old());
    let is_over = |pod: &Pod| change.is_deleted() || pod_state::is_terminated(pod);
    let has_moved = before.is_none_or(|before| {
        let state = |pod: &Pod| (pod.metadata.uid.clone(), pod.spec.node_name.clone(), is_over(pod));
        change.is_deleted() || state(before) != state(now)
    });
    if !has_moved || of_pods::claim_names(now).next().is_none() {
        return Vec::new();
    }
    let nodes = before.map(|before| &before.spec.node_name).into_iter().chain([&now.spec.node_name]);
    nodes.filter(|node| !node.is_empty()).map(ObjectKey::cluster).collect()
}

/// The nodes of the pods of a claim that was bound, or is not any more.
pub(super) fn nodes_of_claim(change: &Change<PersistentVolumeClaim>, pods: &Informer<Pod>) -> Vec<ObjectKey> {
    let state = |claim: &PersistentVolumeClaim| (claim.status.phase.clone(), claim.spec.volume_name.clone());
    if !change.is_deleted() && change.old().is_some_and(|old| state(old) == state(change.object())) {
        return Vec::new();
    }
    nodes_of(&change.key(), pods)
}

/// The nodes of the pods of a volume's claim, where that is another one than before.
pub(super) fn nodes_of_volume(change: &Change<PersistentVolume>, pods: &Informer<Pod>) -> Vec<ObjectKey> {
    let claim = |volume: &PersistentVolume| volume.spec.claim_ref.as_ref().map(|claim| claim.uid.clone());
    if !change.is_deleted() && change.old().is_some_and(|old| claim(old) == claim(change.object())) {
        return Vec::new();
    }
    let named = change.object().spec.claim_ref.as_ref();
    named.map(|claim| nodes_of(&ObjectKey::new(&claim.namespace, &claim.name), pods)).unwrap_or_default()
}

fn nodes_of(claim: &ObjectKey, pods: &Informer<Pod>) -> Vec<ObjectKey> {
    let pods = pods.by_index(PODS_BY_CLAIM, &claim.to_string());
    let nodes = pods.iter().map(|pod| &pod.spec.node_name).filter(|node| !node.is_empty());
    nodes.map(ObjectKey::cluster).collect()
}

/// A node of which something counts that has changed. Most changes of nodes are signs of life.
pub(super) fn node_itself(change: &Change<Node>) -> Option<ObjectKey> {
    let (now, before) = (change.object(), change.old());
    let is_same = |before: &Node| {
        let (old, new) = (&before.status, &now.status);
        old.volumes_in_use == new.volumes_in_use
            && old.volumes_attached == new.volumes_attached
            && before.metadata.annotations == now.metadata.annotations
            && Condition::of(Some(before)) == Condition::of(Some(now))
    };
    let is_news = change.is_deleted() || before.is_none_or(|before| !is_same(before));
    is_news.then(|| change.key())
}
