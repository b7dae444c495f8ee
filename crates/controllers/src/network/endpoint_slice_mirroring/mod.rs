//! Mirrors Endpoints that people made for services without a selector into EndpointSlices, which is what proxies read.

mod metrics;
mod plan;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::DeleteOptions;
use api_types::core_v1::{Endpoints, Service};
use api_types::discovery_v1::EndpointSlice;
use api_types::discovery_v1::constants::{LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use client::{Change, ClientError, EventType, Informer, ObjectKey, RateLimit};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use super::endpoint_slice::tracker::Tracker;
use crate::Settings;
use metrics::{Effect, MirrorMetrics};
use plan::Writes;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "endpointslice-mirroring-controller",
    aliases: &["endpointslicemirroring"],
    gates: &[],
    identity: "endpointslicemirroring-controller",
    event_component: "endpoint-slice-mirroring-controller",
    disabled_by_default: false,
    build,
};

/// The value of the managed-by label on our slices.
const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Endpoints with this are locks of leader election, not of services.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Failures in a row after which Endpoints wait for their next change.
const MAX_FAILURES: u32 = 15;
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(100);
/// Index of our slices by the Endpoints they mirror, `{namespace}/{name}`.
const BY_ENDPOINTS: &str = "mirrored-endpoints";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?;
    let (workers, batch, max) =
        (settings.mirroring_syncs, settings.mirroring_batch_period, settings.mirroring_max_per_subset);
    let limit = RateLimit { base: FIRST_RETRY, longest: LONGEST_RETRY, ..RateLimit::default() };
    let queue = build.queue_with("endpoint_slice_mirroring", limit);
    let tracker = Arc::new(Tracker::default());
    let mirrored = |change: &Change<Endpoints>| {
        let concerned = is_mirrorable(change.object()) || change.old().is_some_and(|old| is_mirrorable(old));
        concerned.then(|| change.key())
    };
    let endpoints = build.watch::<Endpoints>().enqueue_keys(&queue, mirrored).informer();
    let chosen = |change: &Change<Service>| {
        let own = |service: &Service| service.spec.selector.is_empty();
        let now = own(change.object());
        let concerned = change.old().map_or(now, |old| own(old) != now);
        concerned.then(|| change.key())
    };
    let services = build.watch::<Service>().enqueue_keys(&queue, chosen).informer();
    let watcher = Arc::clone(&tracker);
    let touched = move |change: &Change<EndpointSlice>| {
        watcher.touched(change, mirrored_by).into_iter().map(|key| (key, batch)).collect::<Vec<_>>()
    };
    let by_endpoints = |slice: &EndpointSlice| mirrored_by(slice).map(|key| key.to_string()).into_iter().collect();
    let slices =
        build.watch::<EndpointSlice>().index(BY_ENDPOINTS, by_endpoints).enqueue_after(&queue, touched).informer();
    let metrics = MirrorMetrics::new(build.metrics());
    let controller = Mirroring { endpoints, services, slices, tracker, max, metrics };
    build.run(&queue, workers, Arc::new(controller)).drop_after(MAX_FAILURES);
    Ok(())
}

/// Whether Endpoints may be mirrored, by what they say of themselves.
fn is_mirrorable(endpoints: &Endpoints) -> bool {
    let meta = &endpoints.metadata;
    meta.labels.get(SKIP_MIRROR).is_none_or(|value| value != "true") && !meta.annotations.contains_key(LEADER)
}

/// The Endpoints that a slice of ours mirrors.
fn mirrored_by(slice: &EndpointSlice) -> Option<ObjectKey> {
    let labels = &slice.metadata.labels;
    let ours = labels.get(LABEL_MANAGED_BY).is_some_and(|manager| manager == MANAGER);
    let name = labels.get(LABEL_SERVICE_NAME).filter(|_| ours)?;
    Some(ObjectKey::new(slice.metadata.namespace.clone(), name.clone()))
}

struct Mirroring {
    endpoints: Informer<Endpoints>,
    services: Informer<Service>,
    slices: Informer<EndpointSlice>,
    tracker: Arc<Tracker>,
    max: usize,
    metrics: MirrorMetrics,
}

#[async_trait::async_trait]
impl Controller for Mirroring {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let started = cx.clock.monotonic();
        let outcome = self.sync(cx, key).await;
        self.metrics.ended(cx.clock.monotonic().saturating_duration_since(started));
        outcome
    }
}

impl Mirroring {
    async fn sync(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let version = self.slices.resource_version();
        let mut slices = self.slices.by_index(BY_ENDPOINTS, &key.to_string());
        let service = self.services.get(key).filter(|service| service.spec.selector.is_empty());
        let endpoints = self.endpoints.get(key).filter(|endpoints| is_mirrorable(endpoints));
        let (Some(endpoints), Some(_)) = (endpoints, service) else {
            self.tracker.forget(key);
            self.metrics.forget(key);
            return self.delete(cx, key, slices).await;
        };
        if self.tracker.is_stale(key, &slices, &version) {
            return Err(ReconcileError::failed("EndpointSlice informer cache is out of date"));
        }
        slices.retain(|slice| slice.metadata.deletion_timestamp.is_none());
        let plan = plan::plan(&endpoints, &slices, self.max);
        for (reason, message) in plan.notices(self.max) {
            cx.events.event(&*endpoints, EventType::Warning, reason, message);
        }
        let effect = Effect::of(&slices, &plan, self.max);
        let next = self.write(cx, key, &endpoints, plan.writes).await?;
        self.metrics.carried_out(key, &effect);
        Ok(next)
    }

    async fn write(
        &self,
        cx: &Cx,
        key: &ObjectKey,
        endpoints: &Endpoints,
        writes: Writes,
    ) -> Result<Next, ReconcileError> {
        let slices = cx.client.namespaced::<EndpointSlice>(&key.namespace);
        let failed = |verb: &str, error: &ClientError| {
            ReconcileError::failed(format!("failed to {verb} EndpointSlice for Endpoints {key}: {error}"))
        };
        if endpoints.metadata.deletion_timestamp.is_none() {
            for slice in writes.create {
                match slices.create(&slice).await {
                    Ok(written) => self.tracker.written(key, &written),
                    Err(error) if error.is_namespace_terminating() => return Ok(Next::Done),
                    Err(error) => return Err(failed("create", &error)),
                }
            }
        }
        for slice in writes.update {
            let name = &slice.metadata.name;
            let written = slices.update(&slice).await.map_err(|error| failed(&format!("update {name}"), &error))?;
            self.tracker.written(key, &written);
        }
        self.delete(cx, key, writes.delete).await
    }

    async fn delete(&self, cx: &Cx, key: &ObjectKey, slices: Vec<Arc<EndpointSlice>>) -> Result<Next, ReconcileError> {
        let api = cx.client.namespaced::<EndpointSlice>(&key.namespace);
        let (all, mut errors) = (slices.len(), Vec::new());
        for slice in slices {
            match api.delete_this(&slice.metadata, DeleteOptions::default()).await {
                Err(error) => errors.push(error),
                Ok(_) => self.tracker.deleted(key, &slice),
            }
        }
        match errors.first() {
            None => Ok(Next::Done),
            Some(first) => Err(ReconcileError::failed(format!(
                "error(s) deleting {}/{all} EndpointSlices for {key} Endpoints, including: {first}",
                errors.len()
            ))),
        }
    }
}
