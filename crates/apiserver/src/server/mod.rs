//! The server as a whole: put together, called, served over HTTPS, and ended in stages.

mod assemble;
mod auditing;
mod handler;
mod health;
pub(crate) mod self_signed;
mod shutdown;
mod store;

use std::sync::Arc;

use component_base::debugging::Debugging;
use component_base::lifecycle::Lifecycle;
use component_base::serving::{Handler, SecureServing, ServerHandle};
use parking_lot::Mutex;
use storage::Backend;

#[cfg(test)]
pub(crate) use shutdown::shut_down;

use crate::authentication::External;
use crate::build_error::BuildError;
use crate::chain::road::Road;
use crate::config::ServerConfig;
use crate::cx::ApiCx;
use crate::hooks::Hooks;
use assemble::Surroundings;
use handler::{HttpHandler, Itself};
pub(crate) use store::Override;
use store::Store;

/// An API server.
pub struct Server {
    cx: Arc<ApiCx>,
    handler: Arc<HttpHandler>,
    hooks: Mutex<Option<Hooks>>,
    store: Store,
}

impl Server {
    /// Puts a server together and opens its store.
    ///
    /// # Errors
    /// When a file cannot be read, or the store cannot be opened.
    pub async fn build(config: ServerConfig, lifecycle: Lifecycle) -> Result<Self, BuildError> {
        let mut surroundings = Surroundings::new(&config, &lifecycle)?;
        let store = Store::open(&config.storage, &surroundings.egress, &lifecycle).await?;
        surroundings.signer = External::start(&config.service_accounts, &lifecycle, &surroundings.metrics).await?;
        Self::assemble(config, lifecycle, store, surroundings)
    }

    /// The same over a store that is open already, for tests and for several servers over one store. Nobody else signs
    /// tokens of accounts.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn build_over(
        config: ServerConfig,
        lifecycle: Lifecycle,
        backend: Arc<dyn Backend>,
    ) -> Result<Self, BuildError> {
        let surroundings = Surroundings::new(&config, &lifecycle)?;
        Self::assemble(config, lifecycle, Store::shared(backend), surroundings)
    }

    fn assemble(
        config: ServerConfig,
        lifecycle: Lifecycle,
        store: Store,
        surroundings: Surroundings,
    ) -> Result<Self, BuildError> {
        lifecycle.tasks().spawn_cancellable("compacted", store.follow_compaction());
        let (cx, routes, hooks) = assemble::assemble(config, lifecycle, &store, surroundings)?;
        let handler = Arc::new(HttpHandler::new(Road::new(Arc::clone(&cx), routes)));
        assemble::connect_loopback(&cx, Itself::new(&handler))?;
        Ok(Self { cx, handler, hooks: Mutex::new(Some(hooks)), store })
    }

    /// What handlers are given.
    #[cfg(test)]
    pub(crate) fn cx(&self) -> &Arc<ApiCx> {
        &self.cx
    }

    /// The server as a function, for clients in the same process.
    #[must_use]
    pub fn api(&self) -> Arc<dyn client::ApiHandler> {
        Arc::clone(&self.handler) as _
    }

    /// The server as what a listener calls.
    #[must_use]
    pub fn http(&self) -> Arc<dyn Handler> {
        Arc::clone(&self.handler) as _
    }

    /// Begins the work that follows the start. Only the first call does anything.
    pub fn start(&self) {
        let Some(hooks) = self.hooks.lock().take() else { return };
        self.cx.lifecycle.events().mux_and_discovery_complete.signal();
        hooks.start(&self.cx);
    }

    /// Listens, as the configuration says; nothing where it has no address.
    ///
    /// # Errors
    /// When certificates are bad or the port is taken.
    pub fn listen(&self) -> Result<Option<ServerHandle>, BuildError> {
        let debugging = &self.cx.config.debugging;
        if let Some(socket) = &debugging.socket {
            Debugging::new(&self.cx.lifecycle, debugging.contention).listen(socket, self.cx.tasks())?;
        }
        let Some(serving) = &self.cx.config.serving else { return Ok(None) };
        let serving = SecureServing { counters: self.cx.metrics.connections(), ..serving.clone() };
        let names = self_signed::names(&self.cx.config);
        let generate = self_signed::generator(self.cx.clock(), self.cx.rng());
        let certificates = serving.certificates(&names, &generate)?;
        let handle = serving.serve(self.cx.tasks(), certificates, &self.cx.authentication.client_cas, self.http())?;
        Ok(Some(handle))
    }

    /// Serves until it is asked to end, and ends in stages.
    ///
    /// # Errors
    /// When it cannot listen, or a piece of start-up work failed for good.
    pub async fn run(self) -> Result<(), BuildError> {
        let handle = self.listen()?;
        self.start();
        component_base::notify::ready();
        self.cx.lifecycle.shutdown_requested().await;
        shutdown::shut_down(&self.cx, handle.as_ref()).await;
        self.store.close().await;
        let failure = self.cx.failure.lock().take();
        failure.map_or(Ok(()), |why| Err(BuildError::Hook(why)))
    }
}
