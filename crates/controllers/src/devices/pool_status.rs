//! Answers, once each, requests for the state of pools of devices (gate `DRAResourcePoolStatus`), and clears old ones away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{Condition, DeleteOptions};
use api_machinery::time::Time;
use api_types::resource_v1::{ResourceClaim, ResourceSlice};
use api_types::resource_v1alpha3::{PoolStatus, ResourcePoolStatusRequest, ResourcePoolStatusRequestStatus};
use client::{Change, Informer, ObjectKey};
use component_base::Feature;
use component_base::metrics::{Counters, Desc, Histograms, Stability, exponential};
use component_base::shared_gates::POOL_STATUS;
use component_helpers::conditions;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

/// The gates that this controller asks.
pub(crate) const GATES: &[Feature] = &[POOL_STATUS];

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "resourcepoolstatusrequest-controller",
    aliases: &[],
    gates: GATES,
    identity: "resourcepoolstatusrequest-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

const PROCESSED: Desc = Desc::new(
    "resourcepoolstatusrequest_controller_requests_processed_total",
    "Requests that were answered.",
    Stability::Alpha,
)
.labels(&["driver_name"]);
const ERRORS: Desc = Desc::new(
    "resourcepoolstatusrequest_controller_request_processing_errors_total",
    "Failed tries to answer requests.",
    Stability::Alpha,
)
.labels(&["driver_name"]);
const DURATIONS: Desc = Desc::new(
    "resourcepoolstatusrequest_controller_request_processing_duration_seconds",
    "How long answering took.",
    Stability::Alpha,
)
.labels(&["driver_name"])
.buckets(&exponential::<15>(0.001, 2.0));
/// Failures after which nobody tries to answer a request any more.
const TRIES: u32 = 5;
const DEFAULT_LIMIT: i32 = 100;
/// The longest text about a pool.
const MAX_TEXT: usize = 256;
const CLEANING_PERIOD: Duration = Duration::from_secs(10 * 60);
/// How long requests stay that have an answer, and those that have none.
const ANSWERED: Duration = Duration::from_secs(3600);
const UNANSWERED: Duration = Duration::from_secs(24 * 3600);
/// Index of slices by driver.
const BY_DRIVER: &str = "slice-driver";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("resourcepoolstatusrequest");
    let waiting = |change: &Change<ResourcePoolStatusRequest>| {
        (!change.is_deleted() && change.object().status.is_none()).then(|| change.key())
    };
    let requests = build.watch::<ResourcePoolStatusRequest>().enqueue_keys(&queue, waiting).informer();
    let slices = build.watch::<ResourceSlice>().index(BY_DRIVER, |slice| vec![slice.spec.driver.clone()]).informer();
    let claims = build.watch::<ResourceClaim>().informer();
    let answering = Answering {
        requests: requests.clone(),
        slices,
        claims,
        processed: build.metrics().counters(&PROCESSED),
        errors: build.metrics().counters(&ERRORS),
        durations: build.metrics().histograms(&DURATIONS),
    };
    build.run(&queue, 1, Arc::new(answering)).drop_after(TRIES);
    build.every("resourcepoolstatusrequest_cleanup", CLEANING_PERIOD, Arc::new(Cleaning { requests }));
    Ok(())
}

struct Answering {
    requests: Informer<ResourcePoolStatusRequest>,
    slices: Informer<ResourceSlice>,
    claims: Informer<ResourceClaim>,
    processed: Counters,
    errors: Counters,
    durations: Histograms,
}

/// What is known of a pool: its slices of the newest generation.
struct Pool<'a> {
    generation: i64,
    slices: Vec<&'a ResourceSlice>,
}

/// The pools of slices, by name.
fn pools<'a>(slices: &'a [Arc<ResourceSlice>], wanted: Option<&str>) -> BTreeMap<&'a str, Pool<'a>> {
    let mut pools = BTreeMap::new();
    for slice in slices {
        let own = &slice.spec.pool;
        if wanted.is_some_and(|name| name != own.name) {
            continue;
        }
        let pool = pools.entry(own.name.as_str()).or_insert(Pool { generation: own.generation, slices: Vec::new() });
        if own.generation > pool.generation {
            *pool = Pool { generation: own.generation, slices: Vec::new() };
        }
        if own.generation == pool.generation {
            pool.slices.push(slice);
        }
    }
    pools
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The state of a pool of which so many devices are allocated.
fn status(driver: &str, name: &str, pool: &Pool<'_>, allocated: usize) -> PoolStatus {
    let declared = pool.slices.first().map_or(0, |slice| slice.spec.pool.resource_slice_count);
    let observed = count(pool.slices.len());
    let total = count(pool.slices.iter().map(|slice| slice.spec.devices.len()).sum());
    let allocated = count(allocated);
    let node = pool.slices.first().and_then(|slice| slice.spec.node_name.clone());
    let is_same = |slice: &&ResourceSlice| slice.spec.node_name == node;
    let incomplete = || {
        let generation = pool.generation;
        let text = format!(
            "pool {driver}/{name} is incomplete: observed {observed}/{declared} slices at generation {generation}"
        );
        text.chars().take(MAX_TEXT).collect()
    };
    PoolStatus {
        driver: driver.to_owned(),
        pool_name: name.to_owned(),
        generation: pool.generation,
        resource_slice_count: Some(observed),
        total_devices: Some(total),
        allocated_devices: Some(allocated),
        available_devices: Some((total - allocated).max(0)),
        unavailable_devices: Some(0),
        node_name: node.clone().filter(|_| pool.slices.iter().all(is_same)),
        validation_error: (i64::from(observed) < declared).then(incomplete),
    }
}

/// How many devices of each pool of a driver are allocated.
fn allocated<'a>(claims: &'a [Arc<ResourceClaim>], driver: &str) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    let results =
        claims.iter().filter_map(|claim| claim.status.allocation.as_ref()).flat_map(|all| &all.devices.results);
    for result in results.filter(|result| result.driver == driver) {
        *counts.entry(result.pool.as_str()).or_default() += 1;
    }
    counts
}

/// The answer to a request. None is given while a pool is not whole.
fn answer(
    request: &ResourcePoolStatusRequest,
    slices: &[Arc<ResourceSlice>],
    claims: &[Arc<ResourceClaim>],
    now: Time,
) -> Option<ResourcePoolStatusRequestStatus> {
    let driver = &request.spec.driver;
    let allocated = allocated(claims, driver);
    let pools = pools(slices, request.spec.pool_name.as_deref());
    let found = count(pools.len());
    let all = pools.iter().map(|(name, pool)| status(driver, name, pool, allocated.get(name).copied().unwrap_or(0)));
    let mut statuses: Vec<PoolStatus> = all.collect();
    if statuses.iter().any(|pool| pool.validation_error.is_some()) {
        return None;
    }
    statuses.truncate(usize::try_from(request.spec.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(0));
    let complete = Condition {
        type_: "Complete".to_owned(),
        status: "True".to_owned(),
        reason: "CalculationComplete".to_owned(),
        message: format!("Calculated status for {} pools", statuses.len()),
        last_transition_time: now,
        ..Condition::default()
    };
    Some(ResourcePoolStatusRequestStatus { pool_count: Some(found), pools: statuses, conditions: vec![complete] })
}

#[async_trait::async_trait]
impl Controller for Answering {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(request) = self.requests.get(key).filter(|request| request.status.is_none()) else {
            return Ok(Next::Done);
        };
        let (driver, started) = (request.spec.driver.as_str(), cx.clock.monotonic());
        let slices = self.slices.by_index(BY_DRIVER, driver);
        let status = answer(&request, &slices, &self.claims.list(), cx.clock.wall().into());
        let outcome = match status {
            None => Err(ReconcileError::failed("incomplete pools detected, requeueing")),
            Some(status) => {
                let answered = ResourcePoolStatusRequest { status: Some(status), ..(*request).clone() };
                let written = cx.client.all::<ResourcePoolStatusRequest>().update_status(&answered).await;
                written.map(drop).map_err(ReconcileError::from)
            }
        };
        let took = cx.clock.monotonic().saturating_duration_since(started);
        self.durations.with(&[driver]).observe(took.as_secs_f64());
        let counted = if outcome.is_ok() { &self.processed } else { &self.errors };
        counted.with(&[driver]).inc();
        outcome.map(|()| Next::Done)
    }
}

struct Cleaning {
    requests: Informer<ResourcePoolStatusRequest>,
}

/// Whether nobody needs a request any more.
fn is_old(request: &ResourcePoolStatusRequest, now: Time) -> bool {
    let kept = if request.status.is_some() { ANSWERED } else { UNANSWERED };
    let done = request.status.as_ref().and_then(|status| {
        let is_done = |type_| conditions::find(&status.conditions, type_).filter(|own| own.status == "True");
        is_done("Complete").or_else(|| is_done("Failed"))
    });
    let since = done.map_or(request.metadata.creation_timestamp, |done| done.last_transition_time);
    now.since(since) > kept
}

#[async_trait::async_trait]
impl Controller for Cleaning {
    async fn reconcile(&self, cx: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        let now = Time::from(cx.clock.wall());
        let requests = cx.client.all::<ResourcePoolStatusRequest>();
        for request in self.requests.list().iter().filter(|request| is_old(request, now)) {
            if let Err(error) = requests.delete_this(&request.metadata, DeleteOptions::default()).await {
                tracing::error!(%error, name = request.metadata.name, "Deleting a request for the state of pools failed");
            }
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::object::from_value;
    use serde_json::json;

    use super::*;
    use crate::workloads::fixtures::{Running, at, run_until_idle};

    const KNOWN: &[Descriptor] = &[DESCRIPTOR];
    const REQUESTS: &str = "resource.k8s.io/v1alpha3/resourcepoolstatusrequests";
    const SLICES: &str = "resource.k8s.io/v1/resourceslices";

    /// A slice of driver `d` with so many devices.
    fn slice(name: &str, pool: &str, generation: i64, of: i64, node: Option<&str>, devices: usize) -> ResourceSlice {
        let devices: Vec<_> = (0..devices).map(|index| json!({"name": format!("dev-{index}")})).collect();
        let pool = json!({"name": pool, "generation": generation, "resourceSliceCount": of});
        let mut spec = json!({"driver": "d", "pool": pool, "devices": devices});
        if let Some(node) = node {
            spec["nodeName"] = node.into();
        }
        from_value(&json!({"metadata": {"name": name}, "spec": spec})).expect("a slice")
    }

    fn request(pool: Option<&str>, limit: i32) -> ResourcePoolStatusRequest {
        let mut request = ResourcePoolStatusRequest::default();
        request.metadata.name = "r".into();
        request.spec.driver = "d".into();
        request.spec.pool_name = pool.map(str::to_owned);
        request.spec.limit = Some(limit);
        request
    }

    fn claim(pools: &[&str]) -> Arc<ResourceClaim> {
        let results: Vec<_> =
            pools.iter().map(|pool| json!({"request": "r", "driver": "d", "pool": pool, "device": "dev-0"})).collect();
        let status = json!({"allocation": {"devices": {"results": results}}});
        Arc::new(from_value(&json!({"metadata": {"name": "c"}, "status": status})).expect("a claim"))
    }

    #[test]
    fn pools_are_counted_in_their_newest_generation() {
        let slices: Vec<_> = [
            slice("a1", "a", 1, 1, Some("n"), 9),
            slice("a2", "a", 2, 2, Some("n"), 3),
            slice("a3", "a", 2, 2, Some("n"), 4),
            slice("b1", "b", 1, 2, Some("n"), 1),
            slice("b2", "b", 1, 2, Some("m"), 1),
        ]
        .into_iter()
        .map(Arc::new)
        .collect();
        let claims = [claim(&["a", "a"]), claim(&["b", "b", "b"])];
        let status = answer(&request(None, 100), &slices, &claims, at(1)).unwrap();
        let seen = |pool: &PoolStatus| {
            let counts =
                [pool.resource_slice_count, pool.total_devices, pool.allocated_devices, pool.available_devices];
            (pool.pool_name.clone(), counts.map(Option::unwrap_or_default), pool.node_name.clone())
        };
        let expected = [("a".to_owned(), [2, 7, 2, 5], Some("n".to_owned())), ("b".to_owned(), [2, 2, 3, 0], None)];
        assert_eq!(status.pools.iter().map(seen).collect::<Vec<_>>(), expected);
        assert_eq!(status.conditions[0].message, "Calculated status for 2 pools");
        let limited = answer(&request(None, 1), &slices, &claims, at(1)).unwrap();
        assert_eq!((limited.pool_count, limited.pools.len()), (Some(2), 1));
        let one = answer(&request(Some("b"), 100), &slices, &claims, at(1)).unwrap();
        assert_eq!(one.pools.iter().map(|pool| pool.pool_name.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!(answer(&request(None, 100), &slices[1..2], &claims, at(1)), None, "half of a pool");
    }

    #[test]
    fn requests_go_after_a_while() {
        const HOUR: i64 = 3600;
        let aged = |status: Option<(&str, i64)>| {
            let mut request = request(None, 1);
            request.metadata.creation_timestamp = at(HOUR);
            request.status = status.map(|(type_, since)| ResourcePoolStatusRequestStatus {
                conditions: vec![Condition {
                    type_: type_.into(),
                    status: "True".into(),
                    last_transition_time: at(since),
                    ..Condition::default()
                }],
                ..ResourcePoolStatusRequestStatus::default()
            });
            request
        };
        for (case, request, now, expected) in [
            ("unanswered", aged(None), 25 * HOUR, false),
            ("unanswered for long", aged(None), 25 * HOUR + 1, true),
            ("answered", aged(Some(("Complete", 10 * HOUR))), 11 * HOUR, false),
            ("answered a while ago", aged(Some(("Complete", 10 * HOUR))), 11 * HOUR + 1, true),
            ("failed a while ago", aged(Some(("Failed", 10 * HOUR))), 11 * HOUR + 1, true),
            ("something else", aged(Some(("Odd", 10 * HOUR))), 2 * HOUR + 1, true),
        ] {
            assert_eq!(is_old(&request, at(now)), expected, "{case}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_answered_once() {
        let running = Running::start_gated(KNOWN, GATES);
        running.put(SLICES, &slice("a", "a", 1, 1, None, 2));
        running.put(REQUESTS, &request(None, 100));
        run_until_idle().await;
        let answered: ResourcePoolStatusRequest = running.client.all().get("r").await.unwrap();
        assert_eq!(answered.status.unwrap().pools[0].total_devices, Some(2));
        running.put(SLICES, &slice("b", "b", 1, 1, None, 2));
        running.assert_steady().await;
    }
}
