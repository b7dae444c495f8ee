//! Kinds that own the objects they make, and the way from an object to those who care about it.

use std::borrow::Cow;
use std::sync::Arc;

use api_machinery::labels::Selector;
use api_machinery::meta::{LabelSelector, ObjectMeta};
use api_machinery::object::{Kind, Object};
use api_types::apps_v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use api_types::batch_v1::Job;
use api_types::core_v1::ReplicationController;
use client::{ApiObject, Change, Informer, ObjectKey};
use component_helpers::selectors::selector_of;
use controller::controller_of;

/// A kind whose objects own others and select them by labels.
pub(crate) trait Owner: Kind + ApiObject {
    /// The selector.
    fn selector(&self) -> Option<Cow<'_, LabelSelector>>;
    /// How long a pod must be ready to count as available.
    fn min_ready_seconds(&self) -> i32 {
        0
    }
}

impl Owner for Deployment {
    fn selector(&self) -> Option<Cow<'_, LabelSelector>> {
        self.spec.selector.as_ref().map(Cow::Borrowed)
    }
}

impl Owner for ReplicaSet {
    fn selector(&self) -> Option<Cow<'_, LabelSelector>> {
        self.spec.selector.as_ref().map(Cow::Borrowed)
    }
    fn min_ready_seconds(&self) -> i32 {
        self.spec.min_ready_seconds
    }
}

impl Owner for ReplicationController {
    fn selector(&self) -> Option<Cow<'_, LabelSelector>> {
        let match_labels = self.spec.selector.clone();
        Some(Cow::Owned(LabelSelector { match_labels, ..LabelSelector::default() }))
    }
    fn min_ready_seconds(&self) -> i32 {
        self.spec.min_ready_seconds
    }
}

impl Owner for DaemonSet {
    fn selector(&self) -> Option<Cow<'_, LabelSelector>> {
        self.spec.selector.as_ref().map(Cow::Borrowed)
    }
    fn min_ready_seconds(&self) -> i32 {
        self.spec.min_ready_seconds
    }
}

impl Owner for StatefulSet {
    fn selector(&self) -> Option<Cow<'_, LabelSelector>> {
        self.spec.selector.as_ref().map(Cow::Borrowed)
    }
    fn min_ready_seconds(&self) -> i32 {
        self.spec.min_ready_seconds
    }
}

impl Owner for Job {
    fn selector(&self) -> Option<Cow<'_, LabelSelector>> {
        self.spec.selector.as_ref().map(Cow::Borrowed)
    }
}

/// The owner's selector; one that cannot be read selects nothing, as validation keeps those out.
pub(crate) fn selector_or_nothing<O: Owner>(owner: &O) -> Selector {
    selector_of(owner.selector().as_deref()).unwrap_or_else(|_| Selector::nothing())
}

/// Whether the selector is there and empty, which would select everything.
pub(crate) fn selects_all(selector: Option<&LabelSelector>) -> bool {
    selector.is_some_and(|selector| selector.match_labels.is_empty() && selector.match_expressions.is_empty())
}

/// The controller of an object, when it is an `O`, exists and has the uid of the reference.
pub(crate) fn resolve<O: Owner>(owners: &Informer<O>, child: &ObjectMeta) -> Option<Arc<O>> {
    let reference = controller_of(child).filter(|reference| reference.kind == O::TYPE.kind)?;
    let owner = owners.find(&child.namespace, &reference.name)?;
    (owner.meta().uid == reference.uid).then_some(owner)
}

/// Those who might adopt an orphan: their selectors are not empty and match its labels.
pub(crate) fn suitors<O: Owner>(owners: &Informer<O>, orphan: &ObjectMeta) -> Vec<ObjectKey> {
    if orphan.labels.is_empty() {
        return Vec::new();
    }
    let matches = |owner: &Arc<O>| {
        let selector = selector_or_nothing(&**owner);
        !selects_all(owner.selector().as_deref()) && selector.matches(&orphan.labels)
    };
    owners.in_namespace(&orphan.namespace).iter().filter(|owner| matches(owner)).map(|owner| key(&**owner)).collect()
}

/// The key of an object.
pub(crate) fn key<O: Object>(object: &O) -> ObjectKey {
    ObjectKey::of(object.meta())
}

/// Whether another controller has the object now than before.
pub(crate) fn owner_changed(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    controller_of(old) != controller_of(new)
}

/// The owners that a change of one of their objects (other than pods) concerns.
pub(crate) fn concerned<O: Owner, C: ApiObject>(owners: &Informer<O>, change: &Change<C>) -> Vec<ObjectKey> {
    let owner_of = |child: &ObjectMeta| resolve(owners, child).map(|owner| key(&*owner));
    let child = change.object().meta();
    let orphaned = controller_of(child).is_none();
    match change {
        Change::Deleted { .. } => owner_of(child).into_iter().collect(),
        Change::Added { .. } if child.deletion_timestamp.is_some() => owner_of(child).into_iter().collect(),
        Change::Added { .. } if orphaned => suitors(owners, child),
        Change::Added { .. } => owner_of(child).into_iter().collect(),
        Change::Updated { .. } if change.is_resync() => Vec::new(),
        Change::Updated { old, .. } => {
            let old = old.meta();
            let moved = owner_changed(old, child);
            let mut keys: Vec<_> = moved.then(|| owner_of(old)).flatten().into_iter().collect();
            if !orphaned {
                keys.extend(owner_of(child));
            } else if moved || old.labels != child.labels {
                keys.extend(suitors(owners, child));
            }
            keys
        }
    }
}
