//! The API server of a simulated cluster: it can crash and come back over the same store, as one whose etcd runs on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::{CancellationToken, SharedClock, SharedRng, TaskGroup};
use bytes::Bytes;
use client::{ApiHandler, Body, Peer, Transport, TransportError};
use component_base::Gates;
use component_base::lifecycle::Lifecycle;
use component_base::serving::BoxError;
use http_body::Frame;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use storage::{Backend, Compactor};

use apiserver::Server;
use apiserver::config::ServerConfig;

use crate::clock::{ClockFault, PartClock};
use crate::store::Severable;

const ADDRESS: &str = "https://in-process";

/// The store, and the server over it while there is one. As a transport it is what clients connect to: their requests
/// and watches break when the server crashes, and are refused while it is down.
pub(crate) struct ApiServer {
    config: ServerConfig,
    gates: Gates,
    backend: Arc<Severable>,
    clock: Arc<PartClock>,
    rng: SharedRng,
    up: Mutex<Option<Up>>,
}

struct Up {
    handler: Arc<dyn ApiHandler>,
    tasks: TaskGroup,
}

impl ApiServer {
    /// A store, whose compactor is in `group`, without a server.
    pub(crate) fn new(
        (config, gates): (ServerConfig, Gates),
        backend: Arc<Severable>,
        clock: &SharedClock,
        rng: SharedRng,
        group: &TaskGroup,
    ) -> Arc<Self> {
        let compactor = Compactor::new(Arc::clone(&backend) as _, config.storage.compaction_interval);
        group.spawn_cancellable("compactor", compactor.run());
        let clock = Arc::new(PartClock::new(Arc::clone(clock)));
        Arc::new(Self { config, gates, backend, clock, rng, up: Mutex::default() })
    }

    /// Starts a server; one that runs crashes first.
    pub(crate) fn start(&self) -> Result<(), BoxError> {
        self.crash();
        let rng = base::Rng::seeded(self.rng.below(u64::MAX));
        let lifecycle =
            Lifecycle::new("kube-apiserver", Arc::clone(&self.clock) as _, rng).with_gates(self.gates.clone());
        let server = Server::build_over(self.config.clone(), lifecycle.clone(), Arc::clone(&self.backend) as _)?;
        server.start();
        *self.up.lock() = Some(Up { handler: server.api(), tasks: lifecycle.tasks().clone() });
        Ok(())
    }

    /// Makes the server's clock wrong, or right again.
    pub(crate) fn set_clock(&self, fault: ClockFault) {
        self.clock.set(fault);
    }

    /// Has the server find another store, as one that was opened anew, when it is started again.
    pub(crate) fn replace_store(&self, backend: Arc<dyn Backend>) {
        self.backend.replace(backend);
    }

    /// Cuts the server off its store, or joins it again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.backend.cut(is_cut);
    }

    /// Has the server hear of changes in the store this much later.
    pub(crate) fn set_lag(&self, lag: Duration) {
        self.backend.set_lag(lag);
    }

    /// Ends the server wherever it is.
    pub(crate) fn crash(&self) {
        if let Some(up) = self.up.lock().take() {
            up.tasks.cancel();
        }
    }

    fn current(&self) -> Option<(Arc<dyn ApiHandler>, CancellationToken)> {
        self.up.lock().as_ref().map(|up| (Arc::clone(&up.handler), up.tasks.token()))
    }
}

fn reset() -> BoxError {
    "connection reset by peer (the server crashed)".into()
}

#[async_trait::async_trait]
impl Transport for ApiServer {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let Some((handler, crashed)) = self.current() else {
            let source = std::io::ErrorKind::ConnectionRefused.into();
            return Err(TransportError::Dial { address: ADDRESS.to_owned(), source });
        };
        let peer = Peer::default();
        let response = tokio::select! {
            biased;
            () = crashed.cancelled() => return Err(TransportError::Broken(reset())),
            response = handler.call(request, &peer) => response,
        };
        let crash = Box::pin(crashed.cancelled_owned());
        Ok(response.map(|inner| UntilCrash { inner, crash }.boxed_unsync()))
    }

    fn server(&self) -> &str {
        ADDRESS
    }
}

/// A body that breaks when its server crashes.
struct UntilCrash<F> {
    inner: Body,
    crash: Pin<Box<F>>,
}

impl<F: Future<Output = ()>> http_body::Body for UntilCrash<F> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.crash.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(reset())));
        }
        Pin::new(&mut self.inner).poll_frame(cx)
    }
}
