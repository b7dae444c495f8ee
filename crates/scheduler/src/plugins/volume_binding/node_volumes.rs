//! The volumes that a pod would have on a node.

use std::sync::Arc;

use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm};
use api_types::storage_v1::CSIStorageCapacity;
use component_helpers::volumes::classes::class_of_claim;
use component_helpers::volumes::matching::{NodeScope, best_match, is_accessible_from};
use component_helpers::volumes::names::SELECTED_NODE;

use super::capacity::Room;
use super::claims::{Claims, is_provisioned};
use crate::framework::{Code, Reason, Status};

const NODE_CONFLICT: &str = "node(s) didn't match PersistentVolume's node affinity";
const BIND_CONFLICT: &str = "node(s) didn't find available persistent volumes to bind";
const NOT_ENOUGH_SPACE: &str = "node(s) did not have enough free storage";
const VOLUME_MISSING: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

/// What becomes of the claims that wait, on one node.
#[derive(Clone, Default)]
pub(super) struct NodeVolumes {
    /// Volumes that are there, and who gets them.
    pub(super) matched: Vec<(Arc<PersistentVolume>, Arc<PersistentVolumeClaim>)>,
    /// Claims for which a volume is made.
    pub(super) provisioned: Vec<Provision>,
}

/// A volume that is to be made.
#[derive(Clone)]
pub(super) struct Provision {
    /// For whom.
    pub(super) claim: Arc<PersistentVolumeClaim>,
    /// The room that it is made in, where its driver tells.
    pub(super) room: Option<Arc<CSIStorageCapacity>>,
}

/// Why a volume cannot be made for a node.
enum NoProvision {
    Conflict,
    NoSpace,
    Failed(Status),
}

impl From<Status> for NoProvision {
    fn from(status: Status) -> Self {
        Self::Failed(status)
    }
}

impl NodeVolumes {
    /// The volumes that the pod would have on a node.
    ///
    /// # Errors
    /// When the node cannot have some of them, with all reasons; or when the cluster is not in order.
    pub(super) fn of(claims: &Claims, node: &Node) -> Result<Self, Status> {
        let bound = check_bound(claims, node);
        let mut volumes = Self::default();
        let unbound = find_delayed(claims, node, &mut volumes);
        let (conflicts, lacks_space) = match unbound {
            Ok(()) => (false, false),
            Err(NoProvision::Conflict) => (true, false),
            Err(NoProvision::NoSpace) => (false, true),
            Err(NoProvision::Failed(status)) => return Err(status),
        };
        if bound.is_ok() && !conflicts && !lacks_space {
            return Ok(volumes);
        }
        let reasons = [
            (bound == Err(NODE_CONFLICT), NODE_CONFLICT),
            (conflicts, BIND_CONFLICT),
            (lacks_space, NOT_ENOUGH_SPACE),
            (bound == Err(VOLUME_MISSING), VOLUME_MISSING),
        ];
        let reasons = reasons.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| Reason::from(reason));
        Err(Status::with_reasons(Code::UnschedulableAndUnresolvable, reasons.collect()))
    }
}

/// Whether the node reaches the volumes that the pod has; the first reason why not.
fn check_bound(claims: &Claims, node: &Node) -> Result<(), &'static str> {
    for volume in &claims.bound {
        let volume = volume.as_ref().ok_or(VOLUME_MISSING)?;
        if !is_accessible_from(volume, &node.metadata.labels) {
            return Err(NODE_CONFLICT);
        }
    }
    Ok(())
}

/// Finds volumes for the claims that wait.
fn find_delayed(claims: &Claims, node: &Node, found: &mut NodeVolumes) -> Result<(), NoProvision> {
    let is_elsewhere = |claim: &Arc<PersistentVolumeClaim>| {
        let selected = claim.metadata.annotations.get(SELECTED_NODE);
        selected.is_some_and(|selected| *selected != node.metadata.name)
    };
    if claims.delayed.iter().any(is_elsewhere) {
        return Err(NoProvision::Conflict);
    }
    for claim in &claims.delayed {
        let is_chosen = claim.metadata.annotations.contains_key(SELECTED_NODE);
        let matching = if is_chosen { None } else { matching(claims, claim, node, found)? };
        if let Some(volume) = matching {
            found.matched.push((volume, Arc::clone(claim)));
        } else {
            let room = room_for(claims, claim, node)?;
            found.provisioned.push(Provision { claim: Arc::clone(claim), room });
        }
    }
    Ok(())
}

/// A volume that is there, and that no other claim of the pod has by now.
fn matching(
    claims: &Claims,
    claim: &PersistentVolumeClaim,
    node: &Node,
    found: &NodeVolumes,
) -> Result<Option<Arc<PersistentVolume>>, Status> {
    let Some(class) = claims.classes.get(class_of_claim(claim)) else { return Ok(None) };
    let is_taken = |name: &str| found.matched.iter().any(|(volume, _)| volume.metadata.name == name);
    let place = NodeScope::OnNode(&node.metadata.labels);
    let best = best_match(claim, &class.volumes, place, is_taken).map_err(|error| Status::error(error.to_string()))?;
    Ok(best.cloned())
}

/// The room in which a volume for the claim can be made for the node, where its driver tells.
fn room_for(
    claims: &Claims,
    claim: &PersistentVolumeClaim,
    node: &Node,
) -> Result<Option<Arc<CSIStorageCapacity>>, NoProvision> {
    let name = class_of_claim(claim);
    if name.is_empty() {
        let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
        return Err(Status::error(format!("no class for claim \"{namespace}/{name}\"")).into());
    }
    let known = claims.classes.get(name).and_then(|known| Some((known.class.as_deref()?, &known.rooms)));
    let (class, rooms) = known.ok_or_else(|| Status::error(format!("failed to find storage class {name:?}")))?;
    if !is_provisioned(class) || !are_allowed(&class.allowed_topologies, node) {
        return Err(NoProvision::Conflict);
    }
    match rooms.for_claim(claim, node) {
        Room::Unknown => Ok(None),
        Room::Enough(room) => Ok(Some(room)),
        Room::Lacking => Err(NoProvision::NoSpace),
    }
}

/// Whether the node is in one of the places that a class is for; a class without any is for all.
fn are_allowed(terms: &[TopologySelectorTerm], node: &Node) -> bool {
    let holds = |term: &TopologySelectorTerm| {
        let mut parts = term.match_label_expressions.iter();
        !term.match_label_expressions.is_empty()
            && parts.all(|part| node.metadata.labels.get(&part.key).is_some_and(|value| part.values.contains(value)))
    };
    terms.is_empty() || terms.iter().any(holds)
}
