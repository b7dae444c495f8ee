//! A driver of dynamic resources for tests, at a real socket: it keeps what it is asked, and refuses or hangs when told to.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::TaskGroup;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use parking_lot::Mutex;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio_stream::wrappers::{UnixListenerStream, WatchStream};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::DraVersion;
use super::health::dra_resource_health_server::{DraResourceHealth, DraResourceHealthServer};
use super::health::{DeviceHealth, NodeWatchResourcesRequest, NodeWatchResourcesResponse};
use super::v1::dra_plugin_server::{DraPlugin, DraPluginServer};
use super::v1::{
    Claim, Device, NodePrepareResourceResponse, NodePrepareResourcesRequest, NodePrepareResourcesResponse,
    NodeUnprepareResourceResponse, NodeUnprepareResourcesRequest, NodeUnprepareResourcesResponse,
};

/// The pool of all devices of the driver.
pub const POOL: &str = "pool";

#[derive(Default)]
struct State {
    asked: Vec<String>,
    /// What is said about claims, by name, instead of doing something.
    refusals: BTreeMap<String, String>,
    hangs: bool,
    /// Claims are left out of the answers.
    skips: bool,
    /// Claims that are ready, by uid.
    ready: BTreeMap<String, String>,
}

/// The driver. Clones share their state, also over several sockets.
#[derive(Clone)]
pub struct FakeDriver {
    state: Arc<Mutex<State>>,
    health: watch::Sender<Vec<DeviceHealth>>,
}

impl Default for FakeDriver {
    fn default() -> Self {
        Self { state: Arc::default(), health: watch::channel(Vec::new()).0 }
    }
}

impl FakeDriver {
    /// Every call so far, such as `prepare ns/claim`, a line for each claim.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.state.lock().asked.clone()
    }

    /// The claims that are ready, as namespace and name.
    #[must_use]
    pub fn ready(&self) -> Vec<String> {
        self.state.lock().ready.values().cloned().collect()
    }

    /// From now on, says this about the claims of a name, or does what it is asked.
    pub fn refuse(&self, claim: &str, why: Option<&str>) {
        let mut state = self.state.lock();
        match why {
            Some(why) => drop(state.refusals.insert(claim.to_owned(), why.to_owned())),
            None => drop(state.refusals.remove(claim)),
        }
    }

    /// Whether calls are never answered.
    pub fn hang(&self, hangs: bool) {
        self.state.lock().hangs = hangs;
    }

    /// Whether answers say nothing about any claim.
    pub fn skip(&self, skips: bool) {
        self.state.lock().skips = skips;
    }

    /// Tells how devices are.
    pub fn tell_health(&self, devices: Vec<DeviceHealth>) {
        self.health.send_replace(devices);
    }

    /// The name in the Container Device Interface of the one device that a claim gets.
    #[must_use]
    pub fn cdi_id(claim: &str) -> String {
        format!("example.com/gpu={claim}")
    }

    /// Listens at a socket until the group ends.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn serve(&self, socket: &Path, version: DraVersion, tasks: &TaskGroup) -> io::Result<()> {
        let sockets = UnixListenerStream::new(UnixListener::bind(socket)?);
        let service = DraPluginServer::new(self.clone());
        let server = Server::builder().add_service(DraResourceHealthServer::new(self.clone()));
        let server = match version {
            DraVersion::V1 => server.add_service(service),
            DraVersion::V1beta1 => server.add_service(Beta(service)),
        };
        // Its connections end with it, as those of a process do.
        let end = tasks.token().cancelled_owned();
        tasks.spawn("driver", async move { drop(server.serve_with_incoming_shutdown(sockets, end).await) });
        Ok(())
    }

    /// What becomes of each claim that the driver is asked about: nothing, or why not.
    async fn answer(&self, call: &str, claims: Vec<Claim>) -> Vec<(Claim, String)> {
        let hangs = {
            let mut state = self.state.lock();
            state.asked.extend(claims.iter().map(|claim| format!("{call} {}/{}", claim.namespace, claim.name)));
            state.hangs
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        let state = self.state.lock();
        let claims = if state.skips { Vec::new() } else { claims };
        let why = |claim: &Claim| state.refusals.get(&claim.name).cloned().unwrap_or_default();
        claims.into_iter().map(|claim| (claim.clone(), why(&claim))).collect()
    }
}

#[tonic::async_trait]
impl DraPlugin for FakeDriver {
    async fn node_prepare_resources(
        &self,
        request: Request<NodePrepareResourcesRequest>,
    ) -> Result<Response<NodePrepareResourcesResponse>, Status> {
        let mut claims = std::collections::HashMap::new();
        for (claim, error) in self.answer("prepare", request.into_inner().claims).await {
            let device = Device {
                request_names: vec!["gpu".to_owned()],
                pool_name: POOL.to_owned(),
                device_name: format!("gpu-{}", claim.name),
                cdi_device_ids: vec![Self::cdi_id(&claim.name)],
                share_id: None,
            };
            let devices = if error.is_empty() { vec![device] } else { Vec::new() };
            if error.is_empty() {
                self.state.lock().ready.insert(claim.uid.clone(), format!("{}/{}", claim.namespace, claim.name));
            }
            claims.insert(claim.uid, NodePrepareResourceResponse { devices, error });
        }
        Ok(Response::new(NodePrepareResourcesResponse { claims }))
    }

    async fn node_unprepare_resources(
        &self,
        request: Request<NodeUnprepareResourcesRequest>,
    ) -> Result<Response<NodeUnprepareResourcesResponse>, Status> {
        let mut claims = std::collections::HashMap::new();
        for (claim, error) in self.answer("unprepare", request.into_inner().claims).await {
            if error.is_empty() {
                self.state.lock().ready.remove(&claim.uid);
            }
            claims.insert(claim.uid, NodeUnprepareResourceResponse { error });
        }
        Ok(Response::new(NodeUnprepareResourcesResponse { claims }))
    }
}

#[tonic::async_trait]
impl DraResourceHealth for FakeDriver {
    type NodeWatchResourcesStream = BoxStream<'static, Result<NodeWatchResourcesResponse, Status>>;

    async fn node_watch_resources(
        &self,
        _: Request<NodeWatchResourcesRequest>,
    ) -> Result<Response<Self::NodeWatchResourcesStream>, Status> {
        let lists = WatchStream::new(self.health.subscribe());
        Ok(Response::new(lists.map(|devices| Ok(NodeWatchResourcesResponse { devices })).boxed()))
    }
}

/// The service under the name that it had in the version before.
#[derive(Clone)]
struct Beta<S>(S);

impl<S> NamedService for Beta<S> {
    const NAME: &'static str = "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin";
}

impl<S> Service<http::Request<Body>> for Beta<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> S::Future {
        if let Ok(uri) = request.uri().to_string().replace(".v1beta1.", ".v1.").parse() {
            *request.uri_mut() = uri;
        }
        self.0.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::super::DraClient;
    use super::*;

    #[tokio::test]
    async fn both_versions_say_the_same() {
        let (dir, tasks) = (tempfile::tempdir().unwrap(), TaskGroup::new("test"));
        for version in DraVersion::ALL {
            let (driver, socket) = (FakeDriver::default(), dir.path().join(version.service()));
            driver.serve(&socket, version, &tasks).unwrap();
            let claim = Claim { namespace: "ns".into(), uid: "u".into(), name: "c".into() };
            let client = DraClient::new("gpu.example.com", version, &socket, None);
            let ready = client.prepare(vec![claim.clone()]).await.unwrap();
            assert_eq!(ready.claims["u"].devices[0].cdi_device_ids, [FakeDriver::cdi_id("c")]);
            assert_eq!(driver.ready(), ["ns/c"]);
            client.unprepare(vec![claim.clone()]).await.unwrap();
            assert_eq!(
                (driver.ready().len(), driver.asked()),
                (0, vec!["prepare ns/c".into(), "unprepare ns/c".into()])
            );
            let other = DraVersion::ALL.into_iter().find(|other| *other != version).unwrap();
            let stranger = DraClient::new("gpu.example.com", other, &socket, None);
            assert_eq!(stranger.prepare(vec![claim]).await.unwrap_err().code, tonic::Code::Unimplemented);
        }
    }
}
