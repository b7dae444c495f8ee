//! A driver's node service over its socket.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grpc::{UnixSocket, code_name};
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use super::v1::node_client::NodeClient;
use super::v1::node_service_capability::Type;
use super::v1::node_service_capability::rpc::Type as Capability;
use super::v1::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetCapabilitiesRequest, NodeGetInfoRequest,
    NodeGetInfoResponse, NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, NodePublishVolumeRequest,
    NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
};
use crate::rpc::{RpcError, within};

/// How long each call may take.
const CALL_LIMIT: Duration = Duration::from_secs(120);

/// Sees every finished call, for `csi_operations_seconds`.
pub trait CsiObserver: Send + Sync + 'static {
    /// A call of a driver ended; the method is gRPC's full name, the code is spelt as Go spells it.
    fn called(&self, driver: &str, method: &'static str, code: &'static str, elapsed: Duration);
}

/// A driver behind a socket. Clones share the connection.
#[derive(Clone)]
pub struct CsiClient {
    driver: Arc<str>,
    node: NodeClient<Channel>,
    observer: Option<Arc<dyn CsiObserver>>,
}

impl CsiClient {
    /// A client that dials at its first call and again whenever the connection is lost. Must be called within a runtime.
    #[must_use]
    pub fn new(driver: &str, socket: &Path, observer: Option<Arc<dyn CsiObserver>>) -> Self {
        Self { driver: driver.into(), node: NodeClient::new(UnixSocket::at(socket).channel()), observer }
    }

    async fn call<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, RpcError> {
        let began = Instant::now();
        let answer = within(CALL_LIMIT, call).await;
        if let Some(observer) = &self.observer {
            let code = answer.as_ref().err().map_or(Code::Ok, |error| error.code);
            observer.called(&self.driver, method, code_name(code), began.elapsed());
        }
        answer
    }

    /// What the driver calls the node, and what it can have there.
    ///
    /// # Errors
    /// As all calls: what the driver answered, or that it was too late.
    pub async fn info(&self) -> Result<NodeGetInfoResponse, RpcError> {
        let mut node = self.node.clone();
        self.call("/csi.v1.Node/NodeGetInfo", node.node_get_info(NodeGetInfoRequest {})).await
    }

    /// What the driver can do beyond publishing.
    ///
    /// # Errors
    /// As all calls.
    pub async fn capabilities(&self) -> Result<BTreeSet<Capability>, RpcError> {
        let mut node = self.node.clone();
        let call = node.node_get_capabilities(NodeGetCapabilitiesRequest {});
        let answer = self.call("/csi.v1.Node/NodeGetCapabilities", call).await?;
        let known = answer.capabilities.into_iter().filter_map(|capability| match capability.r#type? {
            Type::Rpc(rpc) => Some(rpc.r#type()),
        });
        Ok(known.collect())
    }

    /// Makes a volume ready for all pods.
    ///
    /// # Errors
    /// As all calls.
    pub async fn stage(&self, request: NodeStageVolumeRequest) -> Result<(), RpcError> {
        let mut node = self.node.clone();
        self.call("/csi.v1.Node/NodeStageVolume", node.node_stage_volume(request)).await.map(drop)
    }

    /// Undoes that.
    ///
    /// # Errors
    /// As all calls.
    pub async fn unstage(&self, volume_id: &str, staging: &Path) -> Result<(), RpcError> {
        let (volume_id, staging_target_path) = (volume_id.to_owned(), staging.display().to_string());
        let mut node = self.node.clone();
        let call = node.node_unstage_volume(NodeUnstageVolumeRequest { volume_id, staging_target_path });
        self.call("/csi.v1.Node/NodeUnstageVolume", call).await.map(drop)
    }

    /// Brings a volume into place for a pod.
    ///
    /// # Errors
    /// As all calls.
    pub async fn publish(&self, request: NodePublishVolumeRequest) -> Result<(), RpcError> {
        let mut node = self.node.clone();
        self.call("/csi.v1.Node/NodePublishVolume", node.node_publish_volume(request)).await.map(drop)
    }

    /// Undoes that.
    ///
    /// # Errors
    /// As all calls.
    pub async fn unpublish(&self, volume_id: &str, target: &Path) -> Result<(), RpcError> {
        let (volume_id, target_path) = (volume_id.to_owned(), target.display().to_string());
        let mut node = self.node.clone();
        let call = node.node_unpublish_volume(NodeUnpublishVolumeRequest { volume_id, target_path });
        self.call("/csi.v1.Node/NodeUnpublishVolume", call).await.map(drop)
    }

    /// How full a volume is, and how well.
    ///
    /// # Errors
    /// As all calls.
    pub async fn stats(&self, request: NodeGetVolumeStatsRequest) -> Result<NodeGetVolumeStatsResponse, RpcError> {
        let mut node = self.node.clone();
        self.call("/csi.v1.Node/NodeGetVolumeStats", node.node_get_volume_stats(request)).await
    }

    /// Grows what is on a volume.
    ///
    /// # Errors
    /// As all calls.
    pub async fn expand(&self, request: NodeExpandVolumeRequest) -> Result<NodeExpandVolumeResponse, RpcError> {
        let mut node = self.node.clone();
        self.call("/csi.v1.Node/NodeExpandVolume", node.node_expand_volume(request)).await
    }
}
