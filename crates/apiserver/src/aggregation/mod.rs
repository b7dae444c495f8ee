//! Other API servers behind this one: which of them answers for a version of a group is looked up before anything else
//! is, and requests for it are passed on with the identity of whoever sent them (`docs/adr/0020-groups-before-dispatch.md`).
//! Concept: <https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/>
//!
//! Deliberately not here: what a group is preferred by (`discovery::order`), how connections are opened (`node_proxy`).

mod availability;
mod destination;
mod documents;
mod fetch;
mod identity;
mod legacy_resources;
mod poll;
mod proxy;
mod registration;
mod service_checks;
mod specs;
mod table;
mod transport;

use std::sync::Arc;

use client::{NoMetrics, RateLimit, WorkQueue};
use component_base::health::{Check, Endpoint, Health, Installed};
use component_base::lifecycle::Lifecycle;
use component_base::metrics::Metrics;
use component_base::reload::spawn_reloader;
use component_base::tls::{ClientIdentity, TlsError};

use crate::config::AggregationConfig;
use crate::custom_resources::ServedKinds;
use crate::hooks::PostStartHook;
use availability::AvailabilityMetrics;
use documents::Documents;
use poll::Poller;
use registration::Registration;
use specs::Specs;
use table::GroupTable;

pub(crate) use proxy::serve;
pub(crate) use table::{Listed, Remote};

/// What the server knows of the versions of groups, and of the servers that answer for some of them.
pub(crate) struct Aggregation {
    table: Arc<GroupTable>,
    documents: Documents,
    specs: Specs,
    /// Names of APIServices to look at: whether they can be asked, what they serve, how they describe it.
    queues: Queues,
    registration: Arc<Registration>,
    metrics: AvailabilityMetrics,
}

/// The work that a change of an APIService makes.
#[derive(Clone)]
struct Queues {
    availability: WorkQueue<String>,
    discovery: WorkQueue<String>,
    openapi: WorkQueue<String>,
}

impl Queues {
    fn new(lifecycle: &Lifecycle) -> Self {
        let queue = |name: &str, (base, longest)| {
            let limit = RateLimit { base, longest, overall: None };
            WorkQueue::new(name, limit, Arc::clone(lifecycle.clock()), Arc::new(NoMetrics))
        };
        Self {
            availability: queue("remote_available_controller", availability::RETRY),
            discovery: queue("APIServiceDiscovery", poll::RETRY),
            openapi: queue("open_api_aggregation_controller", poll::RETRY),
        }
    }

    /// Something changed about an APIService.
    fn add(&self, name: &str) {
        for queue in [&self.availability, &self.discovery, &self.openapi] {
            queue.add(name.to_owned());
        }
    }
}

impl Aggregation {
    /// Knows of nothing yet.
    ///
    /// # Errors
    /// When the certificate for other servers cannot be read.
    pub(crate) fn new(
        config: &AggregationConfig,
        served: &ServedKinds,
        lifecycle: &Lifecycle,
        metrics: &Metrics,
    ) -> Result<Self, TlsError> {
        let identity = match &config.client_pair {
            Some((certificate, key)) => {
                let identity = ClientIdentity::load(certificate, key)?;
                spawn_reloader(lifecycle.tasks(), vec![Arc::clone(&identity) as _]);
                identity
            }
            None => ClientIdentity::none(),
        };
        let queues = Queues::new(lifecycle);
        Ok(Self {
            table: Arc::new(GroupTable::new(identity, queues.clone())),
            documents: Documents::default(),
            specs: Specs::default(),
            queues,
            registration: Arc::new(Registration::new(served)),
            metrics: AvailabilityMetrics::new(metrics),
        })
    }

    /// One without any server.
    #[cfg(test)]
    pub(crate) fn alone() -> Arc<Self> {
        let lifecycle = Lifecycle::new("test", base::TokioClock::shared(), base::Rng::seeded(1));
        let (config, metrics) = (AggregationConfig::default(), Metrics::new(Default::default()));
        Arc::new(Self::new(&config, &ServedKinds::default(), &lifecycle, &metrics).expect("no files are read"))
    }

    /// Adds the check that waits until every built-in version has its APIService.
    pub(crate) fn add_check(self: &Arc<Self>, health: &Health) -> Result<(), Installed> {
        let own = Arc::clone(self);
        let check = Check::instant("autoregister-completion", move || own.registration.is_complete());
        health.add(Endpoint::ALL, &check)
    }

    /// Adds the work, in the order of upstream's health checks.
    pub(crate) fn install(self: &Arc<Self>, hooks: &mut Vec<Arc<dyn PostStartHook>>) {
        hooks.push(Arc::new(table::Follow(Arc::clone(&self.table))));
        hooks.push(Arc::new(availability::Controller(Arc::clone(self))));
        hooks.push(Arc::new(Poller::discovery(self)));
        hooks.push(Arc::new(registration::Controller(Arc::clone(self))));
        hooks.push(Arc::new(Poller::openapi(self)));
    }

    /// The server that answers for a path, where it is not this one.
    pub(crate) fn remote_of(&self, path: &str) -> Option<Arc<Remote>> {
        let current = self.table.current();
        if !current.has_remotes() {
            return None;
        }
        let mut segments = path.split('/').skip(1);
        match (segments.next(), segments.next(), segments.next()) {
            (Some("apis"), Some(group), Some(version)) => current.remote(group, version),
            _ => None,
        }
    }

    /// Counts what makes the documents of discovery stale.
    pub(crate) fn generation(&self) -> u64 {
        // Each only grows, so that no two states have the same sum.
        self.table.generation() + self.documents.generation()
    }

    /// Counts what makes descriptions stale.
    pub(crate) fn described_generation(&self) -> u64 {
        self.specs.generation()
    }

    /// Every version that has an APIService, as discovery shows it.
    pub(crate) fn listed(&self) -> Vec<Listed> {
        self.table.current().listed(&self.documents)
    }

    /// Adds to an `OpenAPI` document of version 2 what other servers say of themselves.
    pub(crate) fn describe(&self, document: &mut serde_json::Value) {
        self.specs.merge_into(document, &self.table.current());
    }

    /// The documents of version 3 that other servers have: their keys, and where the index says that they are.
    pub(crate) fn described(&self) -> Vec<(String, String)> {
        self.specs.keys(&self.table.current())
    }
}
