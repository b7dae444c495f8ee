//! `DynamicResources`: a pod runs where the devices are that its claims have, or can get (KEP-4381), or its group's (KEP-5729).

mod binder;
mod claims;
mod conditions;
mod extended;
#[cfg(test)]
mod extended_tests;
#[cfg(test)]
mod group_tests;
mod groups;
mod hints;
mod node_allocatable;
#[cfg(test)]
mod node_allocatable_tests;
mod offered;
#[cfg(test)]
mod tests;
mod tracker;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::GoDuration;
use api_types::core_v1::NodeAllocatableResourceClaimStatus;
use api_types::resource_v1::{AllocationResult, DeviceClass, ResourceClaim};
use async_trait::async_trait;
use base::{CancellationToken, SharedClock, SharedRng, TaskGroup};
use component_base::Feature;
use component_base::shared_gates::{DEVICE_TAINT_RULES, DEVICES, GROUP_CLAIMS, NODE_ALLOCATABLE};
use component_helpers::node_affinity::selector_matches;
use component_helpers::resource_claims::is_reserved_for;
use dra::{AllocateError, Allocator, CandidateNode, Features, Inventory, Selectors, Solution};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::extended_resources::{EXTENDED_RESOURCE, ExtendedResources};
use crate::framework::{
    BuildCx, CycleCx, CycleState, Filter, Plugin, PluginError, PostFilter, PostFilterCx, PostFiltered, PreBind,
    PreEnqueue, PreFilter, PreFiltered, PreScore, PreScored, Reserve, Score, Status, StatusResult,
    normalize_by_maximum,
};
use crate::listers::Lister;
use crate::metrics::SchedulerMetrics;
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;
use crate::writer::{ClusterWriter, EventSink, ObjectWriter};
use claims::Own;
use conditions::has_conditions;
use extended::{Extended, SpecialClaim};
use groups::Groups;
pub(crate) use node_allocatable::claimed_on;
use node_allocatable::{TakenBack, Told};
pub(super) use offered::Offered;
pub(super) use tracker::Tracker;

pub(super) const NAME: &str = "DynamicResources";
/// A look at one node has an end.
pub(crate) const FILTER_TIMEOUT: Feature = Feature::named("DRASchedulerFilterTimeout");
/// The gates whose two sides are here, and that of allocation itself, which cannot be switched off.
pub(crate) const GATES: &[Feature] =
    &[DEVICES, DEVICE_TAINT_RULES, EXTENDED_RESOURCE, FILTER_TIMEOUT, GROUP_CLAIMS, NODE_ALLOCATABLE];

const NOT_AVAILABLE: &str = "resourceclaim not available on the node";
const NOT_ENOUGH: &str = "cannot allocate all claims";

/// The highest score of a request: that of its first alternative.
const FIRST_ALTERNATIVE: usize = 8;

struct DynamicResources {
    features: Features,
    claims: Arc<Tracker>,
    groups: Arc<Groups>,
    classes: Classes,
    extended: ExtendedResources,
    offered: Arc<Offered>,
    selectors: Arc<Selectors>,
    objects: Arc<dyn ObjectWriter>,
    writer: Arc<dyn ClusterWriter>,
    events: Arc<dyn EventSink>,
    metrics: Arc<SchedulerMetrics>,
    tasks: TaskGroup,
    clock: SharedClock,
    rng: SharedRng,
    /// The longest look at one node.
    timeout: Option<Duration>,
    /// The longest wait for devices to become ready.
    binding_timeout: Duration,
    /// Devices that are made of what nodes have anyway count with it (KEP-5517).
    counts_node_allocatable: bool,
    taken_back: TakenBack,
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
    claims: Vec<Own>,
    /// What it asks for as extended resources.
    extended: Option<Arc<Extended>>,
    /// Finds devices for those that have none.
    allocator: Option<Arc<Allocator>>,
    found: Arc<Mutex<Found>>,
}

/// What the filter found out.
#[derive(Default)]
struct Found {
    /// What the pod would get, by node.
    allocations: HashMap<Arc<str>, OnNode>,
    /// The places of claims whose devices some node does not reach.
    unavailable: BTreeSet<usize>,
    /// What its claims would give the pod of that which nodes have anyway, by node; only where it is anything.
    claimed: HashMap<Arc<str>, Vec<NodeAllocatableResourceClaimStatus>>,
}

/// What a pod would get on a node.
struct OnNode {
    found: Solution,
    /// What it asks for as extended resources there.
    special: Option<Arc<SpecialClaim>>,
}

pub(super) fn build(cx: &BuildCx, args: &PluginArgs) -> Result<Plugin, PluginError> {
    let PluginArgs::DynamicResources(args) = args else { return Err(PluginError::NoArguments) };
    let features = Features::of(&cx.gates);
    let nanos = args.filter_timeout.and_then(|timeout| u64::try_from(timeout.nanos()).ok());
    let timeout = nanos.filter(|nanos| *nanos > 0 && cx.gates.enabled(FILTER_TIMEOUT)).map(Duration::from_nanos);
    let plugin = Arc::new(DynamicResources {
        features,
        claims: Tracker::of(cx.listers.of(), features.consumable_capacity),
        groups: Groups::of(cx),
        classes: Classes(cx.listers.of()),
        extended: ExtendedResources::of(cx),
        offered: Offered::of(&cx.listers, &cx.gates),
        selectors: Arc::new(Selectors::new(features.consumable_capacity)),
        objects: Arc::clone(&cx.objects),
        writer: Arc::clone(&cx.writer),
        events: Arc::clone(&cx.events),
        metrics: Arc::clone(&cx.metrics),
        tasks: cx.tasks.clone(),
        clock: cx.clock.clone(),
        rng: cx.rng.clone(),
        timeout,
        binding_timeout: args.binding_timeout.map(GoDuration::to_std).unwrap_or_default(),
        counts_node_allocatable: cx.gates.enabled(NODE_ALLOCATABLE),
        taken_back: TakenBack::default(),
    });
    let mut events = hints::registrations(&plugin.claims, &plugin.groups, cx.gates.enabled(DEVICE_TAINT_RULES));
    if plugin.counts_node_allocatable {
        events.extend(hints::of_room());
    }
    let points = Plugin::new(NAME).pre_enqueue(plugin.clone()).pre_filter(plugin.clone()).filter(plugin.clone());
    let points = points.post_filter(plugin.clone()).pre_score(plugin.clone()).score(plugin.clone());
    let extended = plugin.extended.clone();
    Ok(points.reserve(plugin.clone()).pre_bind(plugin).wakes_on(events).signed_by(move |pod| {
        let by_devices = pod.request.scalars.iter().any(|(name, _)| extended.class_of(name).is_some());
        (pod.pod.spec.resource_claims.is_empty() && !by_devices).then(String::new)
    }))
}

impl PodClaims {
    /// Whether there is nothing to do for the pod.
    fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.extended.is_none()
    }
}

impl PreEnqueue for DynamicResources {
    fn pre_enqueue(&self, pod: &PodInfo) -> StatusResult {
        self.claims_of(pod).map(drop)
    }
}

impl DynamicResources {
    fn claims_of(&self, pod: &PodInfo) -> Result<Vec<Own>, Status> {
        self.claims.of_pod(&pod.pod, &self.groups).map_err(|error| Status::unresolvable(error.to_string()))
    }

    /// Sees that a claim can be allocated at all. It may be about to get something already: that is for all pods of a group.
    fn check(&self, own: &mut Own, pod: &PodInfo) -> Result<(), Status> {
        let Some((allocation, group)) = self.claims.in_flight(&own.claim.metadata.uid) else {
            return self.check_requests(&own.claim);
        };
        if group.is_none() || group != self.groups.together_with(&pod.pod) {
            let (namespace, name) = (&own.claim.metadata.namespace, &own.claim.metadata.name);
            let text = format!("resource claim {namespace}/{name} is in the process of being allocated");
            return Err(Status::unresolvable(text));
        }
        own.pending = Some(allocation);
        Ok(())
    }

    fn check_requests(&self, claim: &ResourceClaim) -> Result<(), Status> {
        let name = &claim.metadata.name;
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

    /// Finds devices on a node for the claims without any, and for the one for extended resources.
    fn find(
        &self,
        allocator: &Allocator,
        special: Option<Arc<SpecialClaim>>,
        node: NodeView<'_>,
    ) -> Result<OnNode, Status> {
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let place = CandidateNode { name: &node.info.name, labels: &node.node.metadata.labels };
        let one_more = special.as_ref().map(|special| &special.claim);
        match allocator.find(place, one_more, &self.classes, &is_over) {
            Ok(Some(found)) => Ok(OnNode { found, special }),
            Ok(None) => Err(Status::unresolvable(NOT_ENOUGH)),
            Err(AllocateError::Timeout) => {
                Err(Status::error(format!("node {}: {}", &node.info.name, AllocateError::Timeout)))
            }
            Err(AllocateError::InvalidPools) => Err(Status::unresolvable(AllocateError::InvalidPools.to_string())),
            Err(error) => Err(Status::error(error.to_string())),
        }
    }
}

/// What claims without devices get, and the one for extended resources.
type Gotten = (Vec<AllocationResult>, Option<(Arc<SpecialClaim>, AllocationResult)>);

impl DynamicResources {
    /// What was found for the node that was chosen, as the claims will have it.
    fn written_out(&self, own: &mut PodClaims, node: &str) -> Result<Gotten, Status> {
        // It holds what was allocated when the cycle began, which others may go on changing after this.
        let Some(allocator) = own.allocator.take() else { return Ok(Gotten::default()) };
        let Some(OnNode { found, special }) = own.found.lock().allocations.remove(node) else {
            let is_fine = allocator.claims().is_empty();
            let text = format!("claim allocations not found for node {node}");
            return if is_fine { Ok(Gotten::default()) } else { Err(Status::error(text)) };
        };
        let one_more = special.as_ref().map(|special| &special.claim);
        let results = allocator.results(&found, node, one_more, &self.classes, &self.rng);
        let mut results = results.map_err(|error| Status::error(error.to_string()))?;
        let extended = special.and_then(|special| Some((special, results.pop()?)));
        Ok((results, extended))
    }
}

impl PreFilter for DynamicResources {
    fn pre_filter(&self, _: CycleCx<'_>, state: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        // That there is a state tells the search for a way out that the pod came this far.
        let extended = Extended::of(pod, &self.extended, &self.claims).map(Arc::new);
        let mut own = PodClaims { extended, ..PodClaims::default() };
        if pod.pod.spec.resource_claims.is_empty() && own.extended.is_none() {
            state.put(own);
            return Ok(PreFiltered::Skip);
        }
        own.claims = self.claims_of(pod)?;
        let mut without = own.claims.iter_mut().filter(|own| own.allocation().is_none());
        without.try_for_each(|own| self.check(own, pod))?;
        let unallocated = own.claims.iter().filter(|own| own.allocation().is_none());
        let unallocated: Vec<_> = unallocated.map(|own| Arc::clone(&own.claim)).collect();
        if !unallocated.is_empty() || own.extended.is_some() {
            let (allocated, selectors) = (self.claims.allocated(), Arc::clone(&self.selectors));
            let allocator = Allocator::new(self.features, unallocated, self.offered.slices(), allocated, selectors);
            own.allocator = Some(Arc::new(allocator));
        }
        let filtered = if own.is_empty() { PreFiltered::Skip } else { PreFiltered::All };
        state.put(own);
        Ok(filtered)
    }
}

impl Filter for DynamicResources {
    fn filter(&self, state: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let Some(own) = state.get::<PodClaims>() else { return Ok(()) };
        let special = own.extended.as_ref().map(|extended| extended.on(&pod.pod, node)).transpose()?.flatten();
        let is_reached = |allocation: &AllocationResult| {
            let selector = allocation.node_selector.as_ref();
            selector.is_none_or(|selector| selector_matches(selector, &node.node.metadata.labels, &node.info.name))
        };
        let is_unavailable =
            |own: &Own| own.allocation().is_some_and(|allocation| !is_reached(allocation)) || self.is_lost(&own.claim);
        let claims = own.claims.iter().enumerate();
        let unavailable: BTreeSet<usize> =
            claims.filter(|(_, own)| is_unavailable(own)).map(|(place, _)| place).collect();
        let allocator = own.allocator.as_ref().filter(|own| special.is_some() || !own.claims().is_empty());
        let found = allocator.map(|allocator| self.find(allocator, special, node)).transpose()?;
        if !unavailable.is_empty() {
            own.found.lock().unavailable.extend(unavailable);
            return Err(Status::unresolvable(NOT_AVAILABLE));
        }
        let claimed = self.claimed(own, found.as_ref(), pod, node)?;
        let mut notes = own.found.lock();
        if let Some(found) = found {
            notes.allocations.insert(Arc::clone(&node.info.name), found);
        }
        if claimed.is_empty() {
            notes.claimed.remove(&node.info.name);
        } else {
            notes.claimed.insert(Arc::clone(&node.info.name), claimed);
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
            let Some(Own { claim, .. }) = own.claims.get(place) else { continue };
            let reserved = &claim.status.reserved_for;
            let is_free = reserved.len() <= 1 && reserved.iter().all(|consumer| consumer.uid == pod.uid());
            if is_free {
                return told(match self.deallocate(claim).await {
                    Ok(()) => Status::unschedulable("deallocation of ResourceClaim completed"),
                    Err(error) => Status::error(error.to_string()),
                });
            }
        }
        if let Some(earlier) = own.extended.as_ref().and_then(|extended| extended.earlier.as_ref()) {
            return told(match self.delete(earlier).await {
                Ok(()) => Status::unschedulable("deletion of ResourceClaim completed"),
                Err(error) => Status::error(error.to_string()),
            });
        }
        let released = self.release_of_group(own, pod).await;
        told(released.unwrap_or_else(|| Status::unschedulable("still not schedulable")))
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

/// How good the alternatives are that a claim, by its place, would get.
fn score_of(place: usize, claim: &ResourceClaim, found: &Solution) -> usize {
    let requests = claim.spec.devices.requests.iter().enumerate();
    let of_choices = requests.filter(|(_, request)| !request.first_available.is_empty());
    let parts = of_choices.filter_map(|(request, _)| found.part_of(place, request));
    parts.map(|part| FIRST_ALTERNATIVE.saturating_sub(part)).sum()
}

impl Score for DynamicResources {
    fn score(&self, state: &CycleState, _: &PodInfo, node: NodeView<'_>) -> Result<i64, Status> {
        let Some(own) = state.get::<PodClaims>() else { return Ok(0) };
        let Some(allocator) = &own.allocator else { return Ok(0) };
        let found = own.found.lock();
        let Some(on_node) = found.allocations.get(&*node.info.name) else { return Ok(0) };
        let claims = allocator.claims().iter().enumerate();
        let scores = claims.map(|(place, claim)| score_of(place, claim, &on_node.found));
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
    claims: Vec<(Own, Option<AllocationResult>)>,
    extended: Option<Promised>,
    told: Told,
}

/// The claim for extended resources that is to be made.
#[derive(Clone)]
struct Promised {
    special: Arc<SpecialClaim>,
    allocation: AllocationResult,
    /// What was made of it.
    made: Arc<Mutex<Option<ResourceClaim>>>,
}

impl Reserve for DynamicResources {
    fn reserve(&self, state: &mut CycleState, pod: &PodInfo, node: &str) -> StatusResult {
        let Some(own) = state.get_mut::<PodClaims>().filter(|own| !own.is_empty()) else { return Ok(()) };
        let (results, extended) = self.written_out(own, node)?;
        let mut results = results.into_iter();
        let with = |own: &Own| {
            let new = if own.allocation().is_none() { results.next() } else { own.pending.clone() };
            (own.clone(), new)
        };
        let claims: Vec<_> = own.claims.iter().map(with).collect();
        for (own, allocation) in &claims {
            if let Some(allocation) = allocation {
                let group = self.groups.together_with(&pod.pod);
                self.claims.put_in_flight(&own.claim, allocation.clone(), pod.uid(), group);
            }
        }
        if let Some((_, allocation)) = &extended {
            self.claims.promise(pod.uid(), allocation.clone());
        }
        let extended = extended.map(|(special, allocation)| Promised { special, allocation, made: Arc::default() });
        let told = Told::of(claimed_on(state, node));
        state.put(Reserved { claims, extended, told });
        Ok(())
    }

    fn unreserve(&self, state: &CycleState, pod: &PodInfo, _: &str) {
        let Some(reserved) = state.get::<Reserved>() else { return };
        for (own, allocation) in &reserved.claims {
            if allocation.is_some() {
                self.claims.land(&own.claim, pod.uid());
            }
            self.release(own, pod);
        }
        self.take_back(&reserved.told, pod);
        if let Some(promised) = &reserved.extended {
            self.claims.end_promise(pod.uid());
            if let Some(made) = promised.made.lock().take() {
                self.delete_beside(made);
            }
        }
    }
}

#[async_trait]
impl PreBind for DynamicResources {
    fn has_work(&self, state: &CycleState, pod: &PodInfo, _: &str) -> Result<bool, Status> {
        let Some(reserved) = state.get::<Reserved>() else { return Ok(false) };
        let has_work = |own: &Own| !is_reserved_for(&own.claim, &own.consumer.uid) || has_conditions(&own.claim);
        let is_told = reserved.told.has_work(&pod.pod);
        Ok(is_told || reserved.extended.is_some() || reserved.claims.iter().any(|(own, _)| has_work(own)))
    }

    fn runs_beside_others(&self) -> bool {
        true
    }

    async fn pre_bind(&self, state: &CycleState, pod: &PodInfo, node: &str, stop: &CancellationToken) -> StatusResult {
        let Some(reserved) = state.get::<Reserved>() else { return Ok(()) };
        for (own, allocation) in &reserved.claims {
            if !is_reserved_for(&own.claim, &own.consumer.uid) {
                let bound = self.bind(own, allocation.as_ref(), &pod.pod).await;
                bound.map_err(|error| Status::error(error.to_string()))?;
            }
        }
        let mut claims: Vec<_> = reserved.claims.iter().map(|(own, _)| Arc::clone(&own.claim)).collect();
        if let Some(promised) = &reserved.extended {
            let made = self.make(promised, &pod.pod, stop).await;
            claims.push(Arc::new(made.map_err(|error| Status::error(error.to_string()))?));
        }
        self.tell(&reserved.told, &pod.pod).await.map_err(|error| Status::error(error.to_string()))?;
        let ready = self.wait_ready(&claims, &pod.pod, node, stop).await;
        ready.map_err(|error| Status::error(error.to_string()))
    }
}
