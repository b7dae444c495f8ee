//! A driver whose volumes are entries of a table, attached to nodes one at a time: nothing of it is real but its answers,
//! which are written after the specification alone. With the faults that a test asks for.

mod controller;
mod node;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use base::CancellationToken;
use parking_lot::Mutex;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

use super::fake::Fault;
use super::v1::controller_server::ControllerServer;
use super::v1::identity_server::{Identity, IdentityServer};
use super::v1::node_server::NodeServer;
use super::v1::plugin_capability::Type;
use super::v1::plugin_capability::service::Type as Service;
use super::v1::*;

/// The driver. Clones are the same.
#[derive(Clone, Default)]
pub struct MemoryDriver(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    name: String,
    /// Of the last thing that was made.
    number: u64,
    volumes: BTreeMap<String, Entry>,
    snapshots: BTreeMap<String, Snap>,
    faults: BTreeMap<&'static str, VecDeque<Fault>>,
    calls: Vec<String>,
    gate: Option<Arc<dyn Gate>>,
}

/// What calls pass on their way in and out, in tests of drivers that are slow or fail.
#[async_trait::async_trait]
pub trait Gate: Send + Sync {
    /// A call (by the specification's name for it) has come about a volume or snapshot of this name or id.
    ///
    /// # Errors
    /// What is answered in place of doing it.
    async fn enter(&self, method: &'static str, about: &str) -> Result<(), Status>;

    /// It has had its effect.
    ///
    /// # Errors
    /// What is answered all the same.
    async fn leave(&self, method: &'static str, about: &str) -> Result<(), Status>;
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// As who asked for it calls it.
    pub name: String,
    /// Its size.
    pub bytes: i64,
    /// Where it is attached.
    pub nodes: BTreeSet<String>,
    /// What it started with, as `volume/ID` or `snapshot/ID`.
    pub origin: String,
    /// What was set last.
    pub attributes: BTreeMap<String, String>,
    /// What was written to it, in order, after what it started with.
    pub content: Vec<u64>,
    /// How much of its content it started with.
    pub copied: usize,
}

/// A snapshot.
#[derive(Debug, Clone)]
struct Snap {
    name: String,
    volume: String,
    bytes: i64,
    content: Vec<u64>,
}

impl MemoryDriver {
    /// A driver of this name, without volumes.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let driver = Self::default();
        name.clone_into(&mut driver.0.lock().name);
        driver
    }

    /// The next call of a method (as it is named in the specification) goes wrong.
    pub fn fail_next(&self, method: &'static str, fault: Fault) {
        self.0.lock().faults.entry(method).or_default().push_back(fault);
    }

    /// Calls pass this from now on.
    pub fn set_gate(&self, gate: Arc<dyn Gate>) {
        self.0.lock().gate = Some(gate);
    }

    /// Writes to a volume, if it is there.
    pub fn write(&self, id: &str, what: u64) {
        if let Some(volume) = self.0.lock().volumes.get_mut(id) {
            volume.content.push(what);
        }
    }

    /// The volumes that there are, by id.
    #[must_use]
    pub fn volumes(&self) -> BTreeMap<String, Entry> {
        self.0.lock().volumes.clone()
    }

    /// The names of the snapshots that there are.
    #[must_use]
    pub fn snapshots(&self) -> Vec<String> {
        self.0.lock().snapshots.values().map(|snapshot| snapshot.name.clone()).collect()
    }

    /// The methods called so far, but for those that ask what there is.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        self.0.lock().calls.clone()
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
        let server = tonic::transport::Server::builder()
            .add_service(IdentityServer::new(self.clone()))
            .add_service(ControllerServer::new(self.clone()))
            .add_service(NodeServer::new(self));
        Ok(server.serve_with_incoming_shutdown(incoming, token.cancelled_owned()))
    }

    /// Does a call's work about a volume or snapshot, unless a fault was asked for.
    async fn answer<T: Send>(
        &self,
        method: &'static str,
        about: &str,
        work: impl FnOnce(&mut State) -> Result<T, Status> + Send,
    ) -> Result<Response<T>, Status> {
        let (fault, gate) = {
            let mut state = self.0.lock();
            state.calls.push(method.to_owned());
            (state.faults.get_mut(method).and_then(VecDeque::pop_front), state.gate.clone())
        };
        let Some(gate) = gate else { return self.work(fault, work).await };
        gate.enter(method, about).await?;
        let answer = self.work(fault, work).await;
        gate.leave(method, about).await?;
        answer
    }

    async fn work<T>(
        &self,
        fault: Option<Fault>,
        work: impl FnOnce(&mut State) -> Result<T, Status> + Send,
    ) -> Result<Response<T>, Status> {
        match fault {
            Some(Fault::Refuse(code, message)) => Err(Status::new(code, message)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Lie(code)) => {
                drop(work(&mut self.0.lock())?);
                Err(Status::new(code, "the work is done all the same"))
            }
            None => work(&mut self.0.lock()).map(Response::new),
        }
    }
}

impl State {
    fn next_id(&mut self, kind: &str) -> String {
        self.number += 1;
        format!("{kind}-{}", self.number)
    }

    fn volume(&mut self, id: &str) -> Result<&mut Entry, Status> {
        if id.is_empty() {
            return Err(Status::invalid_argument("volume_id is required"));
        }
        self.volumes.get_mut(id).ok_or_else(|| Status::not_found(format!("volume {id} does not exist")))
    }
}

fn required(field: &str, is_there: bool) -> Result<(), Status> {
    if is_there { Ok(()) } else { Err(Status::invalid_argument(format!("{field} is required"))) }
}

#[tonic::async_trait]
impl Identity for MemoryDriver {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        let (name, vendor_version) = (self.0.lock().name.clone(), "1".to_owned());
        Ok(Response::new(GetPluginInfoResponse { name, vendor_version, manifest: [].into() }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        let service = plugin_capability::Service { r#type: Service::ControllerService.into() };
        let capabilities = vec![PluginCapability { r#type: Some(Type::Service(service)) }];
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities }))
    }

    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        Ok(Response::new(ProbeResponse { ready: Some(BoolValue { value: true }) }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::TaskGroup;

    use super::*;
    use crate::csi::contract::broken_rules;

    #[tokio::test]
    async fn it_keeps_the_rules_of_the_specification() {
        let scratch = tempfile::tempdir().unwrap();
        let socket = scratch.path().join("csi.sock");
        let tasks = TaskGroup::new("driver");
        let driver = MemoryDriver::new("memory.test");
        let served = driver.clone().serve(&socket, tasks.token()).unwrap();
        tasks.spawn("driver", async move { served.await.unwrap() });
        assert_eq!(broken_rules(&socket, scratch.path(), "contract").await, Vec::<String>::new());
        assert!(driver.volumes().is_empty() && driver.snapshots().is_empty(), "something is left");
        tasks.shutdown(Duration::from_secs(10)).await;
    }
}
