//! What the proxy watches: Services, their slices, and the networks of cluster addresses.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::Service;
use api_types::core_v1::constants::ENDPOINTS_LAST_CHANGE_TRIGGER_TIME;
use api_types::discovery_v1::EndpointSlice;
use api_types::networking_v1::ServiceCIDR;
use client::{Informer, Informers, ObjectKey, Scope};
use sys::net::Destination;

use crate::Family;
use crate::engine::Source;
use crate::metrics::Changed;
use crate::worker::{Pending, Reports};

const BY_SERVICE: &str = "by-service";
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// What the proxy watches.
pub(crate) struct Cluster {
    services: Informer<Service>,
    slices: Informer<EndpointSlice>,
    cidrs: Informer<ServiceCIDR>,
}

impl Cluster {
    pub(crate) fn new(informers: &Informers) -> Self {
        let services = informers.scoped::<Service>(&Scope {
            label_selector: "!service.kubernetes.io/service-proxy-name".into(),
            field_selector: "spec.clusterIP!=None".into(),
            ..Scope::default()
        });
        let slices = informers.scoped::<EndpointSlice>(&Scope {
            label_selector: "!service.kubernetes.io/headless".into(),
            ..Scope::default()
        });
        slices.add_index(BY_SERVICE, |slice| service_of(slice).map(|key| key.to_string()).into_iter().collect());
        Self { services, slices, cidrs: informers.of::<ServiceCIDR>() }
    }

    /// Waits for all that rules are made from. The networks of cluster addresses do not hold anything up: rules are right
    /// without them, and an API server may not know them.
    pub(crate) async fn wait_synced(&self) {
        self.services.wait_synced().await;
        self.slices.wait_synced().await;
    }

    pub(crate) fn subscribe(&self, family: Family, pending: &Arc<Pending>, reports: &Reports) {
        let (to, seen) = (Arc::clone(pending), reports.clone());
        self.services.subscribe(move |change| {
            if !change.is_resync() {
                seen.health.queued(family);
                seen.metrics.queued(family, Changed::Service, seen.seconds());
                to.add(change.key());
            }
        });
        let (to, seen) = (Arc::clone(pending), reports.clone());
        let started = Time::from(seen.clock.wall());
        self.slices.subscribe(move |change| {
            // What happened before this process was started says nothing about it.
            let at = trigger_time(change.object()).filter(|at| *at > started);
            let news = !change.is_deleted() && change.old().is_none_or(|old| trigger_time(old) != at);
            if let Some(at) = at.filter(|_| news) {
                to.triggered(at);
            }
            let keys: BTreeSet<ObjectKey> = [service_of(change.object()), change.old().and_then(|old| service_of(old))]
                .into_iter()
                .flatten()
                .collect();
            for key in keys.into_iter().filter(|_| !change.is_resync()) {
                seen.health.queued(family);
                seen.metrics.queued(family, Changed::Endpoints, seen.seconds());
                to.add(key);
            }
        });
    }
}

/// When what a slice says happened, if it tells.
fn trigger_time(slice: &EndpointSlice) -> Option<Time> {
    Time::parse(slice.metadata.annotations.get(ENDPOINTS_LAST_CHANGE_TRIGGER_TIME)?).ok()
}

fn service_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let name = slice.metadata.labels.get(SERVICE_NAME).filter(|name| !name.is_empty())?;
    Some(ObjectKey::new(&slice.metadata.namespace, name))
}

impl Source for Cluster {
    fn service(&self, key: &ObjectKey) -> Option<Arc<Service>> {
        self.services.get(key)
    }
    fn slices(&self, key: &ObjectKey) -> Vec<Arc<EndpointSlice>> {
        self.slices.by_index(BY_SERVICE, &key.to_string())
    }
    fn services(&self) -> Vec<ObjectKey> {
        self.services.keys()
    }
    fn service_cidrs(&self, family: Family) -> Vec<String> {
        let objects = self.cidrs.list();
        let texts = objects.iter().flat_map(|object| &object.spec.cidrs).filter(|text| text.contains('/'));
        // Two objects may name one network. What is no network would make the whole table fail.
        let networks: BTreeSet<Destination> = texts.filter_map(|text| text.parse().ok()).collect();
        let own = networks.iter().filter(|network| network.is_v6() == (family == Family::V6));
        own.map(Destination::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use client::InformerOptions;
    use client::fake::FakeServer;
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn networks_of_cluster_addresses_are_known_once_each() {
        let server = FakeServer::new();
        let resource = "networking.k8s.io/v1/servicecidrs";
        for (name, cidrs) in [
            ("kubernetes", json!(["10.96.0.0/16", "fd00:96::/108"])),
            ("more", json!(["10.96.0.0/16", "10.80.0.0/16", "nonsense/x"])),
        ] {
            server.put(resource, json!({"metadata": {"name": name}, "spec": {"cidrs": cidrs}}));
        }
        let informers = Informers::new(&server.client(), InformerOptions::default());
        let cluster = Cluster::new(&informers);
        informers.start();
        informers.wait_synced().await;
        assert_eq!(cluster.service_cidrs(Family::V4), ["10.80.0.0/16", "10.96.0.0/16"]);
        assert_eq!(cluster.service_cidrs(Family::V6), ["fd00:96::/108"]);
    }
}
