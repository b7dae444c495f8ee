//! A driver's identity and controller services, over its socket or in the same process.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::TaskGroup;
use grpc::{UnixSocket, code_name};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

use super::CsiObserver;
use super::v1::controller_client::ControllerClient;
use super::v1::controller_server::Controller;
use super::v1::controller_service_capability::Type;
use super::v1::controller_service_capability::rpc::Type as Capability;
use super::v1::identity_client::IdentityClient;
use super::v1::identity_server::Identity;
use super::v1::*;
use crate::rpc::{RpcError, within};

/// The controller of a driver. Clones share the way to it.
#[derive(Clone)]
pub struct CsiController {
    driver: Arc<str>,
    way: Way,
    limit: Duration,
    observer: Option<Arc<dyn CsiObserver>>,
}

/// How a driver is reached.
#[derive(Clone)]
enum Way {
    Socket(Box<Socket>),
    InProcess(Served),
}

#[derive(Clone)]
struct Socket {
    identity: IdentityClient<Channel>,
    controller: ControllerClient<Channel>,
}

#[derive(Clone)]
struct Served {
    identity: Arc<dyn Identity>,
    controller: Arc<dyn Controller>,
    tasks: TaskGroup,
}

impl Served {
    /// Serves a call to its end, as drivers do, even where its caller has hung up.
    async fn call<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let (tell, told) = oneshot::channel();
        self.tasks.spawn_cancellable("csi-call", async move { drop(tell.send(call.await)) });
        told.await.unwrap_or_else(|_| Err(Status::unavailable("the driver has ended")))
    }
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
                let answer = within(self.limit, async {
                    match &self.way {
                        Way::Socket(socket) => socket.$client.clone().$call(request).await,
                        Way::InProcess(served) => {
                            let driver = Arc::clone(&served.$client);
                            served.call(async move { driver.$call(Request::new(request)).await }).await
                        }
                    }
                })
                .await;
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
        let way = Socket { identity: IdentityClient::new(channel.clone()), controller: ControllerClient::new(channel) };
        Self { driver: "".into(), way: Way::Socket(Box::new(way)), limit, observer }
    }

    /// A client of a driver in this process, whose calls run in `tasks`; each may take `limit`.
    #[must_use]
    pub fn in_process<D: Identity + Controller>(driver: D, tasks: &TaskGroup, limit: Duration) -> Self {
        let driver = Arc::new(driver);
        let (identity, controller) = (Arc::clone(&driver) as Arc<dyn Identity>, driver as Arc<dyn Controller>);
        let way = Way::InProcess(Served { identity, controller, tasks: tasks.clone() });
        Self { driver: "".into(), way, limit, observer: None }
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

#[cfg(test)]
mod tests {
    use super::super::MemoryDriver;
    use super::super::fake::Fault;
    use super::super::v1::volume_capability::AccessType;
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    /// What a driver answers to who makes a volume, makes it again, and asks for what cannot be.
    async fn answers(calls: &CsiController, driver: &MemoryDriver) -> Vec<String> {
        let mount = AccessType::Mount(volume_capability::MountVolume::default());
        let capability = VolumeCapability { access_mode: None, access_type: Some(mount) };
        let good = CreateVolumeRequest {
            name: "one".into(),
            volume_capabilities: vec![capability],
            ..CreateVolumeRequest::default()
        };
        let mut told = vec![format!("{:?}", calls.capabilities().await)];
        for request in [good.clone(), good.clone(), CreateVolumeRequest::default()] {
            told.push(format!("{:?}", calls.create_volume(request).await));
        }
        driver.fail_next("CreateVolume", Fault::Hang);
        told.push(format!("{:?}", calls.create_volume(good).await));
        told.push(format!("{:?}", driver.volumes()));
        told
    }

    #[tokio::test]
    async fn a_driver_answers_the_same_over_a_socket_and_in_process() {
        let directory = tempfile::tempdir().unwrap();
        let (socket, tasks) = (directory.path().join("csi.sock"), TaskGroup::new("driver"));
        let (far, near) = (MemoryDriver::new("memory.test"), MemoryDriver::new("memory.test"));
        let served = far.clone().serve(&socket, tasks.token()).unwrap();
        tasks.spawn("driver", async move { served.await.unwrap() });
        let over_socket = answers(&CsiController::new(&socket, LIMIT, None), &far).await;
        let in_process = answers(&CsiController::in_process(near.clone(), &tasks, LIMIT), &near).await;
        assert_eq!(over_socket, in_process);
        assert!(in_process[4].contains("context deadline exceeded"), "{in_process:?}");
        tasks.cancel();
        let ended = CsiController::in_process(near, &tasks, LIMIT).probe(ProbeRequest {}).await;
        assert_eq!(ended.unwrap_err().code, Code::Unavailable);
    }
}
