//! Who owns the claims of a set: nobody, the set, or a surplus pod, so that garbage collection removes them in time.

use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_machinery::object::{Kind, Object};
use api_types::apps_v1::StatefulSet;
use api_types::core_v1::{PersistentVolumeClaim, Pod};
use client::{Change, ObjectKey};
use component_helpers::volumes::names::SELECTED_NODE;
use controller::{controller_of, controller_ref};

use super::identity::{self, is_in_range};

const DELETE: &str = "Delete";

/// What the set's policy says about the claims of an ordinal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owners {
    /// The set is to own them.
    pub set: bool,
    /// Their pod is to own them.
    pub pod: bool,
}

/// When claims go: with the set, with a pod that is too many.
fn policy(set: &StatefulSet) -> (bool, bool) {
    let policy = set.spec.persistent_volume_claim_retention_policy.as_ref();
    policy.map_or((false, false), |policy| (policy.when_deleted == DELETE, policy.when_scaled == DELETE))
}

/// Whether the claims of a pod that is too many go with it.
pub(super) fn go_with_pods(set: &StatefulSet) -> bool {
    policy(set).1
}

/// Who is to own the claims of an ordinal.
pub(super) fn owners(set: &StatefulSet, ordinal: i32) -> Owners {
    let (deleted, scaled) = policy(set);
    let surplus = !is_in_range(set, ordinal);
    Owners { set: deleted && !(scaled && surplus), pod: scaled && surplus }
}

fn is_reference_to<T: Kind>(reference: &OwnerReference, owner: &ObjectMeta) -> bool {
    reference.api_version == T::TYPE.api_version() && reference.kind == T::TYPE.kind && reference.name == owner.name
}

/// Whether the claim names a pod of this name that was another one: garbage collection is about to remove it.
pub(super) fn is_of_former(claim: &ObjectMeta, pod: &str, uid: Option<&str>) -> bool {
    let named = ObjectMeta { name: pod.to_owned(), ..ObjectMeta::default() };
    claim.owner_references.iter().any(|it| is_reference_to::<Pod>(it, &named) && Some(it.uid.as_str()) != uid)
}

/// The set that may have waited until this claim of a pod that was too many is gone, to create the next pod of that name.
pub(super) fn set_that_waited(change: &Change<PersistentVolumeClaim>) -> Option<ObjectKey> {
    let meta = &change.object().metadata;
    let is_pod = |it: &&OwnerReference| it.api_version == Pod::TYPE.api_version() && it.kind == Pod::TYPE.kind;
    let pod = meta.owner_references.iter().find(is_pod).filter(|_| change.is_deleted())?;
    Some(ObjectKey::new(&meta.namespace, identity::set_of(&pod.name)?))
}

/// Whether a claim has no volume and waits for somebody to say which node it is for.
pub(super) fn is_for_no_node(claim: &PersistentVolumeClaim) -> bool {
    let meta = &claim.metadata;
    claim.spec.volume_name.is_empty()
        && meta.deletion_timestamp.is_none()
        && !meta.annotations.contains_key(SELECTED_NODE)
}

/// What to do about a claim's owners.
#[derive(Debug, PartialEq)]
pub(super) enum OwnersUpdate {
    /// Nothing.
    Fine,
    /// Write these.
    Write(Vec<OwnerReference>),
    /// Another controller has the claim: nobody is added to it. Write these where one of ours is to be taken off it.
    Conflict(Option<Vec<OwnerReference>>),
}

impl OwnersUpdate {
    /// Whether the claim may stay as it is.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self, Self::Fine | Self::Conflict(None))
    }
}

/// Compares the owners of a claim with the policy.
pub(super) fn judge(set: &StatefulSet, pod: &Pod, ordinal: i32, claim: &ObjectMeta) -> OwnersUpdate {
    let stale = |it: &OwnerReference| {
        (is_reference_to::<StatefulSet>(it, &set.metadata) && it.uid != set.metadata.uid)
            || (is_reference_to::<Pod>(it, &pod.metadata) && it.uid != pod.metadata.uid)
    };
    let own = |it: &OwnerReference| it.uid == set.metadata.uid || it.uid == pod.metadata.uid;
    let mut wanted: Vec<_> = claim.owner_references.iter().filter(|it| !own(it)).cloned().collect();
    let is_stale = claim.owner_references.iter().any(stale);
    let is_foreign = is_stale || controller_of(claim).is_some_and(|it| !own(it));
    if policy(set) != (false, false) && is_foreign {
        // What names a former set or pod is left to garbage collection as it is.
        let is_ours = claim.owner_references.iter().any(own);
        return OwnersUpdate::Conflict((is_ours && !is_stale).then_some(wanted));
    }
    if is_stale {
        return OwnersUpdate::Fine;
    }
    let owners = owners(set, ordinal);
    wanted.extend(owners.set.then(|| controller_ref::<StatefulSet>(set.meta())));
    wanted.extend(owners.pod.then(|| controller_ref::<Pod>(pod.meta())));
    let same = wanted.len() == claim.owner_references.len()
        && wanted.iter().all(|reference| claim.owner_references.contains(reference));
    if same { OwnersUpdate::Fine } else { OwnersUpdate::Write(wanted) }
}
