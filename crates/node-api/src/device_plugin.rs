//! Device plugins, `v1beta1`: who offers a node's devices registers with the kubelet, and is then asked for them.
//! See <https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/>.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use base::CancellationToken;
use grpc::UnixSocket;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

use crate::rpc::{RpcError, within};
use v1beta1::device_plugin_client::DevicePluginClient as Stub;
use v1beta1::registration_server::{Registration, RegistrationServer};
use v1beta1::{
    AllocateRequest, ContainerAllocateRequest, ContainerAllocateResponse, ContainerPreferredAllocationRequest,
    DevicePluginOptions, Empty, ListAndWatchResponse, PreStartContainerRequest, PreferredAllocationRequest,
    RegisterRequest,
};

/// Messages and stubs generated from `proto/deviceplugin`; names and numbers are the wire contract.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod v1beta1 {
    tonic::include_proto!("v1beta1");
}

/// The version of the interface.
pub const VERSION: &str = "v1beta1";
/// A device of this health may be given away.
pub const HEALTHY: &str = "Healthy";
/// The largest list of devices that is read.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
const OPTIONS_LIMIT: Duration = Duration::from_secs(10);
const PREFERENCE_LIMIT: Duration = Duration::from_secs(10);
/// Upstream sets none; a plugin that hangs must not hold up all pods for ever.
const ALLOCATE_LIMIT: Duration = Duration::from_secs(120);
const PRE_START_LIMIT: Duration = Duration::from_secs(30);

/// A plugin behind its socket. Clones share the connection.
#[derive(Clone)]
pub struct DevicePluginClient(Stub<Channel>);

impl DevicePluginClient {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn dial(socket: &Path, limit: Duration) -> Result<Self, std::io::Error> {
        let address = UnixSocket::at(socket);
        match tokio::time::timeout(limit, address.connect()).await {
            Ok(connected) => drop(connected?),
            Err(_) => return Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "context deadline exceeded")),
        }
        Ok(Self(Stub::new(address.channel()).max_decoding_message_size(MAX_MESSAGE_BYTES)))
    }

    /// What the plugin wants to be asked.
    ///
    /// # Errors
    /// What the plugin answered, or that it was too late.
    pub async fn options(&self) -> Result<DevicePluginOptions, RpcError> {
        within(OPTIONS_LIMIT, self.0.clone().get_device_plugin_options(Empty {})).await
    }

    /// All devices, at every change.
    ///
    /// # Errors
    /// What the plugin answered.
    pub async fn list_and_watch(&self) -> Result<Streaming<ListAndWatchResponse>, RpcError> {
        Ok(self.0.clone().list_and_watch(Empty {}).await?.into_inner())
    }

    /// Which of the devices the plugin would rather give away.
    ///
    /// # Errors
    /// What the plugin answered, or that it was too late.
    pub async fn preferred(&self, wish: ContainerPreferredAllocationRequest) -> Result<Vec<String>, RpcError> {
        let request = PreferredAllocationRequest { container_requests: vec![wish] };
        let answer = within(PREFERENCE_LIMIT, self.0.clone().get_preferred_allocation(request)).await?;
        Ok(answer.container_responses.into_iter().next().map(|one| one.device_ids).unwrap_or_default())
    }

    /// What a container needs to use the devices.
    ///
    /// # Errors
    /// What the plugin answered, or that it was too late.
    pub async fn allocate(&self, devices_ids: Vec<String>) -> Result<Option<ContainerAllocateResponse>, RpcError> {
        let request = AllocateRequest { container_requests: vec![ContainerAllocateRequest { devices_ids }] };
        let answer = within(ALLOCATE_LIMIT, self.0.clone().allocate(request)).await?;
        Ok(answer.container_responses.into_iter().next())
    }

    /// A container that has the devices is about to start.
    ///
    /// # Errors
    /// What the plugin answered, or that it was too late.
    pub async fn pre_start(&self, devices_ids: Vec<String>) -> Result<(), RpcError> {
        let request = PreStartContainerRequest { devices_ids };
        within(PRE_START_LIMIT, self.0.clone().pre_start_container(request)).await.map(drop)
    }
}

/// Who takes the registrations of plugins.
#[async_trait]
pub trait Registrar: Send + Sync + 'static {
    /// A plugin registers a resource.
    ///
    /// # Errors
    /// Why it is refused.
    async fn register(&self, request: RegisterRequest) -> Result<(), String>;
}

struct Adapter<R>(R);

#[tonic::async_trait]
impl<R: Registrar> Registration for Adapter<R> {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        self.0.register(request.into_inner()).await.map(|()| Response::new(Empty {})).map_err(Status::unknown)
    }
}

/// Takes registrations at a socket until `token` is cancelled.
///
/// # Errors
/// The server fails.
pub async fn serve(
    listener: UnixListener,
    registrar: impl Registrar,
    token: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    tonic::transport::Server::builder()
        .add_service(RegistrationServer::new(Adapter(registrar)))
        .serve_with_incoming_shutdown(UnixListenerStream::new(listener), token.cancelled_owned())
        .await
}
