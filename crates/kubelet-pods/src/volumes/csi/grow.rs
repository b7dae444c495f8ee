//! What is on a volume grows after the volume has grown, while it is in use.

use std::path::Path;

use api_machinery::quantity::Quantity;
use api_machinery::value::{Value, to_value};
use api_types::core_v1::{ObjectReference, PersistentVolumeClaim, Pod};
use client::{Patch, object_reference};
use node_api::csi::v1::node_service_capability::rpc::Type as Capability;
use node_api::csi::v1::{CapacityRange, NodeExpandVolumeRequest};
use node_api::tonic::Code;
use serde_json::json;

use super::volume::OfClaim;
use super::{Csi, CsiError, request};
use crate::interfaces::Level;
use crate::volumes::error::VolumeError;
use crate::volumes::plugin::VolumeSpec;
use crate::volumes::world::MountedVolume;

/// Answers after which trying again with the same size is of no use.
const INFEASIBLE: [Code; 3] = [Code::InvalidArgument, Code::OutOfRange, Code::NotFound];
const IN_PROGRESS: &str = "NodeResizeInProgress";
const INFEASIBLE_STATUS: &str = "NodeResizeInfeasible";

impl Csi {
    /// Has a volume grown that is larger than its claim knows; `staging` is where it is staged, if it is.
    pub(super) async fn grow_volume(
        &self,
        pod: &Pod,
        spec: &VolumeSpec,
        mounted: &MountedVolume,
        staging: &Path,
    ) -> Result<(), VolumeError> {
        let volume = Self::volume(spec)?;
        let Some(claim) = volume.claim.as_ref().filter(|claim| claim.is_behind()) else { return Ok(()) };
        let name = spec.directory();
        if mounted.read_only {
            let text =
                format!("MountVolume.NodeExpandVolume failed for volume {name:?} requested read-only file system");
            self.tell(pod, claim, Level::Warning, "FileSystemResizeFailed", &text);
            return Ok(());
        }
        let driver = self.driver(&volume.driver, "Expander.NodeExpand failed to get CSI client").await?;
        if !driver.can(Capability::ExpandVolume) {
            return Ok(());
        }
        let version = if claim.resize == IN_PROGRESS {
            claim.version.clone()
        } else {
            self.note(claim, &claim.version, IN_PROGRESS).await?
        };
        let staged = driver.can(Capability::StageUnstageVolume);
        let grown = driver.client.expand(NodeExpandVolumeRequest {
            volume_id: volume.handle.clone(),
            volume_path: mounted.path.display().to_string(),
            capacity_range: Some(CapacityRange { required_bytes: claim.grown_to.value(), limit_bytes: 0 }),
            staging_target_path: if staged { staging.display().to_string() } else { String::new() },
            volume_capability: Some(request::capability(volume, None, &driver.capabilities)),
            secrets: self.secret("NodeExpandSecretRef", volume.expand_secret.as_ref()).await?,
        });
        if let Err(error) = grown.await {
            if INFEASIBLE.contains(&error.code) {
                self.note(claim, &version, INFEASIBLE_STATUS).await?;
            }
            let text = format!("NodeExpandVolume.NodeExpandVolume failed for volume {name:?} : {error}");
            self.tell(pod, claim, Level::Warning, "VolumeResizeFailed", &text);
            return Err(CsiError::from(error).into());
        }
        self.finish(claim, &version).await?;
        let text = format!("MountVolume.NodeExpandVolume succeeded for volume {name:?} {}", self.0.csi.node_name);
        self.tell(pod, claim, Level::Normal, "FileSystemResizeSuccessful", &text);
        Ok(())
    }

    /// Writes how far the change of a claim's size is.
    async fn note(&self, claim: &OfClaim, version: &str, status: &str) -> Result<String, CsiError> {
        self.patch(claim, version, json!({"allocatedResourceStatuses": {"storage": status}})).await
    }

    /// The claim is as large as its volume.
    async fn finish(&self, claim: &OfClaim, version: &str) -> Result<String, CsiError> {
        let conditions: Vec<Value> = claim.other_conditions.iter().map(|found| to_value(found)).collect();
        let status = json!({
            "capacity": {"storage": claim.grown_to.to_string()},
            "allocatedResourceStatuses": {"storage": null},
            "conditions": conditions,
        });
        self.patch(claim, version, status).await
    }

    /// Changes the claim where it is still of this version, and tells the one that it has then: a list is replaced as a whole,
    /// and what others have put there since must not go with it.
    async fn patch(&self, claim: &OfClaim, version: &str, status: Value) -> Result<String, CsiError> {
        let client = self.0.client.as_ref().ok_or(CsiError::NoClient)?;
        let api = client.namespaced::<PersistentVolumeClaim>(&claim.namespace);
        let body = json!({"metadata": {"resourceVersion": version}, "status": status});
        let patched = api.patch_status(&claim.name, &Patch::Merge(body)).await;
        let patched = patched.map(|claim| claim.metadata.resource_version);
        patched.map_err(|source| CsiError::Claim { name: claim.name.clone(), source: Box::new(source) })
    }

    /// Both who uses the volume and whose it is hear of it.
    fn tell(&self, pod: &Pod, claim: &OfClaim, level: Level, reason: &str, text: &str) {
        let about = ObjectReference {
            api_version: "v1".to_owned(),
            kind: "PersistentVolumeClaim".to_owned(),
            namespace: claim.namespace.clone(),
            name: claim.name.clone(),
            uid: claim.uid.clone(),
            ..ObjectReference::default()
        };
        for about in [object_reference(pod), about] {
            self.0.events.event(about, level, reason, text);
        }
    }
}

impl OfClaim {
    /// Whether the volume is larger than the claim knows, and growing what is on it has not been given up.
    fn is_behind(&self) -> bool {
        let zero = Quantity::default();
        self.size > zero && self.grown_to > self.size && self.resize != INFEASIBLE_STATUS
    }
}
