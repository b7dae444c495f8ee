//! The decision about one object: whether it must go, with what policy, or which of its references are stale.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{ObjectMeta, OwnerReference};
use client::{Client, EventType, ObjectKey, ResourceInfo};
use controller::{Controller, Cx, Next, ReconcileError};

use super::Shared;
use super::graph::Node;
use super::object::{FOREGROUND, Identity, ORPHAN, delete, live, remove_finalizer, remove_references, unblock};

/// How soon work is looked at again that came before the graph was complete.
const NOT_READY: Duration = Duration::from_millis(500);

const NAMESPACED_OWNER: &str = "cluster-scoped objects cannot refer to namespaced owners";

/// Works on the objects that may have to go.
pub(super) struct Collector(pub(super) Arc<Shared>);

/// What an owner reference points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// An object that stays.
    Solid,
    /// An object that waits for its dependents to go.
    Waiting,
    /// Nothing.
    Dangling,
}

/// What to do with an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ItemAction {
    Keep,
    /// Take out the references to these owners.
    Forget(Vec<String>),
    /// Delete it in the foreground; its own owner waits for it. With a cycle among the dependents, its own references
    /// must stop blocking first.
    DeleteForeground,
    /// Delete it.
    Delete(&'static str),
}

/// Decides from what the references point at.
pub(super) fn action_for(meta: &ObjectMeta, owners: &[(String, Owner)], has_dependents: bool) -> ItemAction {
    let any = |state: Owner| owners.iter().any(|(_, owner)| *owner == state);
    if any(Owner::Solid) {
        let gone: Vec<String> =
            owners.iter().filter(|(_, owner)| *owner != Owner::Solid).map(|(uid, _)| uid.clone()).collect();
        return if gone.is_empty() { ItemAction::Keep } else { ItemAction::Forget(gone) };
    }
    if any(Owner::Waiting) && has_dependents {
        return ItemAction::DeleteForeground;
    }
    let has = |finalizer: &str| meta.finalizers.iter().any(|one| one == finalizer);
    ItemAction::Delete(match () {
        () if has(ORPHAN) => "Orphan",
        () if has(FOREGROUND) => "Foreground",
        () => "Background",
    })
}

/// Whether a dependent with these owners holds up the foreground deletion of one of them.
pub(super) fn blocks(owners: &[OwnerReference], uid: &str) -> bool {
    owners.iter().any(|reference| reference.uid == uid && reference.block_owner_deletion == Some(true))
}

#[async_trait::async_trait]
impl Controller for Collector {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        if !self.0.is_ready() {
            return Ok(Next::After(NOT_READY));
        }
        let Some(node) = self.0.graph.lock().node(&key.name) else { return Ok(Next::Done) };
        if node.is_virtual {
            return self.check_virtual(cx, &node.identity).await;
        }
        if !node.deleting_dependents && (node.being_deleted || node.owners.is_empty()) {
            return Ok(Next::Done);
        }
        let info = node.identity.resource(&self.0.mapper)?;
        let Some(meta) = live(&cx.client, &info, &node.identity).await? else {
            self.0.change(|graph| graph.remove(&key.name));
            return Ok(Next::Done);
        };
        if node.deleting_dependents {
            self.await_dependents(cx, &info, &node.identity).await?;
        } else if !meta.owner_references.is_empty() {
            self.collect(cx, &info, &node, &meta).await?;
        }
        Ok(Next::Done)
    }
}

impl Collector {
    /// Is there such an owner at all? If so, its own event will come soon.
    async fn check_virtual(&self, cx: &Cx, identity: &Identity) -> Result<Next, ReconcileError> {
        let info = identity.resource(&self.0.mapper)?;
        if info.namespaced && identity.namespace.is_empty() {
            // Not found is not the same as not there: nothing may be deleted for it.
            return Err(ReconcileError::permanent(NAMESPACED_OWNER));
        }
        if live(&cx.client, &info, identity).await?.is_some() {
            return Ok(Next::Again);
        }
        let scoped = absent_identity(&info, identity);
        self.0.change(|graph| {
            let mut effects = graph.not_there(identity);
            effects.absent = Some(scoped);
            effects
        });
        Ok(Next::Done)
    }

    /// Lets an object go when nothing blocks it any more, and else has those that do deleted.
    async fn await_dependents(&self, cx: &Cx, info: &ResourceInfo, owner: &Identity) -> Result<(), ReconcileError> {
        let dependents = self.0.graph.lock().dependents(&owner.uid);
        let blocking: Vec<&Node> = dependents.iter().filter(|node| blocks(&node.owners, &owner.uid)).collect();
        if blocking.is_empty() {
            remove_finalizer(&cx.client, info, owner, FOREGROUND).await?;
            return Ok(());
        }
        for node in blocking.into_iter().filter(|node| !node.deleting_dependents) {
            cx.queue.add(ObjectKey::cluster(node.identity.uid.clone()));
        }
        Ok(())
    }

    async fn collect(
        &self,
        cx: &Cx,
        info: &ResourceInfo,
        node: &Node,
        meta: &ObjectMeta,
    ) -> Result<(), ReconcileError> {
        let mut owners = Vec::with_capacity(meta.owner_references.len());
        for reference in &meta.owner_references {
            owners.push((reference.uid.clone(), self.look_at(cx, node, reference).await?));
        }
        let has_dependents = !node.dependents.is_empty();
        match action_for(meta, &owners, has_dependents) {
            ItemAction::Keep => {}
            ItemAction::Forget(gone) => remove_references(&cx.client, info, meta, &gone).await?,
            ItemAction::DeleteForeground => {
                let dependents = self.0.graph.lock().dependents(&meta.uid);
                if dependents.iter().any(|dependent| dependent.deleting_dependents) {
                    unblock(&cx.client, info, meta).await?;
                    let Some(now) = live(&cx.client, info, &node.identity).await? else { return Ok(()) };
                    return self.delete(&cx.client, info, &now, "Foreground").await;
                }
                self.delete(&cx.client, info, meta, "Foreground").await?;
            }
            ItemAction::Delete(policy) => self.delete(&cx.client, info, meta, policy).await?,
        }
        Ok(())
    }

    async fn delete(
        &self,
        client: &Client,
        info: &ResourceInfo,
        meta: &ObjectMeta,
        policy: &str,
    ) -> Result<(), ReconcileError> {
        tracing::info!(kind = info.kind, namespace = meta.namespace, name = meta.name, policy, "Deleting item");
        match delete(client, info, meta, policy).await {
            Err(error) if error.is_not_found() => {
                self.0.change(|graph| graph.remove(&meta.uid));
                Ok(())
            }
            outcome => Ok(outcome?),
        }
    }

    /// What a reference points at, asked of the server unless it is known to be nothing.
    async fn look_at(&self, cx: &Cx, node: &Node, reference: &OwnerReference) -> Result<Owner, ReconcileError> {
        let owner = Identity::of_owner(reference, &node.identity.namespace);
        if self.0.absent.lock().contains(&owner) {
            self.warn_of_namespace(cx, node, reference);
            return Ok(Owner::Dangling);
        }
        let info = owner.resource(&self.0.mapper)?;
        if info.namespaced && owner.namespace.is_empty() {
            return Err(ReconcileError::permanent(NAMESPACED_OWNER));
        }
        if let Some(found) = live(&cx.client, &info, &owner).await? {
            let waiting = found.deletion_timestamp.is_some() && found.finalizers.iter().any(|one| one == FOREGROUND);
            return Ok(if waiting { Owner::Waiting } else { Owner::Solid });
        }
        self.warn_of_namespace(cx, node, reference);
        self.0.absent.lock().remember(absent_identity(&info, &owner));
        Ok(Owner::Dangling)
    }

    /// An owner in another namespace is a mistake of the user, who should hear of it.
    fn warn_of_namespace(&self, cx: &Cx, node: &Node, reference: &OwnerReference) {
        let Some(owner) = self.0.graph.lock().node(&reference.uid) else { return };
        let (own, item) = (&owner.identity, &node.identity);
        if owner.is_virtual || own.namespace.is_empty() || own.namespace == item.namespace {
            return;
        }
        let about = api_types::core_v1::ObjectReference {
            kind: item.kind.clone(),
            api_version: item.api_version.clone(),
            namespace: item.namespace.clone(),
            name: item.name.clone(),
            uid: item.uid.clone(),
            ..Default::default()
        };
        let (version, kind, name, uid) = (&reference.api_version, &reference.kind, &reference.name, &reference.uid);
        let namespace = &item.namespace;
        let message = format!(
            "ownerRef [{version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace \
             {namespace:?}"
        );
        cx.events.event_for(about, EventType::Warning, "OwnerRefInvalidNamespace", message);
    }
}

/// Absence of a cluster-scoped owner holds for dependents in all namespaces.
fn absent_identity(info: &ResourceInfo, owner: &Identity) -> Identity {
    if info.namespaced { owner.clone() } else { Identity { namespace: String::new(), ..owner.clone() } }
}
