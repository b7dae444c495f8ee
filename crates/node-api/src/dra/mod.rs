//! Drivers of dynamic resources: how a kubelet has the devices of claims made ready, and hears which are well.
//! See <https://kep.k8s.io/4381> and <https://kep.k8s.io/4680>. A driver for tests is in [`fake`].

pub mod fake;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grpc::{UnixSocket, code_name};
use prost::Message;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::time::Instant;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::rpc::{RpcError, within};
use health::dra_resource_health_client::DraResourceHealthClient;
use health::{NodeWatchResourcesRequest, NodeWatchResourcesResponse};
use v1::{
    Claim, NodePrepareResourcesRequest, NodePrepareResourcesResponse, NodeUnprepareResourcesRequest,
    NodeUnprepareResourcesResponse,
};

/// Messages and stubs generated from `proto/dra`; names and numbers are the wire contract.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod v1 {
    tonic::include_proto!("k8s.io.kubelet.pkg.apis.dra.v1");
}

/// Messages and stubs generated from `proto/drahealth`; names and numbers are the wire contract.
#[expect(clippy::too_many_lines, reason = "the service dispatch that tonic generates")]
pub mod health {
    tonic::include_proto!("v1alpha1");
}

/// How long each call may take, whatever the driver does.
const CALL_LIMIT: Duration = Duration::from_secs(45);
/// The largest answer that is read: claims have up to 32 devices, and pods few claims.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Sees every finished call, for `dra_grpc_operations_duration_seconds`.
pub trait DraObserver: Send + Sync + 'static {
    /// A call of a driver ended; the method is gRPC's full name, the code is spelt as Go spells it.
    fn called(&self, driver: &str, method: &'static str, code: &'static str, elapsed: Duration);
}

/// A version of the service. They share their messages, so one client speaks both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraVersion {
    /// Since 1.34.
    V1,
    /// The one before.
    V1beta1,
}

impl DraVersion {
    /// All of them, the newest first.
    pub const ALL: [Self; 2] = [Self::V1, Self::V1beta1];

    /// The name by which a driver states it when it registers.
    #[must_use]
    pub fn service(self) -> &'static str {
        match self {
            Self::V1 => "v1.DRAPlugin",
            Self::V1beta1 => "v1beta1.DRAPlugin",
        }
    }

    fn prepare(self) -> &'static str {
        match self {
            Self::V1 => "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources",
            Self::V1beta1 => "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources",
        }
    }

    fn unprepare(self) -> &'static str {
        match self {
            Self::V1 => "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources",
            Self::V1beta1 => "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources",
        }
    }
}

/// A driver behind a socket. Clones share the connection.
#[derive(Clone)]
pub struct DraClient {
    driver: Arc<str>,
    version: DraVersion,
    socket: UnixSocket,
    channel: Channel,
    observer: Option<Arc<dyn DraObserver>>,
}

impl DraClient {
    /// A client that dials at its first call and again whenever the connection is lost. Must be called within a runtime.
    #[must_use]
    pub fn new(driver: &str, version: DraVersion, socket: &Path, observer: Option<Arc<dyn DraObserver>>) -> Self {
        let socket = UnixSocket::at(socket);
        Self { driver: driver.into(), version, channel: socket.channel(), socket, observer }
    }

    /// Gets the devices of claims ready.
    ///
    /// # Errors
    /// What the driver answered, or that it was too late. What becomes of a single claim is in the answer.
    pub async fn prepare(&self, claims: Vec<Claim>) -> Result<NodePrepareResourcesResponse, RpcError> {
        self.call(self.version.prepare(), NodePrepareResourcesRequest { claims }).await
    }

    /// Undoes that.
    ///
    /// # Errors
    /// As of [`Self::prepare`].
    pub async fn unprepare(&self, claims: Vec<Claim>) -> Result<NodeUnprepareResourcesResponse, RpcError> {
        self.call(self.version.unprepare(), NodeUnprepareResourcesRequest { claims }).await
    }

    async fn call<Q, A>(&self, method: &'static str, request: Q) -> Result<A, RpcError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let began = Instant::now();
        let answer = within(CALL_LIMIT, async {
            let mut service = Grpc::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
            let ready = service.ready().await;
            ready.map_err(|error| Status::unavailable(format!("Service was not ready: {error}")))?;
            let codec = ProstCodec::<Q, A>::default();
            service.unary(Request::new(request), PathAndQuery::from_static(method), codec).await
        })
        .await;
        if let Some(observer) = &self.observer {
            let code = answer.as_ref().err().map_or(Code::Ok, |error| error.code);
            observer.called(&self.driver, method, code_name(code), began.elapsed());
        }
        answer
    }

    /// The health of the driver's devices, as long as it tells. One that never does answers `Unimplemented`.
    ///
    /// # Errors
    /// What the driver answered.
    pub async fn watch_health(&self) -> Result<Streaming<NodeWatchResourcesResponse>, RpcError> {
        let mut service =
            DraResourceHealthClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Ok(service.node_watch_resources(NodeWatchResourcesRequest {}).await?.into_inner())
    }

    /// A connection over which nothing is said: it is there as long as the driver is.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn presence(&self) -> io::Result<Presence> {
        self.socket.connect().await.map(Presence)
    }
}

/// Sees a driver go.
pub struct Presence(UnixStream);

impl Presence {
    /// Returns when the driver has closed the connection, or is gone.
    pub async fn ended(mut self) {
        // It may greet; what it says does not matter.
        let mut greeting = [0; 256];
        while self.0.read(&mut greeting).await.is_ok_and(|bytes| bytes > 0) {}
    }
}
