//! A driver of volumes that are directories, with the faults that a test asks for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use base::CancellationToken;
use parking_lot::Mutex;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Code, Request, Response, Status};

use super::v1::node_server::{Node, NodeServer};
use super::v1::node_service_capability::rpc::Type as Capability;
use super::v1::node_service_capability::{Rpc, Type};
use super::v1::volume_capability::AccessType;
use super::v1::*;

/// What the next call of a method does instead of its work.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It answers with an error and does nothing.
    Refuse(Code, &'static str),
    /// It does its work, and then answers with an error.
    Lie(Code),
    /// It never answers.
    Hang,
}

#[derive(Default)]
struct State {
    info: NodeGetInfoResponse,
    capabilities: BTreeSet<Capability>,
    usage: Vec<VolumeUsage>,
    condition: Option<VolumeCondition>,
    calls: Vec<String>,
    faults: BTreeMap<&'static str, VecDeque<Fault>>,
    staged: BTreeSet<String>,
    published: Vec<NodePublishVolumeRequest>,
    stage: Option<NodeStageVolumeRequest>,
    expand: Option<NodeExpandVolumeRequest>,
}

/// The driver. Clones are the same driver.
#[derive(Clone, Default)]
pub struct FakeDriver(Arc<Mutex<State>>);

impl FakeDriver {
    /// A driver that calls the node this, and can do that.
    #[must_use]
    pub fn new(node_id: &str, capabilities: &[Capability]) -> Self {
        let driver = Self::default();
        {
            let mut state = driver.0.lock();
            state.info.node_id = node_id.to_owned();
            state.capabilities = capabilities.iter().copied().collect();
        }
        driver
    }

    /// What the driver says of the node.
    pub fn set_info(&self, info: NodeGetInfoResponse) {
        self.0.lock().info = info;
    }

    /// How full its volumes are.
    pub fn set_usage(&self, usage: Vec<VolumeUsage>) {
        self.0.lock().usage = usage;
    }

    /// What it can do from now on beside the rest.
    pub fn add_capability(&self, capability: Capability) {
        self.0.lock().capabilities.insert(capability);
    }

    /// How its volumes are; it tells where it has the capability for that.
    pub fn set_condition(&self, condition: VolumeCondition) {
        self.0.lock().condition = Some(condition);
    }

    /// The next call of a method (`publish`, `unpublish`, `stage`, `unstage`, `expand`, `info`) goes wrong.
    pub fn fail_next(&self, method: &'static str, fault: Fault) {
        self.0.lock().faults.entry(method).or_default().push_back(fault);
    }

    /// The calls so far, each with its volume, without those that change nothing.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        self.0.lock().calls.clone()
    }

    /// The last request to publish.
    #[must_use]
    pub fn last_publish(&self) -> Option<NodePublishVolumeRequest> {
        self.0.lock().published.last().cloned()
    }

    /// The last request to stage.
    #[must_use]
    pub fn last_stage(&self) -> Option<NodeStageVolumeRequest> {
        self.0.lock().stage.clone()
    }

    /// The last request to expand.
    #[must_use]
    pub fn last_expand(&self) -> Option<NodeExpandVolumeRequest> {
        self.0.lock().expand.clone()
    }

    /// Volumes that are staged.
    #[must_use]
    pub fn staged(&self) -> BTreeSet<String> {
        self.0.lock().staged.clone()
    }

    /// Listens at a socket, and serves until the token is cancelled.
    ///
    /// # Errors
    /// The socket cannot be made, or the server fails.
    pub fn serve(
        self,
        socket: &Path,
        token: CancellationToken,
    ) -> std::io::Result<impl Future<Output = Result<(), tonic::transport::Error>> + Send + use<>> {
        let incoming = UnixListenerStream::new(UnixListener::bind(socket)?);
        let server = tonic::transport::Server::builder().add_service(NodeServer::new(self));
        Ok(server.serve_with_incoming_shutdown(incoming, token.cancelled_owned()))
    }

    /// Does a call's work, unless a fault was asked for.
    async fn answer<T>(
        &self,
        method: &'static str,
        volume: &str,
        work: impl FnOnce(&mut State) -> std::io::Result<T> + Send,
    ) -> Result<Response<T>, Status> {
        let fault = {
            let mut state = self.0.lock();
            state.calls.push(format!("{method} {volume}").trim_end().to_owned());
            state.faults.get_mut(method).and_then(VecDeque::pop_front)
        };
        match fault {
            Some(Fault::Refuse(code, message)) => return Err(Status::new(code, message)),
            Some(Fault::Hang) => std::future::pending().await,
            _ => {}
        }
        let done = work(&mut self.0.lock()).map_err(|error| Status::internal(error.to_string()))?;
        match fault {
            Some(Fault::Lie(code)) => Err(Status::new(code, "it was done")),
            _ => Ok(Response::new(done)),
        }
    }
}

#[tonic::async_trait]
impl Node for FakeDriver {
    async fn node_stage_volume(
        &self,
        request: Request<NodeStageVolumeRequest>,
    ) -> Result<Response<NodeStageVolumeResponse>, Status> {
        let request = request.into_inner();
        let volume = request.volume_id.clone();
        let work = |state: &mut State| {
            state.staged.insert(request.volume_id.clone());
            state.stage = Some(request);
            Ok(NodeStageVolumeResponse {})
        };
        self.answer("stage", &volume, work).await
    }

    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Result<Response<NodeUnstageVolumeResponse>, Status> {
        let volume = request.into_inner().volume_id;
        let work = |state: &mut State| {
            state.staged.remove(&volume);
            Ok(NodeUnstageVolumeResponse {})
        };
        self.answer("unstage", &volume.clone(), work).await
    }

    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Result<Response<NodePublishVolumeResponse>, Status> {
        let request = request.into_inner();
        let volume = request.volume_id.clone();
        let work = |state: &mut State| {
            // The parent is the kubelet's business. A block device is a file here.
            let capability = request.volume_capability.as_ref().and_then(|capability| capability.access_type.as_ref());
            let made = match capability {
                Some(AccessType::Block(_)) => std::fs::File::create(&request.target_path).map(drop),
                _ => std::fs::create_dir(&request.target_path),
            };
            match made {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
                _ => state.published.push(request),
            }
            Ok(NodePublishVolumeResponse {})
        };
        self.answer("publish", &volume, work).await
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
        let request = request.into_inner();
        let work = |_: &mut State| {
            let target = Path::new(&request.target_path);
            let removed = if target.is_file() { std::fs::remove_file(target) } else { std::fs::remove_dir_all(target) };
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(NodeUnpublishVolumeResponse {}),
            }
        };
        self.answer("unpublish", &request.volume_id, work).await
    }

    async fn node_get_volume_stats(
        &self,
        _: Request<NodeGetVolumeStatsRequest>,
    ) -> Result<Response<NodeGetVolumeStatsResponse>, Status> {
        let state = self.0.lock();
        let (usage, volume_condition) = (state.usage.clone(), state.condition.clone());
        Ok(Response::new(NodeGetVolumeStatsResponse { usage, volume_condition }))
    }

    async fn node_expand_volume(
        &self,
        request: Request<NodeExpandVolumeRequest>,
    ) -> Result<Response<NodeExpandVolumeResponse>, Status> {
        let request = request.into_inner();
        let volume = request.volume_id.clone();
        let work = |state: &mut State| {
            state.expand = Some(request);
            Ok(NodeExpandVolumeResponse { capacity_bytes: 0 })
        };
        self.answer("expand", &volume, work).await
    }

    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        let capability =
            |kind: &Capability| NodeServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type: (*kind).into() })) };
        let capabilities = self.0.lock().capabilities.iter().map(capability).collect();
        Ok(Response::new(NodeGetCapabilitiesResponse { capabilities }))
    }

    async fn node_get_info(&self, _: Request<NodeGetInfoRequest>) -> Result<Response<NodeGetInfoResponse>, Status> {
        self.answer("info", "", |state| Ok(state.info.clone())).await
    }
}
