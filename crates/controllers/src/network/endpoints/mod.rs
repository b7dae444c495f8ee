//! Writes the Endpoints of services with a selector, for clients that do not read EndpointSlices yet.

pub(in crate::network) mod subsets;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api_machinery::meta::{DeleteOptions, ObjectMeta};
use api_types::core_v1::constants::{ENDPOINTS_OVER_CAPACITY, IS_HEADLESS_SERVICE};
use api_types::core_v1::{Endpoints, Pod, Service};
use client::{Change, EventType, Informer, ObjectKey};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use parking_lot::Mutex;

use super::backends::{is_headless, selects};
use super::pod_events::concerned;
use super::trigger_time::{TriggerTimes, annotate};
use crate::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "endpoints-controller",
    aliases: &["endpoint"],
    gates: &[],
    identity: "endpoint-controller",
    event_component: "endpoint-controller",
    disabled_by_default: false,
    build,
};

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";
/// Failures in a row after which a service waits for its next change.
const MAX_FAILURES: u32 = 15;
/// An annotation of leader elections of old, whose Endpoints belong to no service.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?;
    let (workers, batch) = (settings.endpoint_syncs, settings.endpoint_batch_period);
    let queue = build.queue("endpoint");
    let services = build.watch::<Service>().enqueue_self(&queue).informer();
    let lookup = services.clone();
    let of_pod =
        move |change: &Change<Pod>| concerned(&lookup, change).into_iter().map(|key| (key, batch)).collect::<Vec<_>>();
    let pods = build.watch::<Pod>().enqueue_after(&queue, of_pod).informer();
    // What is there at the start may belong to services that are gone; later, only deletions are made good.
    let touched = |change: &Change<Endpoints>| match change {
        Change::Added { object, initial: true } => {
            (!object.metadata.annotations.contains_key(LEADER)).then(|| change.key())
        }
        Change::Deleted { .. } => Some(change.key()),
        _ => None,
    };
    let endpoints = build.watch::<Endpoints>().enqueue_keys(&queue, touched).informer();
    let controller = EndpointsController {
        services,
        pods,
        endpoints,
        trigger_times: TriggerTimes::default(),
        outdated: Mutex::default(),
    };
    build.run(&queue, workers, Arc::new(controller)).drop_after(MAX_FAILURES);
    Ok(())
}

struct EndpointsController {
    services: Informer<Service>,
    pods: Informer<Pod>,
    endpoints: Informer<Endpoints>,
    trigger_times: TriggerTimes,
    /// The version that a write replaced: a cache that still has it is behind. Bounded by the services there are.
    outdated: Mutex<HashMap<ObjectKey, String>>,
}

/// The object that should be there; nothing where it is there already.
fn plan(service: &Service, pods: &[Arc<Pod>], present: Option<&Endpoints>) -> Option<Endpoints> {
    let wanted = subsets::of(service, pods);
    let total: usize = wanted.iter().map(|one| one.addresses.len() + one.not_ready_addresses.len()).sum();
    let labels = labels(service);
    if let Some(present) = present {
        let capacity =
            total <= subsets::CAPACITY && !present.metadata.annotations.contains_key(ENDPOINTS_OVER_CAPACITY);
        let same = present.subsets == wanted || subsets::repack(&present.subsets) == wanted;
        if same && capacity && present.metadata.labels == labels {
            return None;
        }
    }
    let mut endpoints = present.cloned().unwrap_or_else(|| Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        ..Endpoints::default()
    });
    endpoints.metadata.labels = labels;
    let annotations = &mut endpoints.metadata.annotations;
    if total > subsets::CAPACITY {
        annotations.insert(ENDPOINTS_OVER_CAPACITY.to_owned(), "truncated".to_owned());
    } else {
        annotations.remove(ENDPOINTS_OVER_CAPACITY);
    }
    endpoints.subsets = subsets::truncate(wanted);
    Some(endpoints)
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone();
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    if is_headless(service) {
        labels.insert(IS_HEADLESS_SERVICE.to_owned(), String::new());
    } else {
        labels.remove(IS_HEADLESS_SERVICE);
    }
    labels
}

#[async_trait::async_trait]
impl Controller for EndpointsController {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(service) = self.services.get(key) else { return self.remove(cx, key).await };
        if service.spec.type_ == "ExternalName" || service.spec.selector.is_empty() {
            return Ok(Next::Done);
        }
        let mut pods = self.pods.in_namespace(&key.namespace);
        pods.retain(|pod| selects(&service, &pod.metadata.labels));
        let present = self.endpoints.get(key);
        let version = present.as_ref().map(|present| present.metadata.resource_version.clone()).unwrap_or_default();
        if !version.is_empty() && self.outdated.lock().get(key) == Some(&version) {
            return Err(ReconcileError::failed(format!(
                "endpoints informer cache is out of date, resource version {version} already processed for endpoints {key}"
            )));
        }
        let trigger = self.trigger_times.of(key, &service, &pods);
        let Some(mut endpoints) = plan(&service, &pods, present.as_deref()) else { return Ok(Next::Done) };
        annotate(&mut endpoints.metadata, trigger);
        let api = cx.client.namespaced::<Endpoints>(&key.namespace);
        let (outcome, reason, what) = if version.is_empty() {
            let what = format!("Failed to create endpoint for service {key}");
            (api.create(&endpoints).await, "FailedToCreateEndpoint", what)
        } else {
            (api.update(&endpoints).await, "FailedToUpdateEndpoint", format!("Failed to update endpoint {key}"))
        };
        match outcome {
            Ok(written) => {
                if !version.is_empty() && written.metadata.resource_version != version {
                    self.outdated.lock().insert(key.clone(), version);
                }
                Ok(Next::Done)
            }
            Err(error) if error.is_namespace_terminating() => Ok(Next::Done),
            Err(error) => {
                cx.events.event(&endpoints, EventType::Warning, reason, format!("{what}: {error}"));
                Err(error.into())
            }
        }
    }
}

impl EndpointsController {
    async fn remove(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        self.trigger_times.forget(key);
        self.outdated.lock().remove(key);
        match cx.client.namespaced::<Endpoints>(&key.namespace).delete(&key.name, &DeleteOptions::default()).await {
            Err(error) if !error.is_not_found() => Err(error.into()),
            _ => Ok(Next::Done),
        }
    }
}
