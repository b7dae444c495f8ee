//! A driver's identity and controller services over its socket.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grpc::{UnixSocket, code_name};
use tokio::time::Instant;
use tonic::Code;
use tonic::transport::Channel;

use super::CsiObserver;
use super::v1::controller_client::ControllerClient;
use super::v1::controller_service_capability::Type;
use super::v1::controller_service_capability::rpc::Type as Capability;
use super::v1::identity_client::IdentityClient;
use super::v1::*;
use crate::rpc::{RpcError, within};

/// The controller of a driver behind a socket. Clones share the connection.
#[derive(Clone)]
pub struct CsiController {
    driver: Arc<str>,
    identity: IdentityClient<Channel>,
    controller: ControllerClient<Channel>,
    limit: Duration,
    observer: Option<Arc<dyn CsiObserver>>,
}

/// One method for each call: its name here and on the wire, by which client, from what to what.
macro_rules! calls {
    ($($(#[doc = $doc:literal])+ $method:ident = $client:ident.$call:ident($request:ident) -> $response:ident, $path:literal;)*) => {
        impl CsiController {
            $($(#[doc = $doc])+
            ///
            /// # Errors
            /// What the driver answered, or that it was too late.
            pub async fn $method(&self, request: $request) -> Result<$response, RpcError> {
                let began = Instant::now();
                let mut client = self.$client.clone();
                let answer = within(self.limit, client.$call(request)).await;
                self.seen($path, answer.as_ref().err().map_or(Code::Ok, |error| error.code), began.elapsed());
                answer
            })*
        }
    };
}

calls! {
    /// Who the driver is.
    info = identity.get_plugin_info(GetPluginInfoRequest) -> GetPluginInfoResponse, "/csi.v1.Identity/GetPluginInfo";
    /// Whether the driver is ready.
    probe = identity.probe(ProbeRequest) -> ProbeResponse, "/csi.v1.Identity/Probe";
    /// What kind of driver it is.
    plugin_capabilities = identity.get_plugin_capabilities(GetPluginCapabilitiesRequest) -> GetPluginCapabilitiesResponse,
        "/csi.v1.Identity/GetPluginCapabilities";
    /// What its controller says it can do.
    told_capabilities = controller.controller_get_capabilities(ControllerGetCapabilitiesRequest)
        -> ControllerGetCapabilitiesResponse, "/csi.v1.Controller/ControllerGetCapabilities";
    /// Makes a volume, or finds the one of that name.
    create_volume = controller.create_volume(CreateVolumeRequest) -> CreateVolumeResponse, "/csi.v1.Controller/CreateVolume";
    /// Removes a volume.
    delete_volume = controller.delete_volume(DeleteVolumeRequest) -> DeleteVolumeResponse, "/csi.v1.Controller/DeleteVolume";
    /// Attaches a volume to a node.
    publish_volume = controller.controller_publish_volume(ControllerPublishVolumeRequest) -> ControllerPublishVolumeResponse,
        "/csi.v1.Controller/ControllerPublishVolume";
    /// Detaches a volume from a node.
    unpublish_volume = controller.controller_unpublish_volume(ControllerUnpublishVolumeRequest)
        -> ControllerUnpublishVolumeResponse, "/csi.v1.Controller/ControllerUnpublishVolume";
    /// Grows a volume.
    expand_volume = controller.controller_expand_volume(ControllerExpandVolumeRequest) -> ControllerExpandVolumeResponse,
        "/csi.v1.Controller/ControllerExpandVolume";
    /// Changes a volume's attributes.
    modify_volume = controller.controller_modify_volume(ControllerModifyVolumeRequest) -> ControllerModifyVolumeResponse,
        "/csi.v1.Controller/ControllerModifyVolume";
    /// How much room there is.
    capacity = controller.get_capacity(GetCapacityRequest) -> GetCapacityResponse, "/csi.v1.Controller/GetCapacity";
    /// Takes a snapshot, or finds the one of that name.
    create_snapshot = controller.create_snapshot(CreateSnapshotRequest) -> CreateSnapshotResponse,
        "/csi.v1.Controller/CreateSnapshot";
    /// Removes a snapshot.
    delete_snapshot = controller.delete_snapshot(DeleteSnapshotRequest) -> DeleteSnapshotResponse,
        "/csi.v1.Controller/DeleteSnapshot";
    /// Finds snapshots.
    list_snapshots = controller.list_snapshots(ListSnapshotsRequest) -> ListSnapshotsResponse,
        "/csi.v1.Controller/ListSnapshots";
}

impl CsiController {
    /// A client that dials at its first call and again whenever the connection is lost; each call may take `limit`. Must be
    /// called within a runtime.
    #[must_use]
    pub fn new(socket: &Path, limit: Duration, observer: Option<Arc<dyn CsiObserver>>) -> Self {
        let channel = UnixSocket::at(socket).channel();
        Self {
            driver: "".into(),
            identity: IdentityClient::new(channel.clone()),
            controller: ControllerClient::new(channel),
            limit,
            observer,
        }
    }

    /// The same, with the driver's name for whoever observes.
    #[must_use]
    pub fn named(self, driver: &str) -> Self {
        Self { driver: driver.into(), ..self }
    }

    /// What its controller can do, as far as this version of the specification knows it.
    ///
    /// # Errors
    /// As all calls.
    pub async fn capabilities(&self) -> Result<BTreeSet<Capability>, RpcError> {
        let answer = self.told_capabilities(ControllerGetCapabilitiesRequest {}).await?;
        let known = answer.capabilities.into_iter().filter_map(|capability| match capability.r#type? {
            Type::Rpc(rpc) => Some(rpc.r#type()),
        });
        Ok(known.collect())
    }

    fn seen(&self, method: &'static str, code: Code, took: Duration) {
        if let Some(observer) = &self.observer {
            observer.called(&self.driver, method, code_name(code), took);
        }
    }
}
