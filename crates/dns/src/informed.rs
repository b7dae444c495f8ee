//! The cluster's data from informers.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api_machinery::time::Time;
use api_types::core_v1::constants::ENDPOINTS_LAST_CHANGE_TRIGGER_TIME;
use api_types::core_v1::{Namespace, Service};
use api_types::discovery_v1::EndpointSlice;
use base::SharedClock;
use client::{Change, Informer, Informers};

use crate::data::{ClusterData, EndpointRecord, ServiceRecord, endpoints_of};
use crate::metrics::DnsMetrics;

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
    /// Starts to watch; `metrics` is told how long after changes their names say so.
    pub(crate) fn new(informers: &Informers, clock: &SharedClock, metrics: Arc<DnsMetrics>) -> Self {
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
        let (on_service, on_slice, on_namespace) = (stamp(clock), stamp(clock), stamp(clock));
        own.services.subscribe(move |_| on_service());
        own.namespaces.subscribe(move |_| on_namespace());
        let (services, clock, started) = (own.services.clone(), Arc::clone(clock), Time::from(clock.wall()));
        own.slices.subscribe(move |change| {
            on_slice();
            if let Some(took) = news(change, started, clock.wall())
                && is_of_headless(&services, change.object())
            {
                metrics.programmed(took);
            }
        });
        informers.start();
        own
    }
}

/// How long ago what a slice says anew happened, if it tells. What was before this process started says nothing of it.
fn news(change: &Change<EndpointSlice>, started: Time, now: SystemTime) -> Option<Duration> {
    let at = trigger_time(change.object()).filter(|at| *at > started)?;
    if change.is_deleted() || change.old().and_then(|old| trigger_time(old)) == Some(at) {
        return None;
    }
    let at = UNIX_EPOCH + Duration::from_secs(u64::try_from(at.unix_seconds()?).ok()?);
    Some(now.duration_since(at).unwrap_or_default())
}

fn trigger_time(slice: &EndpointSlice) -> Option<Time> {
    Time::parse(slice.metadata.annotations.get(ENDPOINTS_LAST_CHANGE_TRIGGER_TIME)?).ok()
}

/// Whether a slice is of a Service without an address: names of others do not depend on their endpoints.
fn is_of_headless(services: &Informer<Service>, slice: &EndpointSlice) -> bool {
    let service = service_of(slice).and_then(|(namespace, name)| services.find(&namespace, &name));
    service.is_some_and(|service| ServiceRecord::of(&service).is_headless())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(trigger_time: &str) -> Arc<EndpointSlice> {
        let mut slice = EndpointSlice::default();
        if !trigger_time.is_empty() {
            slice.metadata.annotations.insert(ENDPOINTS_LAST_CHANGE_TRIGGER_TIME.into(), trigger_time.into());
        }
        Arc::new(slice)
    }

    #[test]
    fn what_is_told_anew_is_measured_from_when_it_happened() {
        let added = |at: &str| Change::Added { object: slice(at), initial: false };
        let updated = |old: &str, new: &str| Change::Updated { old: slice(old), new: slice(new) };
        let (before, early, late) = ("1970-01-01T00:16:30Z", "1970-01-01T00:16:50.5Z", "1970-01-01T00:16:51Z");
        for (name, change, expected) in [
            ("added", added(early), Some(2500)),
            ("added without a time", added(""), None),
            ("of no form", added("yesterday"), None),
            ("from before the start", added(before), None),
            ("another time", updated(early, late), Some(1500)),
            ("the same time", updated(early, early), None),
            ("its first time", updated("", late), Some(1500)),
            ("gone", Change::Deleted { object: slice(late), stale: false }, None),
        ] {
            let now = UNIX_EPOCH + Duration::from_millis(1_012_500);
            let found = news(&change, Time::from_unix_seconds(1000), now);
            assert_eq!(found, expected.map(Duration::from_millis), "{name}");
        }
        let ahead = news(&added(late), Time::from_unix_seconds(1000), UNIX_EPOCH);
        assert_eq!(ahead, Some(Duration::ZERO), "a clock that is behind");
    }
}
