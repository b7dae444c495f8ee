//! The cluster's data from informers.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::UNIX_EPOCH;

use api_types::core_v1::{Namespace, Service};
use api_types::discovery_v1::EndpointSlice;
use base::SharedClock;
use client::{Informer, Informers};

use crate::data::{ClusterData, EndpointRecord, ServiceRecord, endpoints_of};

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const BY_SERVICE: &str = "by-service";
const BY_IP: &str = "by-ip";

/// Services, EndpointSlices and Namespaces, as watched.
pub(crate) struct Informed {
    services: Informer<Service>,
    slices: Informer<EndpointSlice>,
    namespaces: Informer<Namespace>,
    changed: Arc<AtomicU32>,
}

impl Informed {
    /// Starts to watch.
    pub(crate) fn new(informers: &Informers, clock: &SharedClock) -> Self {
        let own = Self {
            services: informers.of(),
            slices: informers.of(),
            namespaces: informers.of(),
            changed: Arc::default(),
        };
        own.services
            .add_index(BY_IP, |service| ServiceRecord::of(service).cluster_ips.iter().map(IpAddr::to_string).collect());
        own.slices
            .add_index(BY_SERVICE, |slice| service_of(slice).into_iter().map(|(a, b)| format!("{a}/{b}")).collect());
        own.slices.add_index(BY_IP, |slice| {
            endpoints_of(slice).iter().map(|endpoint| endpoint.address.to_string()).collect()
        });
        let stamp = |clock: &SharedClock| {
            let (changed, clock) = (Arc::clone(&own.changed), Arc::clone(clock));
            move || {
                let seconds = clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                changed.store(u32::try_from(seconds).unwrap_or(u32::MAX), Ordering::Relaxed);
            }
        };
        let (on_service, on_slice) = (stamp(clock), stamp(clock));
        own.services.subscribe(move |_| on_service());
        own.slices.subscribe(move |_| on_slice());
        informers.start();
        own
    }
}

fn service_of(slice: &EndpointSlice) -> Option<(String, String)> {
    let name = slice.metadata.labels.get(SERVICE_NAME)?;
    Some((slice.metadata.namespace.clone(), name.clone()))
}

impl ClusterData for Informed {
    fn is_synced(&self) -> bool {
        self.services.has_synced() && self.slices.has_synced() && self.namespaces.has_synced()
    }
    fn serial(&self) -> u32 {
        self.changed.load(Ordering::Relaxed)
    }
    fn has_namespace(&self, name: &str) -> bool {
        self.namespaces.find("", name).is_some()
    }
    fn service(&self, namespace: &str, name: &str) -> Option<ServiceRecord> {
        self.services.find(namespace, name).map(|service| ServiceRecord::of(&service))
    }
    fn endpoints(&self, namespace: &str, name: &str) -> Vec<EndpointRecord> {
        let slices = self.slices.by_index(BY_SERVICE, &format!("{namespace}/{name}"));
        slices.iter().flat_map(|slice| endpoints_of(slice)).collect()
    }
    fn service_by_ip(&self, address: IpAddr) -> Option<ServiceRecord> {
        self.services.by_index(BY_IP, &address.to_string()).first().map(|service| ServiceRecord::of(service))
    }
    fn endpoints_by_ip(&self, address: IpAddr) -> Vec<(String, String, EndpointRecord)> {
        let mut found = Vec::new();
        for slice in self.slices.by_index(BY_IP, &address.to_string()) {
            let Some((namespace, service)) = service_of(&slice) else { continue };
            let own = endpoints_of(&slice).into_iter().filter(|endpoint| endpoint.address == address);
            found.extend(own.map(|endpoint| (namespace.clone(), service.clone(), endpoint)));
        }
        found
    }
}
