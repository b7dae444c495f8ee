//! Has the driver grow a volume.

use api_machinery::quantity::{Format, Quantity};
use api_machinery::time::Time;
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use client::Patch;
use component_helpers::volumes::matching::storage;
use component_helpers::volumes::names::PRE_RESIZE_CAPACITY;
use controller::{Cx, ReconcileError};
use node_api::RpcError;
use node_api::csi::access_mode;
use node_api::csi::v1::controller_service_capability::rpc::Type as Can;
use node_api::csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use node_api::csi::v1::{CapacityRange, ControllerExpandVolumeRequest, VolumeCapability};
use serde_json::json;
use tonic::Code;

use super::Resizer;
use super::plan::{Plan, Stage, change, plan};
use crate::{notice, secrets};

/// Whether asking for this size again is of no use.
fn is_infeasible(error: &RpcError) -> bool {
    matches!(error.code, Code::InvalidArgument | Code::OutOfRange | Code::NotFound)
}

impl Resizer {
    pub(super) async fn grow(
        &self,
        cx: &Cx,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
        handle: &str,
    ) -> Result<(), ReconcileError> {
        let size = match plan(claim, volume) {
            Plan::Nothing => return Ok(()),
            Plan::Pending(size) => return self.write(cx, claim, Stage::OnNode, &size, "").await.map(drop),
            Plan::Grow(size) => size,
        };
        let name = &volume.metadata.name;
        notice::normal(cx, claim, "Resizing", format!("External resizer is resizing volume {name}"));
        let claim = self.write(cx, claim, Stage::Begun, &size, "").await?;
        let answer = self.driver.calls.expand_volume(self.request(cx, volume, handle, &size).await?).await;
        let answer = match answer {
            Ok(answer) if answer.capacity_bytes < size.value() => {
                let (has, wanted) = (answer.capacity_bytes, size.value());
                Err(RpcError::new(Code::Internal, format!("the volume has {has} bytes, not {wanted}")))
            }
            answer => answer,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.failed(cx, &claim, name, &size, &error).await,
        };
        let grown = Quantity::from_value(answer.capacity_bytes, Format::BinarySi);
        self.write_volume(cx, &claim, volume, &grown, answer.node_expansion_required).await?;
        if answer.node_expansion_required {
            self.write(cx, &claim, Stage::OnNode, &size, "").await?;
            let message = "Require file system resize of volume on node";
            notice::normal(cx, &claim, "FileSystemResizeRequired", message);
        } else {
            self.write(cx, &claim, Stage::Done, &grown, "").await?;
            notice::normal(cx, &claim, "VolumeResizeSuccessful", "Resize volume succeeded");
        }
        Ok(())
    }

    async fn failed(
        &self,
        cx: &Cx,
        claim: &PersistentVolumeClaim,
        volume: &str,
        size: &Quantity,
        error: &RpcError,
    ) -> Result<(), ReconcileError> {
        let driver = &self.driver.name;
        let reason = format!("resize volume \"{volume}\" by resizer \"{driver}\" failed: {error}");
        notice::warning(cx, claim, "VolumeResizeFailed", reason.clone());
        if is_infeasible(error) {
            self.write(cx, claim, Stage::Infeasible, size, &reason).await?;
        }
        Err(ReconcileError::failed(reason))
    }

    async fn request(
        &self,
        cx: &Cx,
        volume: &PersistentVolume,
        handle: &str,
        size: &Quantity,
    ) -> Result<ControllerExpandVolumeRequest, ReconcileError> {
        let spec = &volume.spec;
        let csi = spec.persistent_volume_source.csi.as_ref();
        let access_type = if spec.volume_mode.as_deref() == Some("Block") {
            AccessType::Block(BlockVolume {})
        } else {
            AccessType::Mount(MountVolume {
                fs_type: csi.map(|csi| csi.fs_type.clone()).unwrap_or_default(),
                mount_flags: spec.mount_options.clone(),
                volume_mount_group: String::new(),
            })
        };
        let mode = spec.access_modes.first().map_or("ReadWriteOnce", String::as_str);
        let mode = access_mode(mode, self.driver.can(Can::SingleNodeMultiWriter)).into();
        Ok(ControllerExpandVolumeRequest {
            volume_id: handle.to_owned(),
            capacity_range: Some(CapacityRange { required_bytes: size.value(), limit_bytes: 0 }),
            secrets: secrets::read(cx, csi.and_then(|csi| csi.controller_expand_secret_ref.as_ref())).await?,
            volume_capability: Some(VolumeCapability {
                access_mode: Some(AccessMode { mode }),
                access_type: Some(access_type),
            }),
        })
    }

    async fn write(
        &self,
        cx: &Cx,
        claim: &PersistentVolumeClaim,
        stage: Stage,
        size: &Quantity,
        message: &str,
    ) -> Result<PersistentVolumeClaim, ReconcileError> {
        let change = change(claim, stage, size, Time::from(cx.clock.wall()), message);
        let api = cx.client.namespaced::<PersistentVolumeClaim>(&claim.metadata.namespace);
        Ok(api.patch_status(&claim.metadata.name, &Patch::Merge(change)).await?)
    }

    /// A volume whose node has work left says what it was before, so that a claim that is bound anew shows that.
    async fn write_volume(
        &self,
        cx: &Cx,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
        size: &Quantity,
        is_pending: bool,
    ) -> Result<(), ReconcileError> {
        if storage(&volume.spec.capacity) >= size {
            return Ok(());
        }
        let mut body = json!({"spec": {"capacity": {"storage": size.to_string()}}});
        if is_pending && !volume.metadata.annotations.contains_key(PRE_RESIZE_CAPACITY) {
            body["metadata"]["annotations"][PRE_RESIZE_CAPACITY] = storage(&claim.status.capacity).to_string().into();
        }
        cx.client.all::<PersistentVolume>().patch(&volume.metadata.name, &Patch::Merge(body)).await?;
        Ok(())
    }
}
