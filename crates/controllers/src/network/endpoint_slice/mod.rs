//! Writes the EndpointSlices of services with a selector.

mod balance;
pub(in crate::network) mod desired;
mod hints;
pub(in crate::network) mod layout;
mod metrics;
mod pack;
mod plan;
#[cfg(test)]
mod tests;
mod topology;
pub(in crate::network) mod tracker;
mod write;
mod zones;

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Node, Pod, Service};
use api_types::discovery_v1::EndpointSlice;
use api_types::discovery_v1::constants::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use client::{Change, EventType, Informer, ObjectKey, RateLimit};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use super::backends::selects;
use super::pod_events::concerned;
use super::trigger_time::TriggerTimes;
use crate::Settings;
use metrics::{Effect, SliceMetrics, SyncResult};
use topology::{Topology, TopologyWorker};
use tracker::Tracker;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "endpointslice-controller",
    aliases: &["endpointslice"],
    gates: &[],
    identity: "endpointslice-controller",
    event_component: "endpoint-slice-controller",
    disabled_by_default: false,
    build,
};

/// The value of the managed-by label on our slices.
const MANAGER: &str = "endpointslice-controller.k8s.io";
/// Failures in a row after which a service waits for its next change.
const MAX_FAILURES: u32 = 15;
/// Foreign changes of slices are looked at after this time, so that several are handled at once.
const SLICE_DELAY: Duration = Duration::from_secs(1);
/// Index of our slices by the service they are for, `{namespace}/{name}`.
const BY_SERVICE: &str = "endpoint-slice-service";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?;
    let (workers, batch, max) =
        (settings.endpoint_slice_syncs, settings.endpoint_slice_batch_period, settings.max_endpoints_per_slice);
    let limit = RateLimit { base: Duration::from_secs(1), ..RateLimit::default() };
    let queue = build.queue_with("endpoint_slice", limit);
    let tracker = Arc::new(Tracker::default());
    let services = build.watch::<Service>().enqueue_self(&queue).informer();
    let lookup = services.clone();
    let of_pod =
        move |change: &Change<Pod>| concerned(&lookup, change).into_iter().map(|key| (key, batch)).collect::<Vec<_>>();
    let pods = build.watch::<Pod>().enqueue_after(&queue, of_pod).informer();
    let delay = batch.max(SLICE_DELAY);
    let watcher = Arc::clone(&tracker);
    let of_slice = move |change: &Change<EndpointSlice>| {
        watcher.touched(change, service_of).into_iter().map(|key| (key, delay)).collect::<Vec<_>>()
    };
    let by_service = |slice: &EndpointSlice| service_of(slice).map(|key| key.to_string()).into_iter().collect();
    let slices =
        build.watch::<EndpointSlice>().index(BY_SERVICE, by_service).enqueue_after(&queue, of_slice).informer();
    let topology_queue = build.queue("endpoint_slice_topology");
    let nodes = build.watch::<Node>().enqueue_keys(&topology_queue, topology::concerned).informer();
    let topology = Arc::new(Topology::default());
    let watching = TopologyWorker { topology: Arc::clone(&topology), nodes: nodes.clone(), queue: queue.clone() };
    let (trigger_times, metrics) = (TriggerTimes::default(), SliceMetrics::new(build.metrics()));
    let controller = EndpointSlices { services, pods, slices, nodes, tracker, topology, trigger_times, max, metrics };
    build.run(&queue, workers, Arc::new(controller)).drop_after(MAX_FAILURES);
    build.run(&topology_queue, 1, Arc::new(watching));
    Ok(())
}

/// The service of a slice that is ours.
fn service_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let labels = &slice.metadata.labels;
    let ours = labels.get(LABEL_MANAGED_BY).is_some_and(|manager| manager == MANAGER);
    let name = labels.get(LABEL_SERVICE_NAME).filter(|_| ours)?;
    Some(ObjectKey::new(slice.metadata.namespace.clone(), name.clone()))
}

struct EndpointSlices {
    services: Informer<Service>,
    pods: Informer<Pod>,
    slices: Informer<EndpointSlice>,
    nodes: Informer<Node>,
    tracker: Arc<Tracker>,
    topology: Arc<Topology>,
    trigger_times: TriggerTimes,
    max: usize,
    metrics: SliceMetrics,
}

#[async_trait::async_trait]
impl Controller for EndpointSlices {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let (result, outcome) = match self.sync(cx, key).await {
            Ok(()) => (SyncResult::Success, Ok(Next::Done)),
            Err(Trouble::Stale) => {
                (SyncResult::Stale, Err(ReconcileError::failed("EndpointSlice informer cache is out of date")))
            }
            Err(Trouble::Failed(error)) => (SyncResult::Error, Err(error)),
        };
        self.metrics.ended(result);
        outcome
    }
}

/// Why a service could not be brought in order.
enum Trouble {
    /// The cache has not seen yet what was written.
    Stale,
    Failed(ReconcileError),
}

impl EndpointSlices {
    async fn sync(&self, cx: &Cx, key: &ObjectKey) -> Result<(), Trouble> {
        let Some(service) = self.services.get(key) else {
            self.trigger_times.forget(key);
            self.tracker.forget(key);
            self.topology.forget(key);
            self.metrics.forget(key);
            return Ok(());
        };
        if service.spec.type_ == "ExternalName" || service.spec.selector.is_empty() {
            return Ok(());
        }
        let mut pods = self.pods.in_namespace(&key.namespace);
        pods.retain(|pod| selects(&service, &pod.metadata.labels));
        let version = self.slices.resource_version();
        let mut slices = self.slices.by_index(BY_SERVICE, &key.to_string());
        if self.tracker.is_stale(key, &slices, &version) {
            return Err(Trouble::Stale);
        }
        slices.retain(|slice| slice.metadata.deletion_timestamp.is_none());
        self.bring_in_order(cx, &service, &pods, &slices).await.map_err(|error| {
            let message = format!("Error updating Endpoint Slices for Service {key}: {error}");
            cx.events.event(&*service, EventType::Warning, "FailedToUpdateEndpointSlices", message);
            Trouble::Failed(error)
        })
    }

    /// Decides and writes. Events about hints come after the writes, whatever became of these.
    async fn bring_in_order(
        &self,
        cx: &Cx,
        service: &Service,
        pods: &[Arc<Pod>],
        slices: &[Arc<EndpointSlice>],
    ) -> Result<(), ReconcileError> {
        let key = ObjectKey::of(&service.metadata);
        let trigger = self.trigger_times.of(&key, service, pods);
        let node = |name: &str| self.nodes.find("", name);
        let shares = self.topology.shares(|| self.nodes.list());
        let mut plan = plan::plan(service, pods, slices, node, &shares, self.max);
        write::reuse_names(service, &mut plan.writes);
        let families = plan.balances.iter().map(|(family, _)| family.name());
        let effect = Effect::of(slices, &plan.writes, families, self.max);
        let hint_events = self.topology.update_hints(&key, plan.balances);
        let outcome = write::apply(cx, &self.tracker, service, plan.writes, trigger).await;
        if outcome.is_ok() {
            self.metrics.carried_out(&key, service, &effect);
        }
        for (type_, reason, message) in hint_events {
            cx.events.event(service, type_, reason, message);
        }
        let mut errors: Vec<ReconcileError> = plan.problems.into_iter().map(ReconcileError::failed).collect();
        errors.extend(outcome.err());
        ReconcileError::join(errors)
    }
}
