//! What the server knows of the versions of groups, and of the servers that answer for some of them.

use std::sync::Arc;

use api_types::apidiscovery_v2::APIVersionDiscovery;
use api_types::apiregistration_v1::APIService;
use component_base::health::{Check, Endpoint, Health, Installed};
use component_base::lifecycle::Lifecycle;
use component_base::metrics::Metrics;
use component_base::reload::spawn_reloader;
use component_base::tls::{ClientIdentity, TlsError};
use schema::openapi::Swagger;

use super::documents::Documents;
use super::identity::Uids;
use super::metrics::AggregationMetrics;
use super::queues::Queues;
use super::registration::Registration;
use super::specs::Specs;
use super::table::{GroupTable, Remote};
use crate::config::AggregationConfig;
use crate::custom_resources::ServedKinds;
use crate::gates;
use crate::openapi::document::Document;

/// All of it.
pub(crate) struct Aggregation {
    pub(super) table: Arc<GroupTable>,
    pub(super) documents: Documents,
    pub(super) specs: Specs,
    pub(super) queues: Queues,
    pub(super) registration: Registration,
    pub(super) metrics: AggregationMetrics,
    /// Whether other servers are told of uids.
    pub(super) uids: Uids,
    /// Whether other servers are shown a certificate.
    pub(super) shows_certificate: bool,
}

/// A version of a group as discovery shows it.
pub(crate) struct Listed {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) group_priority: i32,
    pub(crate) version_priority: i32,
    /// What another server serves; nothing where this one answers.
    pub(crate) elsewhere: Option<APIVersionDiscovery>,
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
            registration: Registration::new(served),
            metrics: AggregationMetrics::new(metrics),
            uids: if lifecycle.gates().enabled(gates::REMOTE_UID) { Uids::Told } else { Uids::Kept },
            shows_certificate: config.client_pair.is_some(),
        })
    }

    /// One without any server.
    #[cfg(test)]
    pub(crate) fn alone(change: impl FnOnce(Lifecycle) -> Lifecycle) -> Arc<Self> {
        let lifecycle = change(Lifecycle::new("test", base::TokioClock::shared(), base::Rng::seeded(1)));
        let (config, metrics) = (AggregationConfig::default(), Metrics::new(Default::default()));
        Arc::new(Self::new(&config, &ServedKinds::default(), &lifecycle, &metrics).expect("no files are read"))
    }

    /// What a server is told of a user.
    #[cfg(test)]
    pub(crate) fn told_of(&self, user: &api_types::authentication_v1::UserInfo) -> http::HeaderMap {
        let mut headers = http::HeaderMap::new();
        super::identity::tell(&mut headers, user, self.uids).expect("a user of plain words");
        headers
    }

    /// Adds the check that waits until every built-in version has its APIService.
    pub(crate) fn add_check(self: &Arc<Self>, health: &Health) -> Result<(), Installed> {
        let own = Arc::clone(self);
        let check = Check::instant("autoregister-completion", move || own.registration.is_complete());
        health.add(Endpoint::ALL, &check)
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
        let current = self.table.current();
        let listed = |(object, remote): (&Arc<APIService>, Option<&Arc<Remote>>)| {
            let spec = &object.spec;
            Listed {
                group: spec.group.clone(),
                version: spec.version.clone(),
                group_priority: spec.group_priority_minimum,
                version_priority: spec.version_priority,
                elsewhere: remote.map(|remote| self.documents.of(remote)),
            }
        };
        current.all().map(listed).collect()
    }

    /// Adds to an `OpenAPI` document of version 2 what other servers say of themselves.
    pub(crate) fn describe(&self, document: &mut Swagger) {
        self.specs.merge_into(document, &self.table.current());
    }

    /// The description of version 3 of a server that has one of version 2 only.
    pub(crate) fn converted(&self, remote: &Remote) -> Option<Document> {
        self.specs.converted(remote)
    }

    /// The documents of version 3 of what other servers serve: their keys, and where the index says that they are.
    pub(crate) fn described(&self) -> Vec<(String, String)> {
        self.specs.keys(&self.table.current())
    }

    /// The documents of discovery are made anew.
    pub(crate) fn note_discovery(&self) {
        self.metrics.note_discovery();
    }
}
