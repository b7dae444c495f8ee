//! The controller service.

use tonic::{Request, Response, Status};

use super::{Entry, MemoryDriver, Snap, State, required};
use crate::csi::v1::controller_server::Controller;
use crate::csi::v1::controller_service_capability::rpc::Type as Can;
use crate::csi::v1::controller_service_capability::{Rpc, Type};
use crate::csi::v1::volume_content_source::{SnapshotSource, Type as ContentType, VolumeSource};
use crate::csi::v1::*;

const CAN: [Can; 8] = [
    Can::CreateDeleteVolume,
    Can::PublishUnpublishVolume,
    Can::CreateDeleteSnapshot,
    Can::ListSnapshots,
    Can::CloneVolume,
    Can::ExpandVolume,
    Can::ModifyVolume,
    Can::GetCapacity,
];
/// What there is room for.
const ROOM: i64 = 1 << 40;
const SMALLEST: i64 = 4096;

#[tonic::async_trait]
impl Controller for MemoryDriver {
    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Result<Response<CreateVolumeResponse>, Status> {
        let request = request.into_inner();
        self.answer("CreateVolume", &request.name, |state| {
            Ok(CreateVolumeResponse { volume: Some(state.make(&request)?) })
        })
        .await
    }

    async fn delete_volume(
        &self,
        request: Request<DeleteVolumeRequest>,
    ) -> Result<Response<DeleteVolumeResponse>, Status> {
        let id = request.into_inner().volume_id;
        self.answer("DeleteVolume", &id, |state| {
            required("volume_id", !id.is_empty())?;
            if state.volumes.get(&id).is_some_and(|volume| !volume.nodes.is_empty()) {
                return Err(Status::failed_precondition(format!("volume {id} is attached")));
            }
            state.volumes.remove(&id);
            Ok(DeleteVolumeResponse {})
        })
        .await
    }

    async fn controller_publish_volume(
        &self,
        request: Request<ControllerPublishVolumeRequest>,
    ) -> Result<Response<ControllerPublishVolumeResponse>, Status> {
        let request = request.into_inner();
        self.answer("ControllerPublishVolume", &request.volume_id, |state| {
            required("node_id", !request.node_id.is_empty())?;
            required("volume_capability", request.volume_capability.is_some())?;
            let volume = state.volume(&request.volume_id)?;
            if volume.nodes.iter().any(|node| *node != request.node_id) {
                return Err(Status::failed_precondition("the volume is attached to another node"));
            }
            volume.nodes.insert(request.node_id.clone());
            Ok(ControllerPublishVolumeResponse { publish_context: [("device".to_owned(), "0".to_owned())].into() })
        })
        .await
    }

    async fn controller_unpublish_volume(
        &self,
        request: Request<ControllerUnpublishVolumeRequest>,
    ) -> Result<Response<ControllerUnpublishVolumeResponse>, Status> {
        let request = request.into_inner();
        self.answer("ControllerUnpublishVolume", &request.volume_id, |state| {
            required("volume_id", !request.volume_id.is_empty())?;
            // Where there is no volume, none is attached.
            if let Ok(volume) = state.volume(&request.volume_id) {
                volume.nodes.retain(|node| !request.node_id.is_empty() && *node != request.node_id);
            }
            Ok(ControllerUnpublishVolumeResponse {})
        })
        .await
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<ValidateVolumeCapabilitiesResponse>, Status> {
        let request = request.into_inner();
        self.0.lock().volume(&request.volume_id)?;
        required("volume_capabilities", !request.volume_capabilities.is_empty())?;
        Ok(Response::new(ValidateVolumeCapabilitiesResponse {
            confirmed: Some(validate_volume_capabilities_response::Confirmed {
                volume_context: request.volume_context,
                volume_capabilities: request.volume_capabilities,
                parameters: request.parameters,
                mutable_parameters: request.mutable_parameters,
            }),
            message: String::new(),
        }))
    }

    async fn list_volumes(&self, _: Request<ListVolumesRequest>) -> Result<Response<ListVolumesResponse>, Status> {
        Err(Status::unimplemented("volumes are not listed"))
    }

    async fn get_capacity(&self, _: Request<GetCapacityRequest>) -> Result<Response<GetCapacityResponse>, Status> {
        let taken: i64 = self.0.lock().volumes.values().map(|volume| volume.bytes).sum();
        Ok(Response::new(GetCapacityResponse { available_capacity: ROOM - taken, ..GetCapacityResponse::default() }))
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<ControllerGetCapabilitiesResponse>, Status> {
        let told =
            CAN.map(|can| ControllerServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: can.into() })) }).into();
        Ok(Response::new(ControllerGetCapabilitiesResponse { capabilities: told }))
    }

    async fn create_snapshot(
        &self,
        request: Request<CreateSnapshotRequest>,
    ) -> Result<Response<CreateSnapshotResponse>, Status> {
        let request = request.into_inner();
        self.answer("CreateSnapshot", &request.name, |state| {
            Ok(CreateSnapshotResponse { snapshot: Some(state.take(&request)?) })
        })
        .await
    }

    async fn delete_snapshot(
        &self,
        request: Request<DeleteSnapshotRequest>,
    ) -> Result<Response<DeleteSnapshotResponse>, Status> {
        let id = request.into_inner().snapshot_id;
        self.answer("DeleteSnapshot", &id, |state| {
            required("snapshot_id", !id.is_empty())?;
            state.snapshots.remove(&id);
            Ok(DeleteSnapshotResponse {})
        })
        .await
    }

    async fn list_snapshots(
        &self,
        request: Request<ListSnapshotsRequest>,
    ) -> Result<Response<ListSnapshotsResponse>, Status> {
        let request = request.into_inner();
        let state = self.0.lock();
        let wanted = |filter: &str, own: &str| filter.is_empty() || filter == own;
        let found = state.snapshots.iter().filter(|(id, snapshot)| {
            wanted(&request.snapshot_id, id) && wanted(&request.source_volume_id, &snapshot.volume)
        });
        let entries = found.map(|(id, own)| list_snapshots_response::Entry { snapshot: Some(told(id, own)) }).collect();
        Ok(Response::new(ListSnapshotsResponse { entries, next_token: String::new() }))
    }

    async fn get_snapshot(&self, _: Request<GetSnapshotRequest>) -> Result<Response<GetSnapshotResponse>, Status> {
        Err(Status::unimplemented("snapshots are listed"))
    }

    async fn controller_expand_volume(
        &self,
        request: Request<ControllerExpandVolumeRequest>,
    ) -> Result<Response<ControllerExpandVolumeResponse>, Status> {
        let request = request.into_inner();
        self.answer("ControllerExpandVolume", &request.volume_id, |state| {
            let volume = state.volume(&request.volume_id)?;
            let range = request.capacity_range.as_ref();
            let range = range.ok_or_else(|| Status::invalid_argument("capacity_range is required"))?;
            volume.bytes = volume.bytes.max(range.required_bytes);
            Ok(ControllerExpandVolumeResponse { capacity_bytes: volume.bytes, node_expansion_required: false })
        })
        .await
    }

    async fn controller_get_volume(
        &self,
        _: Request<ControllerGetVolumeRequest>,
    ) -> Result<Response<ControllerGetVolumeResponse>, Status> {
        Err(Status::unimplemented("volumes are not shown"))
    }

    async fn controller_modify_volume(
        &self,
        request: Request<ControllerModifyVolumeRequest>,
    ) -> Result<Response<ControllerModifyVolumeResponse>, Status> {
        let request = request.into_inner();
        self.answer("ControllerModifyVolume", &request.volume_id, |state| {
            state.volume(&request.volume_id)?.attributes = request.mutable_parameters.clone().into_iter().collect();
            Ok(ControllerModifyVolumeResponse {})
        })
        .await
    }
}

fn told(id: &str, snapshot: &Snap) -> Snapshot {
    Snapshot {
        size_bytes: snapshot.bytes,
        snapshot_id: id.to_owned(),
        source_volume_id: snapshot.volume.clone(),
        creation_time: Some(Timestamp { seconds: 1_700_000_000, nanos: 0 }),
        ready_to_use: true,
        group_snapshot_id: String::new(),
    }
}

/// What a volume starts with, and how large it is at least.
#[derive(Default)]
struct Origin {
    origin: String,
    least: i64,
    content: Vec<u64>,
}

impl State {
    fn make(&mut self, request: &CreateVolumeRequest) -> Result<Volume, Status> {
        required("name", !request.name.is_empty())?;
        required("volume_capabilities", !request.volume_capabilities.is_empty())?;
        let range = request.capacity_range.unwrap_or_default();
        if range.limit_bytes != 0 && range.limit_bytes < range.required_bytes {
            return Err(Status::out_of_range("no size is in the range"));
        }
        let Origin { origin, least, content } = self.origin(request.volume_content_source.as_ref())?;
        let former = self.volumes.iter().find(|(_, volume)| volume.name == request.name);
        let id = match former {
            Some((_, volume)) if volume.bytes < range.required_bytes || volume.origin != origin => {
                return Err(Status::already_exists("the volume is another than asked for"));
            }
            Some((id, _)) => id.clone(),
            None => {
                let id = self.next_id("volume");
                let bytes = range.required_bytes.max(least).max(SMALLEST);
                let attributes = request.mutable_parameters.clone().into_iter().collect();
                let (name, copied) = (request.name.clone(), content.len());
                let volume = Entry { name, bytes, origin, attributes, content, copied, ..Entry::default() };
                self.volumes.insert(id.clone(), volume);
                id
            }
        };
        Ok(Volume {
            capacity_bytes: self.volume(&id)?.bytes,
            volume_id: id,
            content_source: request.volume_content_source.clone(),
            ..Volume::default()
        })
    }

    fn origin(&mut self, source: Option<&VolumeContentSource>) -> Result<Origin, Status> {
        match source.and_then(|source| source.r#type.as_ref()) {
            None => Ok(Origin::default()),
            Some(ContentType::Volume(VolumeSource { volume_id })) => {
                let (origin, volume) = (format!("volume/{volume_id}"), self.volume(volume_id)?);
                Ok(Origin { origin, least: volume.bytes, content: volume.content.clone() })
            }
            Some(ContentType::Snapshot(SnapshotSource { snapshot_id })) => {
                let snapshot = self.snapshots.get(snapshot_id);
                let snapshot = snapshot.ok_or_else(|| Status::not_found("the snapshot does not exist"))?;
                let origin = format!("snapshot/{snapshot_id}");
                Ok(Origin { origin, least: snapshot.bytes, content: snapshot.content.clone() })
            }
        }
    }

    fn take(&mut self, request: &CreateSnapshotRequest) -> Result<Snapshot, Status> {
        required("name", !request.name.is_empty())?;
        let Entry { bytes, content, .. } = self.volume(&request.source_volume_id)?.clone();
        let former = self.snapshots.iter().find(|(_, snapshot)| snapshot.name == request.name);
        let former = former.map(|(id, snapshot)| (id.clone(), snapshot.clone()));
        match former {
            Some((_, snapshot)) if snapshot.volume != request.source_volume_id => {
                Err(Status::already_exists("the snapshot is of another volume"))
            }
            Some((id, snapshot)) => Ok(told(&id, &snapshot)),
            None => {
                let id = self.next_id("snapshot");
                let (name, volume) = (request.name.clone(), request.source_volume_id.clone());
                let snapshot = Snap { name, volume, bytes, content };
                let told = told(&id, &snapshot);
                self.snapshots.insert(id, snapshot);
                Ok(told)
            }
        }
    }
}
