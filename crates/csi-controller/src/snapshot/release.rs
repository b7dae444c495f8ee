//! Lets snapshots and the claims that they are of go.

use api_machinery::meta::DeleteOptions;
use api_types::core_v1::PersistentVolumeClaim;
use api_types::snapshot_v1::{VolumeSnapshot, VolumeSnapshotContent};
use client::{Informer, ObjectKey, Patch};
use controller::{Controller, Cx, Next, ReconcileError};
use serde_json::json;

use super::common::{HELD, Snapshots, content_name};
use crate::names::snapshot as names;
use crate::{finalizers, notice};

/// Whether a volume is yet to be restored from a snapshot of its namespace.
fn is_restored(claim: &PersistentVolumeClaim, snapshot: &str) -> bool {
    let names_it = claim
        .spec
        .data_source
        .as_ref()
        .is_some_and(|source| source.kind == "VolumeSnapshot" && source.name == snapshot);
    names_it && claim.spec.volume_name.is_empty()
}

impl Snapshots {
    /// A snapshot goes once its content does, or is told that it stays without.
    pub(super) async fn release(&self, cx: &Cx, snapshot: &VolumeSnapshot) -> Result<Next, ReconcileError> {
        let (name, namespace) = (&snapshot.metadata.name, &snapshot.metadata.namespace);
        if self.claims.in_namespace(namespace).iter().any(|claim| is_restored(claim, name)) {
            notice::warning(cx, snapshot, "SnapshotDeletePending", "Snapshot is being used to restore a PVC");
            return Ok(Next::After(HELD));
        }
        let given = snapshot.spec.source.volume_snapshot_content_name.clone();
        let bound = given.unwrap_or_else(|| content_name(snapshot));
        let api = cx.client.all::<VolumeSnapshotContent>();
        let content = api.get_opt(&bound).await?;
        let content = content.filter(|content| content.spec.volume_snapshot_ref.uid == snapshot.metadata.uid);
        if let Some(content) = content {
            if !content.metadata.annotations.contains_key(names::BEING_DELETED) {
                let patch = json!({"metadata": {"annotations": {names::BEING_DELETED: "yes"}}});
                api.patch(&bound, &Patch::Merge(patch)).await?;
            }
            if content.spec.deletion_policy == "Delete" {
                if content.metadata.deletion_timestamp.is_none() {
                    api.delete_this(&content.metadata, DeleteOptions::default()).await?;
                }
                // Its end is seen; but should it have been gone already, nothing more is.
                return Ok(Next::After(HELD));
            }
        }
        finalizers::set(cx, snapshot, &[names::AS_SOURCE, names::BOUND], false).await?;
        Ok(Next::Done)
    }
}

/// Lets claims go of which no snapshot is being taken any more.
pub(super) struct Sources {
    pub(super) claims: Informer<PersistentVolumeClaim>,
    pub(super) snapshots: Informer<VolumeSnapshot>,
}

fn is_being_taken(snapshot: &VolumeSnapshot, claim: &str) -> bool {
    let of_claim = snapshot.spec.source.persistent_volume_claim_name.as_deref() == Some(claim);
    let is_taken = snapshot.status.as_ref().is_some_and(|status| status.ready_to_use == Some(true));
    of_claim && !is_taken && snapshot.metadata.deletion_timestamp.is_none()
}

#[async_trait::async_trait]
impl Controller for Sources {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(claim) = self.claims.get(key).filter(|claim| finalizers::has(&**claim, names::CLAIM_AS_SOURCE)) else {
            return Ok(Next::Done);
        };
        let snapshots = self.snapshots.in_namespace(&key.namespace);
        if !snapshots.iter().any(|snapshot| is_being_taken(snapshot, &key.name)) {
            finalizers::set(cx, &*claim, &[names::CLAIM_AS_SOURCE], false).await?;
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::time::Time;
    use api_types::snapshot_v1::VolumeSnapshotStatus;

    use super::*;

    #[test]
    fn a_claim_is_held_while_a_snapshot_is_taken_of_it() {
        let snapshot = |claim: &str, ready: Option<bool>, goes: bool| {
            let mut snapshot = VolumeSnapshot::default();
            snapshot.spec.source.persistent_volume_claim_name = Some(claim.into());
            snapshot.status =
                ready.map(|ready| VolumeSnapshotStatus { ready_to_use: Some(ready), ..Default::default() });
            snapshot.metadata.deletion_timestamp = goes.then(Time::default);
            snapshot
        };
        for (snapshot, expected) in [
            (snapshot("c", None, false), true),
            (snapshot("c", Some(false), false), true),
            (snapshot("c", Some(true), false), false),
            (snapshot("c", None, true), false),
            (snapshot("d", None, false), false),
        ] {
            assert_eq!(is_being_taken(&snapshot, "c"), expected, "{snapshot:?}");
        }
    }
}
