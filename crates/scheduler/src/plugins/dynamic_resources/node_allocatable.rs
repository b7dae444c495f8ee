//! Devices that are made of what nodes have anyway, such as CPUs (KEP-5517): what a pod gets of it by its claims counts as if it
//! asked for it itself. The pod's status tells how much that is, before it is bound; where others count what a node has left,
//! they go by that. A claim of that kind is one pod's on a node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api_machinery::quantity::Quantity;
use api_types::core_v1::{NodeAllocatableResourceClaimStatus, Pod, ResourceList};
use api_types::resource_v1::{Device, NodeAllocatableResourceMapping, ResourceClaim};
use component_helpers::pod_requests;
use component_helpers::resource_claims::of_entry;
use tokio::sync::watch;

use super::super::node_resources_fit::short;
use super::binder::ClaimWriteError;
use super::{DynamicResources, OnNode, PodClaims};
use crate::framework::{Code, CycleState, Reason, Status, StatusResult};
use crate::node_info::NodeView;
use crate::pod_info::PodInfo;
use crate::resources::Resources;

/// What the claims of a pod give it on a node, as the filter found out.
pub(crate) fn claimed_on(state: &CycleState, node: &str) -> Vec<NodeAllocatableResourceClaimStatus> {
    let found = state.get::<PodClaims>().map(|own| own.found.lock());
    found.and_then(|found| found.claimed.get(node).cloned()).unwrap_or_default()
}

/// What is taken of the capacities of a device.
type Consumed = BTreeMap<String, Quantity>;

impl DynamicResources {
    /// What claims give a pod on a node, if the node has room for that, too.
    ///
    /// # Errors
    /// With what is in the way.
    pub(super) fn claimed(
        &self,
        own: &PodClaims,
        found: Option<&OnNode>,
        pod: &PodInfo,
        node: NodeView<'_>,
    ) -> Result<Vec<NodeAllocatableResourceClaimStatus>, Status> {
        if !self.counts_node_allocatable {
            return Ok(Vec::new());
        }
        check_sharing(own, pod, node)?;
        let statuses = statuses(&pod.pod, self.amounts(own, found)?);
        if statuses.is_empty() {
            return Ok(statuses);
        }
        if let Some(unused) = statuses.iter().find(|own| own.containers.is_empty()) {
            let text = format!(
                "claim {}: node-allocatable resource claim not referenced by any container within the pod",
                unused.resource_claim_name
            );
            return Err(Status::unresolvable(text));
        }
        let claimed = pod_requests::claimed(&statuses);
        check_pod_level(&pod.pod, &claimed)?;
        check_room(&Resources::of(&pod_requests::requests_with(&pod.pod, &claimed)), node)?;
        Ok(statuses)
    }

    /// What each claim gives, by its name. Devices that nobody offers any more give nothing.
    fn amounts(&self, own: &PodClaims, found: Option<&OnNode>) -> Result<BTreeMap<String, ResourceList>, Status> {
        let mut all = BTreeMap::new();
        let new = own.claims.iter().filter(|own| own.allocation().is_none()).map(|own| &*own.claim);
        let special = found.and_then(|found| found.special.as_ref()).map(|special| &special.claim);
        for (place, claim) in new.chain(special).enumerate() {
            let Some(found) = found else { break };
            let devices = found.found.devices(place);
            put(&mut all, claim, devices)?;
        }
        let mut allocated = own.claims.iter().filter_map(|own| Some((&own.claim, own.allocation()?))).peekable();
        if allocated.peek().is_none() {
            return Ok(all);
        }
        let slices = self.offered.slices();
        for (claim, allocation) in allocated {
            let devices = allocation.devices.results.iter().filter_map(|result| {
                let device = slices.device(&result.driver, &result.pool, &result.device)?;
                Some((device, Some(&result.consumed_capacity).filter(|consumed| !consumed.is_empty())))
            });
            put(&mut all, claim, devices)?;
        }
        Ok(all)
    }
}

/// Adds what the devices of a claim give to what is known of it.
fn put<'a>(
    all: &mut BTreeMap<String, ResourceList>,
    claim: &ResourceClaim,
    devices: impl Iterator<Item = (&'a Device, Option<&'a Consumed>)>,
) -> StatusResult {
    let mut amounts = ResourceList::new();
    for (device, consumed) in devices {
        for (resource, mapping) in &device.node_allocatable_resource_mappings {
            let problem = |key: &str| {
                let (namespace, name, device) = (&claim.metadata.namespace, &claim.metadata.name, &device.name);
                Status::error(format!(
                    "claim {namespace}/{name}, device {device}: ConsumedCapacity is nil, but Capacity key '{key}' is set in \
                     NodeAllocatableResourceMappings for resource {resource}"
                ))
            };
            if let Some(amount) = amount_of(mapping, consumed).map_err(problem)? {
                amounts.entry(resource.clone()).or_default().add(&amount);
            }
        }
    }
    if !amounts.is_empty() {
        all.insert(claim.metadata.name.clone(), amounts);
    }
    Ok(())
}

/// What a device stands for; none where the capacity that it is measured by is not taken. The capacity is the error where it
/// cannot be told how much of it is.
fn amount_of<'a>(
    mapping: &'a NodeAllocatableResourceMapping,
    consumed: Option<&Consumed>,
) -> Result<Option<Quantity>, &'a str> {
    let factor = mapping.allocation_multiplier.as_ref();
    let Some(key) = mapping.capacity_key.as_deref().filter(|key| !key.is_empty()) else { return Ok(factor.cloned()) };
    let Some(mut amount) = consumed.ok_or(key)?.get(key).cloned() else { return Ok(None) };
    factor.into_iter().for_each(|factor| amount.scale_by(factor));
    Ok(Some(amount))
}

/// What claims give, with the containers that use them.
fn statuses(pod: &Pod, amounts: BTreeMap<String, ResourceList>) -> Vec<NodeAllocatableResourceClaimStatus> {
    let named = |entry: &str, claim: &str| {
        let mut own = pod.spec.resource_claims.iter().filter(|own| own.name == entry);
        own.any(|own| of_entry(pod, own).is_ok_and(|named| named.is_some_and(|named| named.name == claim)))
    };
    let status = |(claim, resources): (String, ResourceList)| {
        let all = pod.spec.init_containers.iter().chain(&pod.spec.containers);
        let users = all.filter(|own| own.resources.claims.iter().any(|entry| named(&entry.name, &claim)));
        let containers = users.map(|own| own.name.clone()).collect();
        NodeAllocatableResourceClaimStatus { containers, resources, resource_claim_name: claim }
    };
    amounts.into_iter().map(status).collect()
}

/// No other pod of the node has any of the claims.
fn check_sharing(own: &PodClaims, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
    for own in &own.claims {
        let (namespace, name) = (&own.claim.metadata.namespace, &own.claim.metadata.name);
        let has = |other: &&Arc<PodInfo>| {
            let claims = &other.pod.status.node_allocatable_resource_claim_statuses;
            claims.iter().any(|own| own.resource_claim_name == *name) && other.pod.metadata.namespace == *namespace
        };
        let users: Vec<_> = node.info.pods.iter().filter(has).take(2).collect();
        let why = match users.as_slice() {
            [] => continue,
            [only] if only.uid() == pod.uid() => continue,
            [_] => "is already used by another pod",
            _ => "shared by multiple pods",
        };
        return Err(Status::unresolvable(format!("node allocatable resource claim {name} {why}")));
    }
    Ok(())
}

/// What a pod asks for as a whole has to be enough for its containers and its claims together.
fn check_pod_level(pod: &Pod, claimed: &ResourceList) -> StatusResult {
    let Some(whole) = &pod.spec.resources else { return Ok(()) };
    let mut parts = pod_requests::aggregate(&pod.spec, |container| container.resources.requests.clone());
    pod_requests::add(&mut parts, claimed);
    let is_short = |(name, amount): &(&String, &Quantity)| {
        pod_requests::is_pod_level(name) && parts.get(*name).is_some_and(|part| part > *amount)
    };
    let Some((name, _)) = whole.requests.iter().find(is_short) else { return Ok(()) };
    let text = format!(
        "pod level request for {name} is insufficient to cover the aggregated container and node-allocatable DRA requests"
    );
    Err(Status::unresolvable(text))
}

/// As the plugin that rejects nodes without room sees it, but for what claims cannot give.
fn check_room(wanted: &Resources, node: NodeView<'_>) -> StatusResult {
    let huge_pages = wanted.scalars.iter().map(|(name, _)| &**name).filter(|name| name.starts_with("hugepages-"));
    let mut reasons: Vec<Reason> = Vec::new();
    let mut worst = Code::Unschedulable;
    for name in ["cpu", "memory", "ephemeral-storage"].into_iter().chain(huge_pages) {
        let Some(code) = short(wanted.named(name), node.allocatable.named(name), node.requested.named(name)) else {
            continue;
        };
        reasons.push(format!("Insufficient {name}").into());
        if code == Code::UnschedulableAndUnresolvable {
            worst = code;
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(Status::with_reasons(worst, reasons)) }
}

/// What a pod's status is to tell, and whether it may do so already.
#[derive(Clone)]
pub(super) struct Told {
    claimed: Vec<NodeAllocatableResourceClaimStatus>,
    is_written: Arc<AtomicBool>,
}

impl Told {
    pub(super) fn of(claimed: Vec<NodeAllocatableResourceClaimStatus>) -> Self {
        Self { claimed, is_written: Arc::default() }
    }

    /// Whether the status may tell something else.
    pub(super) fn has_work(&self, pod: &Pod) -> bool {
        !self.claimed.is_empty() || !pod.status.node_allocatable_resource_claim_statuses.is_empty()
    }
}

/// The pods, by uid, whose status is about to tell nothing any more.
#[derive(Default)]
pub(super) struct TakenBack(watch::Sender<BTreeSet<String>>);

/// The pod with a status that tells of these claims.
fn telling(pod: &Pod, claimed: &[NodeAllocatableResourceClaimStatus]) -> Pod {
    let mut pod = pod.clone();
    pod.status.node_allocatable_resource_claim_statuses = claimed.to_vec();
    pod
}

impl DynamicResources {
    /// Has the pod's status tell what its claims give it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) async fn tell(&self, told: &Told, pod: &Pod) -> Result<(), ClaimWriteError> {
        if !told.has_work(pod) {
            return Ok(());
        }
        told.is_written.store(true, Ordering::Relaxed);
        // What an earlier attempt takes back may not be overtaken. It cannot be over before the plugin is.
        let _ = self.taken_back.0.subscribe().wait_for(|pods| !pods.contains(&pod.metadata.uid)).await;
        let target = telling(pod, &told.claimed);
        // What the watch has shown of the status may be older than what was taken back.
        let known = if told.claimed.is_empty() { pod.clone() } else { telling(pod, &[]) };
        let written = self.writer.patch_status(&known, &target.status).await;
        let pod = || format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
        written.map_err(|source| ClaimWriteError::NodeAllocatable { pod: pod(), source })
    }

    /// Has the status of a pod that is not bound after all tell nothing any more. That is written beside.
    pub(super) fn take_back(&self, told: &Told, pod: &PodInfo) {
        if told.claimed.is_empty() || !told.is_written.load(Ordering::Relaxed) {
            return;
        }
        let (pod, claimed, writer) = (Arc::clone(&pod.pod), told.claimed.clone(), Arc::clone(&self.writer));
        let taken_back = self.taken_back.0.clone();
        taken_back.send_if_modified(|pods| pods.insert(pod.metadata.uid.clone()));
        self.tasks.spawn_cancellable("take-back-claimed", async move {
            let nothing = telling(&pod, &[]);
            if let Err(error) = writer.patch_status(&telling(&pod, &claimed), &nothing.status).await {
                let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
                tracing::error!(%error, namespace, name, "Clearing what the claims of a pod give it failed");
            }
            taken_back.send_if_modified(|pods| pods.remove(&pod.metadata.uid));
        });
    }
}
