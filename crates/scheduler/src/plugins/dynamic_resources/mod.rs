//! `DynamicResources`: a pod runs where the devices are that its claims have, or can get (KEP-4381).

mod binder;
mod claims;
mod conditions;
mod hints;
#[cfg(test)]
mod tests;
mod tracker;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::GoDuration;
use api_types::resource_v1::{AllocationResult, DeviceClass, ResourceClaim, ResourceSlice};
use async_trait::async_trait;
use base::{SharedClock, SharedRng, TaskGroup};
use component_base::Feature;
use component_helpers::node_affinity::selector_matches;
use component_helpers::resource_claims::is_reserved_for;
use dra::{AllocateError, Allocator, CandidateNode, Features, Inventory, Selectors};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::framework::{
    BuildCx, CycleCx, CycleState, Filter, Plugin, PluginError, PostFilter, PostFilterCx, PostFiltered, PreBind,
    PreEnqueue, PreFilter, PreFiltered, PreScore, PreScored, Reserve, Score, Status, StatusResult,
    normalize_by_maximum,
};
use crate::listers::Lister;
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;
use crate::writer::{EventSink, ObjectWriter};
use conditions::has_conditions;
use tracker::Tracker;

pub(super) const NAME: &str = "DynamicResources";
/// The feature itself: it cannot be switched off.
const ALLOCATION: Feature = Feature::named("DynamicResourceAllocation");
/// A look at one node has an end.
pub(crate) const FILTER_TIMEOUT: Feature = Feature::named("DRASchedulerFilterTimeout");
/// The gates whose two sides are here.
pub(crate) const GATES: &[Feature] = &[ALLOCATION, FILTER_TIMEOUT];

const NOT_AVAILABLE: &str = "resourceclaim not available on the node";
const NOT_ENOUGH: &str = "cannot allocate all claims";

/// The highest score of a request: that of its first alternative.
const FIRST_ALTERNATIVE: usize = 8;

struct DynamicResources {
    features: Features,
    claims: Arc<Tracker>,
    classes: Classes,
    slices: Lister<ResourceSlice>,
    selectors: Arc<Selectors>,
    objects: Arc<dyn ObjectWriter>,
    events: Arc<dyn EventSink>,
    tasks: TaskGroup,
    clock: SharedClock,
    rng: SharedRng,
    /// The longest look at one node.
    timeout: Option<Duration>,
    /// The longest wait for devices to become ready.
    binding_timeout: Duration,
}

/// Where classes are found.
struct Classes(Lister<DeviceClass>);

impl Inventory for Classes {
    fn class(&self, name: &str) -> Option<Arc<DeviceClass>> {
        self.0.find("", name)
    }
}

/// What is known of the claims of a pod.
#[derive(Clone, Default)]
struct PodClaims {
    /// In the order of the pod.
    claims: Vec<Arc<ResourceClaim>>,
    /// Finds devices for those that have none.
    allocator: Option<Arc<Allocator>>,
    found: Arc<Mutex<Found>>,
}

/// What the filter found out.
#[derive(Default)]
struct Found {
    /// What the claims without devices would get, by node.
    allocations: HashMap<Arc<str>, Vec<AllocationResult>>,
    /// The places of claims whose devices some node does not reach.
    unavailable: BTreeSet<usize>,
}

pub(super) fn build(cx: &BuildCx, args: &PluginArgs) -> Result<Plugin, PluginError> {
    let PluginArgs::DynamicResources(args) = args else { return Err(PluginError::NoArguments) };
    let features = Features::of(&cx.gates);
    let nanos = args.filter_timeout.and_then(|timeout| u64::try_from(timeout.nanos()).ok());
    let timeout = nanos.filter(|nanos| *nanos > 0 && cx.gates.enabled(FILTER_TIMEOUT)).map(Duration::from_nanos);
    let plugin = Arc::new(DynamicResources {
        features,
        claims: Tracker::of(cx.listers.of(), features.consumable_capacity),
        classes: Classes(cx.listers.of()),
        slices: cx.listers.of(),
        selectors: Arc::new(Selectors::new(features.consumable_capacity)),
        objects: Arc::clone(&cx.objects),
        events: Arc::clone(&cx.events),
        tasks: cx.tasks.clone(),
        clock: cx.clock.clone(),
        rng: cx.rng.clone(),
        timeout,
        binding_timeout: args.binding_timeout.map(GoDuration::to_std).unwrap_or_default(),
    });
    let events = hints::registrations(&plugin.claims);
    let points = Plugin::new(NAME).pre_enqueue(plugin.clone()).pre_filter(plugin.clone()).filter(plugin.clone());
    let points = points.post_filter(plugin.clone()).pre_score(plugin.clone()).score(plugin.clone());
    Ok(points.reserve(plugin.clone()).pre_bind(plugin).wakes_on(events))
}

impl PodClaims {
    /// Whether there is nothing to do for the pod.
    fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }
}

impl PreEnqueue for DynamicResources {
    fn pre_enqueue(&self, pod: &PodInfo) -> StatusResult {
        self.claims.of_pod(&pod.pod).map(|_| ()).map_err(|error| Status::unresolvable(error.to_string()))
    }
}

impl DynamicResources {
    /// Sees that a claim can be allocated at all.
    fn check(&self, claim: &ResourceClaim) -> Result<(), Status> {
        let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
        if self.claims.is_in_flight(&claim.metadata.uid) {
            let text = format!("resource claim {namespace}/{name} is in the process of being allocated");
            return Err(Status::unresolvable(text));
        }
        for request in &claim.spec.devices.requests {
            let mut classes = Vec::new();
            if let Some(exact) = &request.exactly {
                classes.push((request.name.clone(), &exact.device_class_name));
            } else if request.first_available.is_empty() {
                let text = format!("resource claim {name}, request {}: unknown request type", request.name);
                return Err(Status::unresolvable(text));
            } else if !self.features.prioritized_list {
                let text = format!(
                    "resource claim {name}, request {}: has subrequests, but the DRAPrioritizedList feature is disabled",
                    request.name
                );
                return Err(Status::unresolvable(text));
            } else {
                let parts = request.first_available.iter();
                classes.extend(parts.map(|own| (format!("{}/{}", request.name, own.name), &own.device_class_name)));
            }
            for (part, class) in classes {
                if self.classes.class(class).is_none() {
                    let text = format!("request {part}: device class {class} does not exist");
                    return Err(Status::unresolvable(text));
                }
            }
        }
        Ok(())
    }

    /// What the claims without devices would get on a node.
    fn allocate(&self, allocator: &Allocator, node: NodeView<'_>) -> Result<Vec<AllocationResult>, Status> {
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let place = CandidateNode { name: &node.info.name, labels: &node.node.metadata.labels };
        match allocator.allocate(place, &self.classes, &self.rng, &is_over) {
            Ok(Some(results)) => Ok(results),
            Ok(None) => Err(Status::unresolvable(NOT_ENOUGH)),
            Err(AllocateError::Timeout) => {
                Err(Status::error(format!("node {}: {}", &node.info.name, AllocateError::Timeout)))
            }
            Err(AllocateError::InvalidPools) => Err(Status::unresolvable(AllocateError::InvalidPools.to_string())),
            Err(error) => Err(Status::error(error.to_string())),
        }
    }
}

impl PreFilter for DynamicResources {
    fn pre_filter(&self, _: CycleCx<'_>, state: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        // That there is a state tells the search for a way out that the pod came this far.
        let mut own = PodClaims::default();
        if pod.pod.spec.resource_claims.is_empty() {
            state.put(own);
            return Ok(PreFiltered::Skip);
        }
        own.claims = self.claims.of_pod(&pod.pod).map_err(|error| Status::unresolvable(error.to_string()))?;
        let unallocated: Vec<_> =
            own.claims.iter().filter(|claim| claim.status.allocation.is_none()).cloned().collect();
        unallocated.iter().try_for_each(|claim| self.check(claim))?;
        if !unallocated.is_empty() {
            let (allocated, selectors) = (self.claims.allocated(), Arc::clone(&self.selectors));
            let allocator = Allocator::new(self.features, unallocated, &self.slices.list(), allocated, selectors);
            own.allocator = Some(Arc::new(allocator));
        }
        let filtered = if own.is_empty() { PreFiltered::Skip } else { PreFiltered::All };
        state.put(own);
        Ok(filtered)
    }
}

impl Filter for DynamicResources {
    fn filter(&self, state: &CycleState, _: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let Some(own) = state.get::<PodClaims>() else { return Ok(()) };
        let is_reached = |allocation: &AllocationResult| {
            let selector = allocation.node_selector.as_ref();
            selector.is_none_or(|selector| selector_matches(selector, &node.node.metadata.labels, &node.info.name))
        };
        let is_unavailable = |claim: &ResourceClaim| {
            let allocation = claim.status.allocation.as_ref();
            allocation.is_some_and(|allocation| !is_reached(allocation)) || self.is_lost(claim)
        };
        let claims = own.claims.iter().enumerate();
        let unavailable: BTreeSet<usize> =
            claims.filter(|(_, claim)| is_unavailable(claim)).map(|(place, _)| place).collect();
        let found = own.allocator.as_ref().map(|allocator| self.allocate(allocator, node)).transpose()?;
        let mut notes = own.found.lock();
        if !unavailable.is_empty() {
            notes.unavailable.extend(unavailable);
            return Err(Status::unresolvable(NOT_AVAILABLE));
        }
        if let Some(found) = found {
            notes.allocations.insert(Arc::clone(&node.info.name), found);
        }
        Ok(())
    }
}

#[async_trait]
impl PostFilter for DynamicResources {
    async fn post_filter(&self, _: PostFilterCx<'_>, state: &CycleState, pod: &PodInfo) -> PostFiltered {
        let Some(own) = state.get::<PodClaims>() else { return told(Status::error("not found")) };
        if own.is_empty() {
            return told(Status::unschedulable("no new claims to deallocate"));
        }
        let unavailable = own.found.lock().unavailable.clone();
        for place in unavailable {
            let Some(claim) = own.claims.get(place) else { continue };
            let reserved = &claim.status.reserved_for;
            let is_free = reserved.len() <= 1 && reserved.iter().all(|consumer| consumer.uid == pod.uid());
            if is_free {
                return told(match self.deallocate(claim).await {
                    Ok(()) => Status::unschedulable("deallocation of ResourceClaim completed"),
                    Err(error) => Status::error(error.to_string()),
                });
            }
        }
        told(Status::unschedulable("still not schedulable"))
    }
}

fn told(status: Status) -> PostFiltered {
    PostFiltered { status: Some(status), ..PostFiltered::default() }
}

impl PreScore for DynamicResources {
    fn pre_score(
        &self,
        _: CycleCx<'_>,
        state: &mut CycleState,
        _: &PodInfo,
        _: &[NodeView<'_>],
    ) -> Result<PreScored, Status> {
        let chooses = |claim: &ResourceClaim| claim.spec.devices.requests.iter().any(|own| own.exactly.is_none());
        let allocator = state.get::<PodClaims>().and_then(|own| own.allocator.as_ref());
        let has_choice = allocator.is_some_and(|own| own.claims().iter().any(|claim| chooses(claim)));
        Ok(if self.features.prioritized_list && has_choice { PreScored::Ready } else { PreScored::Skip })
    }
}

/// How good the alternatives are that a claim would get.
fn score_of(claim: &ResourceClaim, allocation: &AllocationResult) -> usize {
    let of_request = |request: &api_types::resource_v1::DeviceRequest| {
        let names = |part: &str| format!("{}/{part}", request.name);
        let is_there = |name: &str| allocation.devices.results.iter().any(|result| result.request == name);
        let place = request.first_available.iter().position(|part| is_there(&names(&part.name)));
        place.map_or(0, |place| FIRST_ALTERNATIVE.saturating_sub(place))
    };
    claim.spec.devices.requests.iter().map(of_request).sum()
}

impl Score for DynamicResources {
    fn score(&self, state: &CycleState, _: &PodInfo, node: NodeView<'_>) -> Result<i64, Status> {
        let Some(own) = state.get::<PodClaims>() else { return Ok(0) };
        let Some(allocator) = &own.allocator else { return Ok(0) };
        let found = own.found.lock();
        let Some(results) = found.allocations.get(&*node.info.name) else { return Ok(0) };
        let scores = allocator.claims().iter().zip(results).map(|(claim, result)| score_of(claim, result));
        Ok(i64::try_from(scores.sum::<usize>()).unwrap_or(i64::MAX))
    }

    fn normalize(&self, _: &CycleState, _: &PodInfo, _: &[NodeView<'_>], scores: &mut [i64]) {
        normalize_by_maximum(scores);
    }
}

/// What is to be written once the pod's node is chosen.
#[derive(Clone)]
struct Reserved {
    /// The pod's claims; those that get devices as they are to be.
    claims: Vec<(Arc<ResourceClaim>, Option<AllocationResult>)>,
}

impl Reserve for DynamicResources {
    fn reserve(&self, state: &mut CycleState, _: &PodInfo, node: &str) -> StatusResult {
        let Some(own) = state.get_mut::<PodClaims>().filter(|own| !own.is_empty()) else { return Ok(()) };
        // The allocator holds what was allocated when the cycle began, which others may go on changing now.
        let allocator = own.allocator.take();
        let found = own.found.lock().allocations.remove(node);
        let found = match (allocator, found) {
            (None, _) => Vec::new(),
            (Some(_), Some(found)) => found,
            (Some(_), None) => {
                return Err(Status::error(format!("claim allocations not found for node {node}")));
            }
        };
        let mut found = found.into_iter();
        let with = |claim: &Arc<ResourceClaim>| {
            let is_new = claim.status.allocation.is_none();
            (Arc::clone(claim), if is_new { found.next() } else { None })
        };
        let claims: Vec<_> = own.claims.iter().map(with).collect();
        for (claim, allocation) in &claims {
            if let Some(allocation) = allocation {
                self.claims.put_in_flight(claim, allocation.clone());
            }
        }
        state.put(Reserved { claims });
        Ok(())
    }

    fn unreserve(&self, state: &CycleState, pod: &PodInfo, _: &str) {
        let Some(reserved) = state.get::<Reserved>() else { return };
        for (claim, allocation) in &reserved.claims {
            if allocation.is_some() {
                self.claims.land(claim);
            }
            self.release(claim, pod);
        }
    }
}

#[async_trait]
impl PreBind for DynamicResources {
    fn has_work(&self, state: &CycleState, pod: &PodInfo, _: &str) -> Result<bool, Status> {
        let has_work = |claim: &ResourceClaim| !is_reserved_for(claim, pod.uid()) || has_conditions(claim);
        let reserved = state.get::<Reserved>();
        Ok(reserved.is_some_and(|own| own.claims.iter().any(|(claim, _)| has_work(claim))))
    }

    async fn pre_bind(&self, state: &CycleState, pod: &PodInfo, node: &str) -> StatusResult {
        let Some(reserved) = state.get::<Reserved>() else { return Ok(()) };
        for (claim, allocation) in &reserved.claims {
            if !is_reserved_for(claim, pod.uid()) {
                let bound = self.bind(claim, allocation.as_ref(), &pod.pod).await;
                bound.map_err(|error| Status::error(error.to_string()))?;
            }
        }
        let claims: Vec<_> = reserved.claims.iter().map(|(claim, _)| Arc::clone(claim)).collect();
        let ready = self.wait_ready(&claims, &pod.pod, node).await;
        ready.map_err(|error| Status::error(error.to_string()))
    }
}
