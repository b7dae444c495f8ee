//! What a group of pods needs done (KEP-5729): claims made from its templates and told of in its status. Its pods have these, too.

use std::sync::Arc;

use api_types::core_v1::Pod;
use api_types::scheduling_v1alpha2::PodGroup;
use client::{Change, Informer, ObjectKey};
use component_helpers::group_claims::group_of;
use controller::{Build, CONTROLLER_UID, Cx, Queue, ReconcileError};

use super::holder::Holder;
use super::making::telling;
use super::naming::Named;
use super::{BY_CLAIM, BY_CONSUMER, BY_TEMPLATE, Claims, OF_CLAIM, OF_GROUP, keyed};

/// Index of pods by the groups that they are of, `{namespace}/{name}`.
pub(in crate::devices) const BY_GROUP: &str = "pod-groups";

/// The values of that index.
pub(in crate::devices) fn groups_of(pod: &Pod) -> Vec<String> {
    group_of(pod).map(|group| format!("{}/{group}", pod.metadata.namespace)).into_iter().collect()
}

/// The groups, and the pods by these.
pub(super) fn watch(build: &mut Build<'_>) -> Informer<PodGroup> {
    drop(build.watch::<Pod>().index(BY_GROUP, groups_of));
    let named = |group: &PodGroup| in_namespace(group, Holder::Group(group).names());
    let templates = |group: &PodGroup| {
        let entries = Holder::Group(group).entries();
        in_namespace(group, entries.into_iter().filter_map(|entry| entry.template).collect())
    };
    build.watch::<PodGroup>().index(BY_CLAIM, named).index(BY_TEMPLATE, templates).informer()
}

fn in_namespace(group: &PodGroup, names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(|name| format!("{}/{name}", group.metadata.namespace)).collect()
}

impl Claims {
    /// The group of a pod that shares claims with it.
    ///
    /// # Errors
    /// The group is not there: it is not known which claims it shares.
    pub(super) fn group_of(&self, pod: &Pod) -> Result<Option<Arc<PodGroup>>, NotThere> {
        let (Some(groups), Some(name)) = (&self.groups, self.whose.group_of(pod)) else { return Ok(None) };
        groups.find(&pod.metadata.namespace, name).map(Some).ok_or(NotThere)
    }

    /// What is looked at after a group has changed: the group, if it may need something, and its pods; its claims, once it is gone.
    pub(super) fn after_group(&self, change: &Change<PodGroup>, queue: &Queue) {
        let (group, key) = (change.object(), change.key());
        if change.is_deleted() {
            self.gone.lock().note(&group.metadata.uid);
            let uid = &group.metadata.uid;
            let known = [CONTROLLER_UID, BY_CONSUMER].into_iter().flat_map(|index| self.claims.by_index(index, uid));
            for claim in known {
                queue.add(keyed(OF_CLAIM, &key.namespace, &claim.metadata.name));
            }
            for name in Holder::Group(group).names() {
                queue.add(keyed(OF_CLAIM, &key.namespace, name));
            }
        } else if self.may_group_need_work(group) {
            queue.add(keyed(OF_GROUP, &key.namespace, &key.name));
        }
        self.enqueue_pods(BY_GROUP, &key, queue);
    }

    pub(super) fn enqueue_groups(&self, index: &str, key: &ObjectKey, queue: &Queue) {
        let groups = self.groups.iter().flat_map(|groups| groups.by_index(index, &key.to_string()));
        for group in groups.filter(|group| self.may_group_need_work(group)) {
            queue.add(keyed(OF_GROUP, &group.metadata.namespace, &group.metadata.name));
        }
    }

    fn may_group_need_work(&self, group: &PodGroup) -> bool {
        let holder = Holder::Group(group);
        group.metadata.deletion_timestamp.is_none()
            && holder.entries().into_iter().any(|entry| match holder.named(entry) {
                Named::Unknown | Named::ToMake { .. } => true,
                Named::Nothing => false,
                // Somebody else's claim of that name is in the way, until it is gone.
                Named::Claim { name, is_made } => {
                    is_made && self.claims.find(&group.metadata.namespace, name).is_none()
                }
            })
    }

    pub(super) async fn sync_group(&self, cx: &Cx, group: &PodGroup) -> Result<(), ReconcileError> {
        if group.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let holder = Holder::Group(group);
        let mut made = Vec::new();
        for entry in holder.entries() {
            match self.ensure(cx, holder, entry).await {
                Ok(claim) => made.extend(claim.map(|claim| (entry.name.to_owned(), claim))),
                Err(error) => return Err(holder.not_made(cx, entry.name, &error)),
            }
        }
        if !made.is_empty() {
            let (patch, options) = telling(holder, &made);
            let groups = cx.client.namespaced::<PodGroup>(&group.metadata.namespace);
            groups.patch_subresource(&group.metadata.name, "status", &patch, &options).await?;
        }
        Ok(())
    }
}

/// A pod names a group that is not there.
#[derive(Debug)]
pub(super) struct NotThere;
