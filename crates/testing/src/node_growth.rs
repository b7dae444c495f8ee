//! What a hollow node does about volumes that have grown: what is on them grows, too, while a pod uses them, and then the claim
//! is told to be as large as it was promised.

use api_machinery::quantity::Quantity;
use api_machinery::value::{Value, to_value};
use api_types::core_v1::constants::{claim_resource_status, persistent_volume_claim_condition_type as condition};
use api_types::core_v1::{PersistentVolumeClaim, Pod};
use client::{Client, Patch};
use serde_json::json;

use crate::node_volumes::{NodeVolumes, Unmet, claims_of, volume_of};

impl NodeVolumes {
    /// Does the node's part for each claim of a pod that waits for it.
    pub(crate) async fn grow(&self, client: &Client, node: &str, pod: &Pod) -> Result<(), Unmet> {
        let claims = client.namespaced::<PersistentVolumeClaim>(&pod.metadata.namespace);
        for name in claims_of(pod) {
            let Some(claim) = claims.get_opt(name).await? else { continue };
            let Some(size) = promised(&claim) else { continue };
            let Some(volume) = volume_of(client, &claim).await? else { continue };
            self.driver()?.expand(node, &volume.handle, size).await?;
            match claims.patch_status(name, &Patch::Merge(grown(&claim, size))).await {
                // Somebody else has changed it: it is looked at again.
                Err(error) if error.is_conflict() => return Err(Unmet::Volume),
                done => done.map(drop)?,
            }
        }
        Ok(())
    }
}

/// The size to which a claim waits to be grown by its node.
fn promised(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    let progress = claim.status.allocated_resource_statuses.get("storage")?;
    let is_pending = progress == claim_resource_status::NODE_RESIZE_PENDING;
    claim.status.allocated_resources.get("storage").filter(|_| is_pending)
}

/// The change to a claim that is this large now. It is of the version that was looked at: one that comes late must not undo
/// what has been promised since.
fn grown(claim: &PersistentVolumeClaim, size: &Quantity) -> Value {
    let others = claim.status.conditions.iter().filter(|own| own.type_ != condition::FILE_SYSTEM_RESIZE_PENDING);
    let others: Vec<Value> = others.map(|own| to_value(own)).collect();
    let status = json!({"capacity": {"storage": size.to_string()}, "allocatedResourceStatuses": {"storage": null},
        "conditions": others});
    json!({"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status})
}
