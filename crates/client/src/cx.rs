//! What clients get from their process.

use std::sync::Arc;

use base::{Direct, SharedClock, SharedConnector, SharedRng, TaskGroup};
use component_base::http_proxy::ProxyEnvironment;
use component_base::{Gates, Lifecycle};
use sys::exec::{Exec, LinuxExec};

use crate::config::ClientConfig;
use crate::exec::{Authenticator, Plugins};
use crate::features::Features;
use crate::metrics::RequestMetrics;

/// What a client needs from its process: time, randomness and a place for its tasks.
#[derive(Clone)]
pub struct ClientCx {
    /// The clock.
    pub clock: SharedClock,
    /// The source of jitter.
    pub rng: SharedRng,
    /// Where connections, informers and recorders live.
    pub tasks: TaskGroup,
    pub(crate) connector: SharedConnector,
    pub(crate) features: Features,
    proxies: Arc<ProxyEnvironment>,
    /// Who starts credential plugins, and those that are in use.
    exec: Arc<dyn Exec>,
    plugins: Arc<Plugins>,
    metrics: Option<Arc<RequestMetrics>>,
}

impl ClientCx {
    /// The parts together; connections begin at this host, and go through no proxy but a configuration's own.
    #[must_use]
    pub fn new(clock: SharedClock, rng: SharedRng, tasks: TaskGroup) -> Self {
        Self {
            clock,
            rng,
            tasks,
            connector: Direct::shared(),
            features: Features::default(),
            proxies: Arc::default(),
            exec: Arc::new(LinuxExec),
            plugins: Arc::default(),
            metrics: None,
        }
    }

    /// What a component is given to live with, for clients whose tasks live in `tasks`: its time, randomness, gates, and the
    /// proxies of its environment.
    #[must_use]
    pub fn of(lifecycle: &Lifecycle, tasks: TaskGroup) -> Self {
        let own = Self::new(Arc::clone(lifecycle.clock()), Arc::clone(lifecycle.rng()), tasks);
        own.obeying(lifecycle.gates()).behind(lifecycle.proxies())
    }

    /// The same, with another place for the clients' tasks.
    #[must_use]
    pub fn in_group(self, tasks: TaskGroup) -> Self {
        Self { tasks, ..self }
    }

    /// The same, with the proxies that an environment names for clients whose configuration names none.
    #[must_use]
    pub fn behind(self, proxies: &Arc<ProxyEnvironment>) -> Self {
        Self { proxies: Arc::clone(proxies), ..self }
    }

    /// The proxies that an environment names.
    #[must_use]
    pub fn proxies(&self) -> &Arc<ProxyEnvironment> {
        &self.proxies
    }

    /// The same, with credential plugins that another starts.
    #[must_use]
    pub fn starting_by(self, exec: Arc<dyn Exec>) -> Self {
        Self { exec, plugins: Arc::default(), ..self }
    }

    /// The same, with connections that another opens.
    #[must_use]
    pub fn through(self, connector: SharedConnector) -> Self {
        Self { connector, ..self }
    }

    /// The same, with what gates say of clients ([`crate::features::GATES`]).
    #[must_use]
    pub fn obeying(self, gates: &Gates) -> Self {
        Self { features: Features::by(gates), ..self }
    }

    /// The same, with requests counted.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Arc<RequestMetrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// The plugin that says who a client with this configuration is.
    pub(crate) fn authenticator(&self, config: &ClientConfig) -> Option<Arc<Authenticator>> {
        let metrics = self.metrics.as_ref().map(|metrics| metrics.plugins());
        config.plugin().map(|plugin| self.plugins.of(plugin, &self.exec, &self.clock, metrics))
    }

    /// Where requests and events are counted.
    pub(crate) fn metrics(&self) -> Option<&Arc<RequestMetrics>> {
        self.metrics.as_ref()
    }
}
