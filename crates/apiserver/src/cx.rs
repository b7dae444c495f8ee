//! What handlers are given: everything that lives as long as the server.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use authz::Authorizer;
use base::{SharedClock, SharedRng, TaskGroup};
use client::Client;
use component_base::health::Health;
use component_base::lifecycle::Lifecycle;
use egress::EgressSelector;
use parking_lot::Mutex;
use registry::Registry;
use storage::Backend;
use tracing_otlp::Tracer;

use crate::aggregation::state::Aggregation;
use crate::authentication::Authentication;
use crate::authorization::{Impersonations, RbacAuthorizer};
use crate::config::ServerConfig;
use crate::custom_kinds::CustomKinds;
use crate::limits::{Running, Seats, Watches};
use crate::metrics::ApiMetrics;
use crate::peers::Peers;
use crate::server::Override;
use crate::storage_versions::StorageVersions;

/// Work that runs at the beginning of the end, while requests are still served.
type PreShutdown = Arc<dyn Fn(Arc<ApiCx>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// The server as handlers see it.
pub(crate) struct ApiCx {
    pub(crate) config: ServerConfig,
    pub(crate) registry: Arc<Registry>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) authentication: Authentication,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    /// Who may act as whom.
    pub(crate) impersonations: Impersonations,
    pub(crate) rbac: Arc<RbacAuthorizer>,
    pub(crate) admission: Arc<admission::Chain>,
    pub(crate) custom_kinds: Arc<CustomKinds>,
    /// Ways to the webhooks that convert custom objects.
    pub(crate) conversion_webhooks: Arc<dyn admission::webhook::Caller>,
    pub(crate) metrics: ApiMetrics,
    pub(crate) health: Arc<Health>,
    pub(crate) seats: Arc<dyn Seats>,
    pub(crate) running: Running,
    /// The watches, which end with the server.
    pub(crate) watches: Watches,
    pub(crate) loopback: OnceLock<Client>,
    pub(crate) failure: Mutex<Option<String>>,
    pub(crate) pre_shutdown: Mutex<Vec<PreShutdown>>,
    pub(crate) backend: Arc<dyn Backend>,
    /// The stores that some resources are kept in instead, each once.
    pub(crate) overrides: Vec<Override>,
    pub(crate) audit: Option<Arc<audit::Auditor>>,
    /// The versions that other servers behind this one answer for.
    pub(crate) aggregation: Arc<Aggregation>,
    /// The other servers of the cluster, where requests may be passed on to them.
    pub(crate) peers: Option<Arc<Peers>>,
    /// What this server stores, where servers tell of that.
    pub(crate) storage_versions: Option<Arc<StorageVersions>>,
    /// Who records traces, where somebody does.
    pub(crate) tracer: Option<Tracer>,
    pub(crate) egress: EgressSelector,
}

impl ApiCx {
    /// The configuration.
    #[must_use]
    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// The resources.
    #[must_use]
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The time.
    #[must_use]
    pub(crate) fn clock(&self) -> &SharedClock {
        self.lifecycle.clock()
    }

    /// Chance.
    #[must_use]
    pub(crate) fn rng(&self) -> &SharedRng {
        self.lifecycle.rng()
    }

    /// The tasks of the server.
    #[must_use]
    pub(crate) fn tasks(&self) -> &TaskGroup {
        self.lifecycle.tasks()
    }

    /// Who requests are from.
    #[must_use]
    pub(crate) fn authentication(&self) -> &Authentication {
        &self.authentication
    }

    /// What requests may do.
    #[must_use]
    pub(crate) fn authorizer(&self) -> &Arc<dyn Authorizer> {
        &self.authorizer
    }

    /// The admission plugins.
    #[must_use]
    pub(crate) fn admission(&self) -> &Arc<admission::Chain> {
        &self.admission
    }

    /// The kinds that came at run time.
    #[must_use]
    pub(crate) fn custom_kinds(&self) -> &CustomKinds {
        &self.custom_kinds
    }

    /// Who connects to what.
    #[must_use]
    pub(crate) fn egress(&self) -> &EgressSelector {
        &self.egress
    }

    /// The health checks.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// The watches.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn watches(&self) -> &Watches {
        &self.watches
    }

    /// A client of this server in this process, as `system:apiserver` in `system:masters`.
    ///
    /// # Panics
    /// Never: it is set before the first request and the first hook.
    #[must_use]
    pub(crate) fn loopback(&self) -> &Client {
        self.loopback.get().expect("invariant: the server sets its client before it hands out its context")
    }

    /// The store itself, for what has keys of its own: the leases of API servers, the allocators.
    #[must_use]
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Runs `work` at the beginning of the shutdown, while requests are still served.
    pub(crate) fn before_shutdown<F, A>(&self, work: F)
    where
        F: Fn(Arc<Self>) -> A + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        self.pre_shutdown.lock().push(Arc::new(move |cx| Box::pin(work(cx))));
    }

    /// Ends the server because of something that it cannot live with.
    pub(crate) fn fail(&self, why: String) {
        self.failure.lock().get_or_insert(why);
        self.lifecycle.begin_shutdown();
    }
}

impl std::fmt::Debug for ApiCx {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ApiCx")
    }
}
