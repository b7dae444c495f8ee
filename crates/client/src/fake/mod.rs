//! A tiny API server in memory, for tests of clients and controllers: objects as JSON, versions, watches with
//! bookmarks, conflicts, and the faults that a test asks for. It validates nothing and knows no kind.

mod serve;
mod store;
mod watch;

use std::sync::Arc;

use api_machinery::value::Value;
use base::{Rng, SharedClock, TaskGroup, TokioClock};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::client::Client;
use crate::config::{ClientConfig, ContentType};
use crate::cx::ClientCx;
use crate::transport::{ApiHandler, Body, InProcess, Peer, Transport};
use store::Store;

/// The server. Clones share the objects.
#[derive(Clone, Default)]
pub struct FakeServer {
    store: Arc<Mutex<Store>>,
    changed: Arc<Notify>,
}

impl FakeServer {
    /// An empty server.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A transport to the server.
    #[must_use]
    pub fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(InProcess::new(Arc::new(self.clone()), Peer::default()))
    }

    /// A client of the server, without a rate limit, on tokio's clock and with a fixed seed.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client_over(self.transport())
    }

    /// A client over another transport, such as one with faults.
    #[must_use]
    pub fn client_over(&self, transport: Arc<dyn Transport>) -> Client {
        Self::client_with(transport, TokioClock::shared())
    }

    /// A client of the server on another clock, such as one that stands.
    #[must_use]
    pub fn client_on(&self, clock: SharedClock) -> Client {
        Self::client_with(self.transport(), clock)
    }

    fn client_with(transport: Arc<dyn Transport>, clock: SharedClock) -> Client {
        let cx = ClientCx::new(clock, Rng::seeded(1), TaskGroup::new("test"));
        let mut config = ClientConfig::for_server("https://fake").with_rate(-1.0, 1).with_component("test");
        config.content = ContentType::Json;
        Client::with_transport(transport, config, cx).expect("invariant: a fixed configuration is valid")
    }

    /// Ends all running watches, as a restarted server does.
    pub fn cut_watches(&self) {
        self.store.lock().cut_watches();
        self.changed.notify_waiters();
    }

    /// Forgets all changes, so that watches from former versions get 410.
    pub fn compact(&self) {
        self.store.lock().compact();
    }

    /// Sends bookmarks on all watches that want them.
    pub fn send_bookmarks(&self) {
        self.store.lock().bookmark();
        self.changed.notify_waiters();
    }

    /// Whether watches may start with all objects; without it they get 422, as from an old server.
    pub fn set_initial_events(&self, offered: bool) {
        self.store.lock().initial_events = offered;
    }

    /// Answers the next requests of a method with a status, one status per request.
    pub fn fail_next(&self, method: &str, statuses: &[u16]) {
        self.store.lock().failures.entry(method.to_owned()).or_default().extend(statuses);
    }

    /// All requests so far: method, path and query.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.store.lock().requests.clone()
    }

    /// Puts an object in without a request; the resource is written `v1/pods` or `apps/v1/deployments`.
    pub fn put(&self, resource: &str, object: Value) {
        self.store.lock().put(resource, object);
        self.changed.notify_waiters();
    }

    /// Takes an object out without a request.
    pub fn remove(&self, resource: &str, namespace: &str, name: &str) {
        self.store.lock().remove(resource, namespace, name);
        self.changed.notify_waiters();
    }

    /// The objects of a resource, by namespace and name.
    #[must_use]
    pub fn objects(&self, resource: &str) -> Vec<Value> {
        self.store.lock().objects(resource)
    }
}

#[async_trait::async_trait]
impl ApiHandler for FakeServer {
    async fn call(&self, request: http::Request<Bytes>, _peer: &Peer) -> http::Response<Body> {
        let response = serve::serve(self, &request);
        self.changed.notify_waiters();
        response
    }
}
