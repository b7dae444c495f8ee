//! The controller service: volumes come, grow and go.

use std::collections::BTreeSet;
use std::path::PathBuf;

use node_api::csi::v1::controller_server::Controller;
use node_api::csi::v1::controller_service_capability::rpc::Type as Capability;
use node_api::csi::v1::controller_service_capability::{Rpc, Type};
use node_api::csi::v1::volume_content_source::{self as content, Type as ContentType};
use node_api::csi::v1::*;
use tonic::{Request, Response, Status};

use crate::capability::{is_accessible, is_here, kind_of, no_parameters, read, required};
use crate::driver::{Driver, internal, set_image_size};
use crate::listing::page;
use crate::loops;
use crate::record::{Kind, Origin, Volume, is_volume_id, volume_id};
use crate::size;

/// What the service can do.
const CAPABILITIES: [Capability; 9] = [
    Capability::CreateDeleteVolume,
    Capability::ListVolumes,
    Capability::GetCapacity,
    Capability::CreateDeleteSnapshot,
    Capability::ListSnapshots,
    Capability::CloneVolume,
    Capability::ExpandVolume,
    Capability::SingleNodeMultiWriter,
    Capability::GetSnapshot,
];

#[tonic::async_trait]
impl Controller for Driver {
    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Result<Response<CreateVolumeResponse>, Status> {
        let (driver, request) = (self.clone(), request.into_inner());
        self.whole("create volume", async move {
            let volume = Some(driver.make_volume(&request).await?);
            Ok(CreateVolumeResponse { volume })
        })
        .await
    }

    async fn delete_volume(
        &self,
        request: Request<DeleteVolumeRequest>,
    ) -> Result<Response<DeleteVolumeResponse>, Status> {
        let (driver, id) = (self.clone(), request.into_inner().volume_id);
        self.whole("delete volume", async move {
            if id.is_empty() {
                return Err(Status::invalid_argument("volume_id is required"));
            }
            let _turn = driver.turn(&id)?;
            driver.drop_volume(&id).await?;
            Ok(DeleteVolumeResponse {})
        })
        .await
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<ValidateVolumeCapabilitiesResponse>, Status> {
        let request = request.into_inner();
        let volume = self.volume(&request.volume_id)?;
        if request.volume_capabilities.is_empty() {
            return Err(Status::invalid_argument("volume_capabilities are required"));
        }
        let problem = match kind_of(&request.volume_capabilities) {
            Ok(kind) if kind == volume.kind => no_parameters(&request.parameters).err(),
            Ok(_) => Some(Status::invalid_argument("the volume is of another kind")),
            Err(status) => Some(status),
        };
        Ok(Response::new(match problem {
            Some(status) => {
                ValidateVolumeCapabilitiesResponse { confirmed: None, message: status.message().to_owned() }
            }
            None => ValidateVolumeCapabilitiesResponse {
                confirmed: Some(validate_volume_capabilities_response::Confirmed {
                    volume_context: request.volume_context,
                    volume_capabilities: request.volume_capabilities,
                    parameters: request.parameters,
                    mutable_parameters: request.mutable_parameters,
                }),
                message: String::new(),
            },
        }))
    }

    async fn list_volumes(
        &self,
        request: Request<ListVolumesRequest>,
    ) -> Result<Response<ListVolumesResponse>, Status> {
        let ListVolumesRequest { max_entries, starting_token } = request.into_inner();
        let contents = self.contents();
        let page = page(&contents.volumes, (max_entries, &starting_token), is_volume_id, |volume| {
            // Inline volumes are the node's own business.
            let volume = (!volume.ephemeral).then(|| self.told(volume));
            volume.map(|volume| list_volumes_response::Entry { volume: Some(volume), status: None })
        })?;
        Ok(Response::new(ListVolumesResponse { entries: page.entries, next_token: page.next_token }))
    }

    async fn get_capacity(
        &self,
        request: Request<GetCapacityRequest>,
    ) -> Result<Response<GetCapacityResponse>, Status> {
        let request = request.into_inner();
        let elsewhere = request.accessible_topology.is_some_and(|place| !is_here(&place, &self.topology()));
        let capabilities = &request.volume_capabilities;
        let impossible =
            (!capabilities.is_empty() && kind_of(capabilities).is_err()) || no_parameters(&request.parameters).is_err();
        let available = if elsewhere || impossible { 0 } else { self.available_bytes()? };
        Ok(Response::new(GetCapacityResponse {
            available_capacity: available,
            maximum_volume_size: Some(Int64Value { value: available }),
            minimum_volume_size: Some(Int64Value { value: size::SMALLEST_BYTES }),
        }))
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<ControllerGetCapabilitiesResponse>, Status> {
        let capabilities = CAPABILITIES
            .map(|kind| ControllerServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: kind.into() })) })
            .into();
        Ok(Response::new(ControllerGetCapabilitiesResponse { capabilities }))
    }

    async fn controller_expand_volume(
        &self,
        request: Request<ControllerExpandVolumeRequest>,
    ) -> Result<Response<ControllerExpandVolumeResponse>, Status> {
        let (driver, request) = (self.clone(), request.into_inner());
        self.whole("expand volume", async move { driver.grow(&request).await }).await
    }

    async fn create_snapshot(
        &self,
        request: Request<CreateSnapshotRequest>,
    ) -> Result<Response<CreateSnapshotResponse>, Status> {
        let (driver, request) = (self.clone(), request.into_inner());
        self.whole("create snapshot", async move {
            let snapshot = Some(driver.make_snapshot(&request).await?);
            Ok(CreateSnapshotResponse { snapshot })
        })
        .await
    }

    async fn delete_snapshot(
        &self,
        request: Request<DeleteSnapshotRequest>,
    ) -> Result<Response<DeleteSnapshotResponse>, Status> {
        let (driver, id) = (self.clone(), request.into_inner().snapshot_id);
        self.whole("delete snapshot", async move {
            driver.drop_snapshot(&id).await?;
            Ok(DeleteSnapshotResponse {})
        })
        .await
    }

    async fn list_snapshots(
        &self,
        request: Request<ListSnapshotsRequest>,
    ) -> Result<Response<ListSnapshotsResponse>, Status> {
        self.snapshots_listed(&request.into_inner()).map(Response::new)
    }

    async fn get_snapshot(
        &self,
        request: Request<GetSnapshotRequest>,
    ) -> Result<Response<GetSnapshotResponse>, Status> {
        let snapshot = Some(self.snapshot_told(&request.into_inner().snapshot_id)?);
        Ok(Response::new(GetSnapshotResponse { snapshot }))
    }

    async fn controller_publish_volume(
        &self,
        _: Request<ControllerPublishVolumeRequest>,
    ) -> Result<Response<ControllerPublishVolumeResponse>, Status> {
        Err(Status::unimplemented("volumes are where their node is"))
    }

    async fn controller_unpublish_volume(
        &self,
        _: Request<ControllerUnpublishVolumeRequest>,
    ) -> Result<Response<ControllerUnpublishVolumeResponse>, Status> {
        Err(Status::unimplemented("volumes are where their node is"))
    }

    async fn controller_get_volume(
        &self,
        _: Request<ControllerGetVolumeRequest>,
    ) -> Result<Response<ControllerGetVolumeResponse>, Status> {
        Err(Status::unimplemented("volumes are listed"))
    }

    async fn controller_modify_volume(
        &self,
        _: Request<ControllerModifyVolumeRequest>,
    ) -> Result<Response<ControllerModifyVolumeResponse>, Status> {
        Err(Status::unimplemented("volumes have no attributes to change"))
    }
}

fn origin_of(source: Option<&VolumeContentSource>) -> Result<Option<Origin>, Status> {
    let Some(source) = source else { return Ok(None) };
    match &source.r#type {
        Some(ContentType::Volume(volume)) if !volume.volume_id.is_empty() => {
            Ok(Some(Origin::Volume(volume.volume_id.clone())))
        }
        Some(ContentType::Snapshot(snapshot)) if !snapshot.snapshot_id.is_empty() => {
            Ok(Some(Origin::Snapshot(snapshot.snapshot_id.clone())))
        }
        _ => Err(Status::invalid_argument("volume_content_source names nothing")),
    }
}

impl Driver {
    async fn make_volume(&self, request: &CreateVolumeRequest) -> Result<node_api::csi::v1::Volume, Status> {
        let name = required("name", &request.name)?;
        let kind = kind_of(&request.volume_capabilities)?;
        no_parameters(&request.parameters)?;
        no_parameters(&request.mutable_parameters)?;
        let origin = origin_of(request.volume_content_source.as_ref())?;
        let range = request.capacity_range.as_ref();
        let id = volume_id(name);
        let _turn = self.turn(&id)?;
        let former = self.contents().volumes.get(&id).cloned();
        if let Some(former) = former {
            if former.kind != kind || former.origin != origin || !size::is_within(range, former.capacity_bytes)? {
                return Err(Status::already_exists(format!("volume {name} exists, and is another than asked for")));
            }
            return Ok(self.told(&former));
        }
        if !is_accessible(request.accessibility_requirements.as_ref(), &self.topology()) {
            return Err(Status::resource_exhausted("no volume of this node is reachable from where it is asked for"));
        }
        let floor = origin.as_ref().map(|origin| self.size_of(origin, kind)).transpose()?;
        let capacity_bytes = size::choose(range, floor)?;
        let (staged, published) = (BTreeSet::new(), BTreeSet::new());
        let volume =
            Volume { id, name: name.to_owned(), kind, capacity_bytes, origin, ephemeral: false, staged, published };
        self.build_volume(&volume).await?;
        Ok(self.told(&volume))
    }

    /// Brings a volume to the disk, whose turn the caller has.
    pub(crate) async fn build_volume(&self, volume: &Volume) -> Result<(), Status> {
        let promise = self.promise(&volume.id, volume.capacity_bytes)?;
        let Some(_promise) = promise else {
            let bytes = volume.capacity_bytes;
            return Err(Status::resource_exhausted(format!("there is no room for {bytes} bytes on this node")));
        };
        // Nobody takes away what is being copied.
        let _origin = match &volume.origin {
            Some(Origin::Volume(id) | Origin::Snapshot(id)) => Some(self.turn(id)?),
            None => None,
        };
        let origin = volume.origin.as_ref().map(|origin| self.data_of(origin)).transpose()?;
        let data = self.store().begin(&volume.id).map_err(|error| internal("making the volume", &error))?;
        self.fill(&data, volume.kind, volume.capacity_bytes, origin.as_deref()).await?;
        self.store().finish(volume).map_err(|error| internal("making the volume", &error))?;
        self.contents().volumes.insert(volume.id.clone(), volume.clone());
        Ok(())
    }

    /// Removes a volume, whose turn the caller has; fine if there is none.
    pub(crate) async fn drop_volume(&self, id: &str) -> Result<(), Status> {
        let Some(volume) = self.contents().volumes.get(id).cloned() else { return Ok(()) };
        if self.is_in_use(&volume).await? {
            return Err(Status::failed_precondition(format!("volume {id} is in use on its node")));
        }
        let removed = self.take_away(&volume)?;
        self.contents().volumes.remove(id);
        self.clear(removed).await;
        Ok(())
    }

    async fn grow(&self, request: &ControllerExpandVolumeRequest) -> Result<ControllerExpandVolumeResponse, Status> {
        let range = request.capacity_range.as_ref();
        let range = range.ok_or_else(|| Status::invalid_argument("capacity_range is required"))?;
        let id = &request.volume_id;
        self.volume(id)?;
        let _turn = self.turn(id)?;
        let mut volume = self.volume(id)?;
        if request.volume_capability.is_some() && read(request.volume_capability.as_ref())?.kind != volume.kind {
            return Err(Status::invalid_argument("the volume is of another kind"));
        }
        let capacity_bytes = size::choose(Some(range), Some(volume.capacity_bytes))?;
        if capacity_bytes > volume.capacity_bytes {
            let more = capacity_bytes - volume.capacity_bytes;
            let Some(_promise) = self.promise(id, more)? else {
                return Err(Status::out_of_range(format!("there is no room for {more} more bytes on this node")));
            };
            if volume.kind == Kind::Block {
                let grown = set_image_size(&self.store().data(&volume), capacity_bytes);
                grown.map_err(|error| internal("growing the image", &error))?;
            }
            volume.capacity_bytes = capacity_bytes;
            self.save(volume.clone())?;
        }
        // A device shows its new size when it is told to look.
        Ok(ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required: volume.kind == Kind::Block })
    }

    /// The size of what a new volume of this kind starts with.
    fn size_of(&self, origin: &Origin, kind: Kind) -> Result<i64, Status> {
        let (found, size) = match origin {
            Origin::Volume(id) => self.volume(id).map(|volume| (volume.kind, volume.capacity_bytes))?,
            Origin::Snapshot(id) => self.snapshot(id).map(|snapshot| (snapshot.kind, snapshot.size_bytes))?,
        };
        if found != kind {
            return Err(Status::invalid_argument("what the volume would start with is of another kind"));
        }
        Ok(size)
    }

    fn data_of(&self, origin: &Origin) -> Result<PathBuf, Status> {
        Ok(match origin {
            Origin::Volume(id) => self.store().data(&self.volume(id)?),
            Origin::Snapshot(id) => self.store().data(&self.snapshot(id)?),
        })
    }

    async fn is_in_use(&self, volume: &Volume) -> Result<bool, Status> {
        for path in volume.staged.iter().chain(&volume.published) {
            if self.is_mounted(path)? {
                return Ok(true);
            }
        }
        if volume.kind == Kind::Directory {
            return Ok(false);
        }
        let device = loops::find(&*self.machine().exec, &self.store().data(volume)).await;
        device.map(|device| device.is_some()).map_err(|error| internal("looking for the device", &error))
    }

    /// A volume as callers see it.
    fn told(&self, volume: &Volume) -> node_api::csi::v1::Volume {
        let content_source = volume.origin.clone().map(|origin| VolumeContentSource {
            r#type: Some(match origin {
                Origin::Volume(volume_id) => ContentType::Volume(content::VolumeSource { volume_id }),
                Origin::Snapshot(snapshot_id) => ContentType::Snapshot(content::SnapshotSource { snapshot_id }),
            }),
        });
        node_api::csi::v1::Volume {
            capacity_bytes: volume.capacity_bytes,
            volume_id: volume.id.clone(),
            volume_context: [].into(),
            content_source,
            accessible_topology: vec![Topology { segments: self.topology() }],
        }
    }
}
